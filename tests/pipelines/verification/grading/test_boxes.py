"""Boxes: which spellings are one, and what makes it none."""

import pytest

from darkroom.pipelines.verification.grading.boxes import LEAST_OVERLAP, read_box, same_box

FARTHEST = 2**53


@pytest.mark.parametrize(
    "text",
    [
        "[1,2,3,4]", "(1,2),(3,4)", "1 2 3 4", "1; 2; 3; 4", "[[1,2],[3,4]]", "[[1,2,3,4]]", '{"bbox":[1,2,3,4]}',
        '{"bbox_2d":[1,2,3,4]}', '{"box":[1,2,3,4]}', '{"bounding_box":[1,2,3,4]}', '[{"bbox":[1,2,3,4]}]',
        '{"bbox":{"x1":1,"y1":2,"x2":3,"y2":4}}', '{"x1":1,"y1":2,"x2":3,"y2":4}',
        '{"left":1,"top":2,"right":3,"bottom":4}',
        '{"x2":3,"y2":4,"x1":1,"y1":2}', '{"bbox":[1,2,3,4],"label":"sign"}', '{"bbox":[1,2,3,4],"score":0.9}',
        '{"bbox":[1,2,3,4],"confidence":0.9,"score":1}', "```json\n[1,2,3,4]\n```", "<box>1,2,3,4</box>",
        "Sign: [1,2,3,4]",
        "left 1, top 2, right 3, bottom 4", "x1=1, y1=2, x2=3, y2=4", "box is [1, 2, 3, 4]", "1 px, 2 px, 3 px, 4 px",
    ],
)  # fmt: skip
def test_a_box_is_four_sides_however_they_are_spelled(text):
    assert read_box(text) == (1.0, 2.0, 3.0, 4.0)


@pytest.mark.parametrize(
    "text",
    [
        "", "5", "null", "[1,2,3]", "[1,2,3,4,5]", "[[1,2],[3,4],[5,6]]", "[[1,2,3,4],[1,2,3,4]]", "[]", "[[]]",
        # inverted or empty, in either direction
        "[3,2,1,4]", "[1,4,3,2]", "[1,2,1,4]", "[1,2,3,2]",
        # not four numbers
        "[true,2,3,4]", '["1",2,3,4]', "[NaN,2,3,4]", "[1,2,3,Infinity]", "[null,2,3,4]",
        # names that are none, twice there, or deny it
        '{"other":[1,2,3,4]}', '{"bbox":5}', '{"bbox":{"box":[1,2,3,4]}}', '{"x1":1,"y1":2,"x2":3}', '{"label":"x"}',
        '{"bbox":[1,2,3,4],"bbox":[1,2,3,4]}', '{"bbox":[1,2,3,4],"other":1}', '{"bbox":[1,2,3,4],"label":"sign 2"}',
        '{"bbox":[1,2,3,4],"label":"not"}', '{"bbox":[1,2,3,4],"label":5}', '{"bbox":[1,2,3,4],"score":"x"}',
        '{"bbox":[1,2,3,4],"score":null}', '{"bbox":[1,2,3,4],"confidence":0.9,"score":[1]}',
        '{"bbox":[1,2,3,4],"confidence":{},"score":1}', "Not sign: [1,2,3,4]",
    ],
)  # fmt: skip
def test_anything_else_is_no_box(text):
    assert read_box(text) is None


@pytest.mark.parametrize(("n_chars", "is_label"), [(60, True), (61, False)])
def test_a_label_has_at_most_sixty_characters(n_chars, is_label):
    assert (read_box(f'{{"bbox":[1,2,3,4],"label":"{"s" * n_chars}"}}') is not None) is is_label


@pytest.mark.parametrize(("side", "is_read"), [(FARTHEST - 1, True), (FARTHEST, False)])
def test_sides_lie_where_a_float_tells_whole_numbers_apart(side, is_read):
    assert (read_box(f"[1,2,{side},4]") is not None) is is_read
    assert (read_box(f"[{-side},2,3,4]") is not None) is is_read


@pytest.mark.parametrize(
    ("answer", "expected", "overlap"),
    [
        ("[0,0,2,2]", "[0,0,2,4]", 0.5), ("[0.1,0.1,0.5,0.5]", "[0.1,0.1,0.5,0.5]", 1.0),
        ("[0,0,1,1]", "[0,0,1,1]", 1.0),
        # fractions and pixels are two frames
        ("[0.1,0.1,0.5,0.5]", "[1,1,5,5]", None), ("[1,1,5,5]", "[0.1,0.1,0.5,0.5]", None),
        ("[0,0,2,1]", "[0,0,1,1]", None),
        ("[0,0,1,2]", "[0,0,1,1]", None), ("[-1,0,1,1]", "[0,0,1,1]", None), ("x", "[0,0,1,1]", None),
        ("[0,0,1,1]", "x", None),
    ],
)  # fmt: skip
def test_boxes_are_compared_in_one_frame(answer, expected, overlap):
    assert same_box(answer, expected) == overlap


@pytest.mark.parametrize(("n_chars", "overlap"), [(400, 1.0), (401, None)])
def test_a_box_is_looked_for_in_a_sentence_of_the_question_that_is_not_too_long(n_chars, overlap):
    said = "The sign is at [1, 2, 3, 4]".ljust(n_chars - 1) + "."
    assert same_box(said, "[1,2,3,4]", "Where is the sign?") == overlap
    assert same_box("The dog is at [1, 2, 3, 4].", "[1,2,3,4]", "Where is the sign?") is None


def test_half_of_both_boxes_is_enough():
    assert LEAST_OVERLAP == 0.5
