"""What a sample's texts and details say: turns before a question, marks, other right answers, a known solution."""

import json
from dataclasses import asdict

import pytest

from darkroom.pipelines.records import ImageRef, Sample, Truth, TruthBox, VideoRef
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.samples import (
    ReferenceSolution,
    TemporalSegment,
    as_details,
    bare_sample,
    details_of,
    numbered_marks,
    own_question,
    reference_solution,
    right_answers,
    temporal_segments,
    with_context,
)


def sample(details=None, **known) -> Sample:
    text = details if details is None or isinstance(details, str) else json.dumps(details)
    return bare_sample("s", "What is it?", truth=Truth(details=text), **known)


@pytest.mark.parametrize(
    ("turns", "question"),
    [
        (["Which one?"], "Which one?"),
        (["Hi.", "Hello.", "Which one?"], "Earlier turns:\nUser: Hi.\nAssistant: Hello.\n\nThe question:\nWhich one?"),
        (["Hi.", "Which one?"], "Earlier turns:\nUser: Hi.\n\nThe question:\nWhich one?"),
    ],
)
def test_turns_before_a_question_name_who_spoke(turns, question):
    assert with_context(turns) == question
    assert own_question(question) == "Which one?"


@pytest.mark.parametrize(
    "question", ["", "Is\n\nThe question:\nhere?", "Not Earlier turns:\nUser: a\n\nThe question:\nb"]
)
def test_a_question_without_turns_before_it_stays_whole(question):
    assert own_question(question) == question


def test_the_last_mark_parts_a_question_from_its_turns():
    nested = with_context(["a\n\nThe question:\nb", "c", "d"])
    assert own_question(nested) == "d"


def test_marks_are_numbered_over_all_texts_from_one_on():
    assert numbered_marks(["<image> and <image>", "none", "A. <image>"]) == [
        "[image 1] and [image 2]",
        "none",
        "A. [image 3]",
    ]


def test_a_target_lies_on_the_first_image_unless_it_says_another():
    box = TruthBox("sign", 1, 2, 3, 4)
    assert (box.image, box.box) == (0, Box(1, 2, 3, 4))


def test_a_bare_sample_is_empty_but_for_what_is_known():
    image = ImageRef("a" * 64, 1, 1, "RGB", "PNG")
    empty = Sample("s", "", "", "", (), "Q?", (), "", Truth(), "")
    assert bare_sample("s", "Q?") == empty
    known = bare_sample("s", "Q?", (image,), answer="A", choices=("A. x", "B. y"), category="object")
    assert (known.images, known.answer, known.choices, known.category) == ((image,), "A", ("A. x", "B. y"), "object")
    assert (known.source, known.license) == ("", "")


@pytest.mark.parametrize(
    ("details", "read"), [(None, {}), ("", {}), ("[1]", {}), ("7", {}), ('{"a": 1}', {"a": 1}), ("{}", {})]
)
def test_details_are_an_object_or_nothing(details, read):
    assert details_of(sample(details)) == read


@pytest.mark.parametrize(
    ("details", "answers"),
    [
        (None, ("red",)),
        ({}, ("red",)),
        ({"accepted_answers": None}, ("red",)),
        ({"accepted_answers": []}, ("red",)),
        ({"accepted_answers": ["crimson", 12]}, ("red", "crimson", "12")),
    ],
)
def test_the_samples_own_answer_comes_before_the_others_that_are_right(details, answers):
    assert right_answers(sample(details, answer="red")) == answers


def test_details_that_accept_nothing_are_not_read_for_answers():
    assert right_answers(sample("no JSON", answer="red")) == ("red",)


MOMENT = TemporalSegment("sign", 3, 9)
VIDEOS = (VideoRef("v" * 64, "mp4", 1, 1, 24, 8.0), VideoRef("w" * 64, "mp4", 1, 1, 9, 8.0))


@pytest.mark.parametrize(
    ("moment", "error"),
    [
        (TemporalSegment("", 0, 1), ""),
        (TemporalSegment("", 23, 24), ""),
        (TemporalSegment("", 0, 9, video=1), ""),
        (TemporalSegment("", 0, 10, video=1), "its frames are 0 to 8"),
        (TemporalSegment("", 23, 25), "its frames are 0 to 23"),
        (TemporalSegment("", 5, 5), "its frames are 0 to 23"),
        (TemporalSegment("", 6, 5), "its frames are 0 to 23"),
        (TemporalSegment("", 0, 1, video=2), "no video has the moment"),
        (TemporalSegment("", -1, 1), "greater than or equal to 0"),
        (TemporalSegment("", 0, 1, video=-1), "greater than or equal to 0"),
    ],
)
def test_a_moment_lies_within_the_frames_of_its_own_video(moment, error):
    asked = sample(as_details([moment]), videos=VIDEOS)
    if not error:
        assert temporal_segments(asked) == (moment,)
    else:
        with pytest.raises(ValueError, match=error):
            temporal_segments(asked)


def test_a_moment_is_of_the_first_video_unless_it_says_another():
    asked = sample({"moments": [{"first": 3, "end": 9, "label": "sign"}]}, videos=VIDEOS)
    assert temporal_segments(asked) == (MOMENT,)


@pytest.mark.parametrize(
    "moment", [{"first": "3", "end": 9}, {"first": 3, "end": 9, "more": 1}, {"first": 3.0, "end": 9}]
)
def test_a_moment_of_another_form_is_none(moment):
    with pytest.raises(ValueError, match="not moments"):
        temporal_segments(sample({"moments": [moment]}, videos=VIDEOS))


SOLUTION = ReferenceSolution(idea="add", steps=("a", "b"), programs=("print(1)",), seen="1")


def test_a_known_solution_comes_back_as_it_was_kept():
    drawn = ReferenceSolution(**{**asdict(SOLUTION), "drawn": True})
    for solution in (SOLUTION, drawn):
        assert reference_solution(sample({"worked": solution.as_json()})) == solution
    assert not SOLUTION.drawn


@pytest.mark.parametrize("details", [None, {}, {"worked": None}])
def test_a_sample_without_a_solution_is_unsuitable(details):
    with pytest.raises(RowError, match="only a model") as raised:
        reference_solution(sample(details))
    assert raised.value.reason is Reason.UNSUITABLE
