import pytest

from darkroom.train.examples.encoding import RowReader, uncommented

CODE = """# what it does
x = 1  # one
if x:
    # nothing else
    print("# no comment", x)
"""


def test_comments_go_and_texts_that_look_like_one_stay():
    assert uncommented(CODE) == 'x = 1\nif x:\n    print("# no comment", x)\n'


@pytest.mark.parametrize("code", ["", "x = 1", "x = 1\r\ny = 2\r\n", "s = '''\n# text\n'''\n", "a = (1,\n     2)\n"])
def test_code_without_comments_is_unchanged(code):
    assert uncommented(code) == code


@pytest.mark.parametrize("code", ["x = (  # open", "if x:\n        y\n    z  # odd", "s = '''# open"])
def test_code_that_is_no_python_is_unchanged(code):
    assert uncommented(code) == code


def test_line_ends_stay_as_they_were():
    assert uncommented("x = 1  # one\r\n# two\r\ny = 2") == "x = 1\r\ny = 2"


def test_the_row_itself_stays_as_it_is():
    row = {"loss_policy": "last_round", "rounds": [{"thought": "I look.", "code": CODE}], "answer": "7"}
    read = RowReader(None, "", loss_policy="all_rounds", without_comments=True).ablated(row)
    assert read["loss_policy"] == "all_rounds"
    assert read["rounds"] == [{"thought": "I look.", "code": uncommented(CODE)}]
    assert row["loss_policy"] == "last_round"
    assert row["rounds"][0]["code"] == CODE
    assert RowReader(None, "").ablated(row) is row
