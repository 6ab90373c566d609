"""The decision: read from whatever a policy writes around it, and made by the oracle from what is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from darkroom.pipelines.demo.oracle.family_script import obstacles
from darkroom.pipelines.generation.operation_planning import read_decision
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.records import ImageRef, Sample, Truth, TruthBox
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.vision.image_transform import Operation
from darkroom.pipelines.vision.visibility import Visibility


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ('{"issue": "fine", "operation": -1}', -1),
        ('{"issue": "on its side", "operation": 1, "primary": 1}', 1),
        ('{"operation": "3"}', 3),
        ('Well.\n```json\n{"operation": 2, "issue": "dim"}\n```\nSo it is.', 2),
        ('First {"operation": 1}, but no: {"operation": 3}', 3),
        ('{"operation": 3, "confidence": 0.9}', 3),
        ('{"plan": {"a": 1}} {"operation": 2}', 2),
        ("<think>small</think><answer>3</answer>", 3),
        ("<answer> -1 </answer>", -1),
        (" 2\n", 2),
        ('{"operation": 4, "primary": 1}', 4),
    ],
)
def test_a_decision_is_read_from_what_is_around_it(text, operation):
    assert read_decision(text).operation == operation


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I would rotate it.",
        '{"operation": 0}',
        '{"operation": 5}',
        '{"operation": true, "x": ',
        '{"operation": null}',
        '{"operation": "rotate"}',
        '{"issue": "dim"}',
        "[3]",
        '{"operation": 4}',
        '{"operation": 4, "primary": 4}',
        '{"operation": 4, "primary": -1}',
        "{" * 2000,
        '{"a":' * 2000,
    ],
)
def test_what_is_no_decision_is_a_malformed_turn_with_an_excerpt(text):
    with pytest.raises(RowError) as error:
        read_decision(text)
    assert error.value.reason is Reason.MALFORMED_TURN
    assert len(error.value.evidence) < 300


def test_the_primary_operation_is_the_operation_itself_unless_combined():
    assert read_decision('{"operation": 2, "primary": 3}').primary is Operation.LIGHTING
    assert read_decision('{"operation": 4, "primary": 3}').primary is Operation.REGION


def test_an_issue_is_one_line_of_bounded_length():
    issue = read_decision('{"operation": 1, "issue": "' + "word \\n " * 300 + '"}').issue
    assert "\n" not in issue
    assert len(issue) <= 300


def test_the_work_is_told_without_a_number():
    for text in ("-1", "1", "2", "3", '{"operation": 4, "primary": 2}'):
        assert not any(letter.isdigit() for letter in read_decision(text).work)


PLAIN = Visibility(90.0, 0.02, 200.0, None, 2400)


def task_of(sample: Sample, seen: Visibility | None) -> Task:
    hint = {"visibility": seen.as_json()} if seen else {}
    return Task("t" * 64, "direct", sample, sample.images, hint, (), 0)


@pytest.mark.parametrize(
    ("measured", "found"),
    [
        ({}, ()),
        ({"side": 20.0}, (Operation.REGION,)),
        ({"side": 40.0, "share": 0.001}, (Operation.REGION,)),
        ({"side": 40.0, "share": 0.001, "longest": 640}, ()),
        ({"angle": 90.0}, (Operation.DIRECTION,)),
        ({"angle": 360.0}, ()),
        ({"angle": -45.0}, (Operation.DIRECTION,)),
        ({"levels": 30.0}, (Operation.LIGHTING,)),
        ({"levels": 30.0, "angle": 180.0}, (Operation.DIRECTION, Operation.LIGHTING)),
        ({"side": 20.0, "levels": 30.0}, (Operation.LIGHTING, Operation.REGION)),
    ],
)
def test_the_oracle_sees_what_was_measured_to_stand_in_the_way(make_case, measured, found):
    assert obstacles(task_of(make_case().sample, replace(PLAIN, **measured))) == found


@pytest.mark.parametrize(("width", "found"), [(2400, (Operation.REGION,)), (640, ())])
def test_where_nothing_was_measured_the_box_and_the_size_decide(make_case, width, found):
    image = ImageRef("a" * 64, width, width * 3 // 4, "RGB", "PNG")
    sample = make_case(truth=Truth(boxes=(TruthBox("sign", 10, 10, 60, 50),)), images=(image,)).sample
    assert obstacles(task_of(sample, None)) == found


def test_a_sample_without_an_image_is_not_applicable(make_case):
    with pytest.raises(RowError) as error:
        obstacles(task_of(make_case(images=()).sample, None))
    assert error.value.reason is Reason.NOT_APPLICABLE
