"""Marks of images in texts: they keep their places, and are counted against the row's files."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.sources.columns import Columns
from darkroom.pipelines.sources.marks import images_first, placed

TWO = ["sign.png", "deep/sign.png"]


@pytest.mark.parametrize(
    ("text", "n_images", "spelled"),
    [
        ("Is the one in <image> larger than in <image>?", 2, "Is the one in <image> larger than in <image>?"),
        ("Is <|image|> larger than <ImageHere>?", 2, "Is <image> larger than <image>?"),
        ("Is <img>a.png</img> larger than <IMAGE>?", 2, "Is <image> larger than <image>?"),
        ("In <|vision_start|><|image_pad|><|image_pad|><|vision_end|>, what?", 1, "In <image>, what?"),
        ("Which is blue, <image 1> or <image 2>?", 2, "Which is blue, image 1 <image> or image 2 <image>?"),
        ("Which, <|image_1|> or <image_2>? <image 2>?", 2, "Which, image 1 <image> or image 2 <image>? image 2?"),
        ("Which, <image0> or <image1>?", 2, "Which, image 1 <image> or image 2 <image>?"),
        ("Compare <image 2> with <image 1>.", 2, "Compare image 2 with image 1."),
        ("What is in <image 2>?", 3, "What is in image 2?"),
        ("What is in <image 1>? <image 1>!", 1, "What is in <image>? image 1!"),
        ("<image><image>\nIs <image 2> blue?", 2, "<image><image>\nIs image 2 blue?"),
        ("No mark.", 2, "No mark."),
        ("What does <img> mean?", 1, "What does <img> mean?"),
    ],
)
def test_every_spelling_of_a_mark_is_one(text, n_images, spelled):
    assert placed([text], n_images) == [spelled]


@pytest.mark.parametrize(
    ("text", "n_images", "reason"),
    [
        ("<image>\n<image>\nTwo places, one file?", 1, Reason.MISSING_IMAGE),
        ("<image> What?", 0, Reason.MISSING_IMAGE),
        ("What is in <image 3>?", 2, Reason.MISSING_IMAGE),
        ("<image> What?", 2, Reason.MALFORMED_ROW),
        ("<image> and <image 1>?", 2, Reason.MALFORMED_ROW),
    ],
)
def test_marks_are_counted_against_files(text, n_images, reason):
    with pytest.raises(RowError, match=rf"the text shows \d+ images, the row has {n_images}") as caught:
        placed([text], n_images)
    assert caught.value.reason is reason


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("<image>\nWhat?", " \nWhat?"),
        ("image 1 <image> image 2 <image>\nWhat?", " \nWhat?"),
        ("What? <image>", "What? "),
        ("In <image>, what?", "In <image>, what?"),
        ("<image> or <image>?", "<image> or <image>?"),
    ],
)
def test_marks_at_one_edge_go(text, first):
    assert images_first(text).strip() == first.strip()


@given(st.text("<image>12 _|\n", max_size=40), st.integers(0, 3))
def test_any_text_is_placed_or_refused(text, n_images):
    try:
        (marked,) = placed([text], n_images)
    except RowError:
        return
    assert marked.count("<image>") in (0, n_images)


def test_a_question_keeps_the_places_of_its_images(mapped):
    row = mapped(image=TWO, question="Is it in <image> or in <image>?")
    assert (row.question, len(row.images)) == ("Is it in <image> or in <image>?", 2)


def test_choices_may_be_images(mapped):
    row = mapped(image=TWO, question="Which is blue?", choices=["<image 1>", "<image 2>"], answer="B")
    assert row.choices == ("A. image 1 <image>", "B. image 2 <image>")
    row = mapped(Columns(choices_in_question=True), image=TWO, question="Which?\nA) <image>\nB) <image>", answer="B")
    assert (row.question, row.choices) == ("Which?", ("A. <image>", "B. <image>"))


def test_marks_may_be_dropped(mapped, refused):
    question = "<image>\nWhat is in both?"
    assert "`image_marks: drop`" in refused(image=TWO, question=question).evidence
    assert mapped(Columns(image_marks="drop"), image=TWO, question=question).question == "What is in both?"


def test_a_dropped_line_keeps_its_mark(mapped):
    row = mapped(Columns(drop_lines=("Look at",)), question="First think.\nLook at <image>\nWhat colour?")
    assert row.question == "First think.\n<image>\nWhat colour?"
