"""Choices of a user's row, however they are spelled, or a bad row that says what was there."""

from __future__ import annotations

import pytest

from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.sources import UserBox, UserBoxes
from darkroom.pipelines.sources.columns import Columns

# --- choices and answers


@pytest.mark.parametrize("value", ["red, blue", 5, {"A": 7}, ["red", 7], ["red", None], [["red"]], True])
def test_choices_that_are_no_list_of_texts_are_a_wrong_type(refused, value):
    for answer in ("red", 0):
        row = refused(choices=value, answer=answer)
        assert row.reason is Reason.WRONG_TYPE
        assert "column 'choices': expected a list of texts" in row.evidence


@pytest.mark.parametrize("value", ["A. red; B. blue", "A.red;B.blue", "(A) red\n(B) blue", "A：red；B：blue；"])
def test_choices_may_stand_in_one_text(mapped, value):
    assert mapped(choices=value, answer="B").choices == ("A. red", "B. blue")


@pytest.mark.parametrize("value", ["A. red", "A. ; B. blue", "either A. red; B. blue", "B. blue; A. red"])
def test_a_text_that_lists_no_choices_in_order_is_a_wrong_type(refused, value):
    assert refused(choices=value, answer="B").reason is Reason.WRONG_TYPE


def test_there_are_26_letters(refused, mapped):
    assert refused(choices=["red"] * 27).reason is Reason.MALFORMED_ROW
    assert mapped(choices=["red"] * 26).choices[-1] == "Z. red"


@pytest.mark.parametrize(
    ("choices", "lettered"),
    [
        (["red", "blue"], ("A. red", "B. blue")),
        (["A. red", "B. blue"], ("A. red", "B. blue")),
        (["A. red", "blue"], ("A. A. red", "B. blue")),
        (["A.M.", "B.C."], ("A. A.M.", "B. B.C.")),
        ([], ()),
        (None, ()),
    ],
)
def test_choices_get_letters_unless_they_have_them(mapped, choices, lettered):
    assert mapped(choices=choices).choices == lettered


def test_an_index_into_the_choices_is_a_letter(mapped, refused):
    assert mapped(choices=["red", "blue"], answer=1).answer == "B"
    for wrong in (2, -1):
        row = refused(choices=["red", "blue"], answer=wrong)
        assert (row.reason, row.evidence) == (Reason.MALFORMED_ROW, f"column 'answer': choice {wrong} of 2")


def test_a_number_without_choices_is_the_answer(mapped):
    assert mapped(Columns(), answer=1).answer == "1"


def test_a_list_may_be_spelled_as_text(mapped):
    assert len(mapped(image='["sign.png", "deep/sign.png"]').images) == 2
    assert mapped(choices="['red', 'blue']").choices == ("A. red", "B. blue")
    assert mapped(choices='{"A": "red", "B": "blue"}').choices == ("A. red", "B. blue")


# --- choices in columns of their own, and JSON beside the image

APART = Columns(choices=("A", "B", "C"))
BESIDE = Columns(boxes="beside.bbox", box_frame="xywh", json_beside=True)


def test_every_column_is_a_choice(mapped):
    row = mapped(APART, A="Red", B="Blue", C=3, answer="B")
    assert (row.choices, row.answer) == (("A. Red", "B. Blue", "C. 3"), "B")


@pytest.mark.parametrize("empty", [None, ""])
def test_an_empty_column_is_no_choice(mapped, empty):
    assert mapped(APART, A="Red", B="Blue", C=empty, answer="A").choices == ("A. Red", "B. Blue")


def test_every_column_of_choices_must_be_there():
    assert ("B",) in APART.needed()
    assert not any("beside.bbox" in group for group in BESIDE.needed())


def test_the_file_beside_an_image_tells_its_boxes(mapped, folder):
    (folder / "sign.json").write_text('{"bbox": [[1, 2, 3, 4]], "target_object": ["sign"]}')
    assert mapped(BESIDE).boxes == UserBoxes("beside.bbox", "xywh", (UserBox("", (1, 2, 3, 4)),))


@pytest.mark.parametrize(
    ("text", "evidence"),
    [(None, "there is no file"), ("[1]", "sign.json holds no JSON object"), ("{", "sign.json holds no JSON object")],
)
def test_a_file_beside_an_image_that_tells_nothing_is_named(refused, folder, text, evidence):
    if text is not None:
        (folder / "sign.json").write_text(text)
    row = refused(BESIDE)
    assert row.reason == Reason.MALFORMED_ROW
    assert evidence in row.evidence


def test_only_an_image_with_a_path_has_a_file_beside_it(refused, make_image, encoded):
    assert refused(BESIDE, image=encoded(make_image())).reason == Reason.WRONG_TYPE


def test_the_file_beside_an_image_stays_in_the_folder(refused, folder):
    (folder.parent / "secret.json").write_text('{"bbox": [[1, 2, 3, 4]]}')
    assert "leaves the folder" in refused(BESIDE, image="../secret.png").evidence
