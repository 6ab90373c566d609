"""What the diversity of a dataset is counted by."""

import pytest

from measurements.diversity import distinct_n, shape_of, table, words_of


def row(question: str, thought: str, code: str = "x = 1", family: str = "crop"):
    return {
        "family": family,
        "question": question,
        "rounds": [{"thought": thought, "code": code}],
        "final_thought": "",
        "image_refs": [{"sha256": question}, {"sha256": "made"}],
        "n_question_images": 1,
    }


def test_numbers_are_masked_and_punctuation_is_none():
    assert words_of("It's 12:35, or 7.5 °C; don't -- ask!") == ["it's", "#", "or", "#", "c", "don't", "ask"]


@pytest.mark.parametrize(
    ("texts", "share"),
    [
        (["a b c d"], 1.0),
        (["a b c d", "A, b: c d!"], 0.5),
        (["read 5 of 7", "read 31 of 40"], 0.5),
        (["a b c d e", "b c d e f"], 0.75),
        (["too short"], 1.0),
        ([], 1.0),
    ],
)
def test_distinct_4_is_the_share_of_different_runs_of_four_words(texts, share):
    assert distinct_n(texts) == share


def test_programs_differ_by_more_than_numbers_texts_and_comments():
    assert shape_of("x = 1  # one\nprint('a')") == shape_of("x = 22\nprint('b')")
    assert shape_of("x = 1") != shape_of("y = 1")
    assert shape_of("not python (") == "not python ("


def test_the_table_counts_rows_a_question_over_all_families():
    rows = [row("Q1", "a b c d"), row("Q2", "a b c d", "y = 1"), row("Q1", "e f g h", family="rotation")]
    lines = table(rows).splitlines()
    assert lines[2] == "| `crop` | 2 | 2 | 2 | 0.50 | 1 | 2 |"
    assert lines[3] == "| `rotation` | 1 | 1 | 1 | 1.00 | 1 | 1 |"
    assert lines[-1] == "3 rows on 2 questions, at most 2 rows a question."
