"""The decision: read from whatever a policy writes around it, and made by the oracle from what is known."""

from __future__ import annotations

import pytest

from pipelines.demo.oracle.family_script import obstacles
from pipelines.generation.operation_planning import read_decision
from pipelines.records import ImageRef, Truth, TruthBox
from pipelines.records.reject_reasons import Reason, RowError
from pipelines.vision.image_transform import Operation


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


SMALL, LARGE = (TruthBox("sign", 10, 10, 40, 30),), (TruthBox("sign", 0, 0, 900, 700),)


@pytest.mark.parametrize(
    ("truth", "width", "found"),
    [
        (Truth(), 2400, ()),
        (Truth(boxes=SMALL), 2400, (Operation.REGION,)),
        (Truth(boxes=SMALL), 640, ()),
        (Truth(boxes=LARGE), 2400, ()),
        (Truth(angle=90), 640, (Operation.DIRECTION,)),
        (Truth(angle=360), 640, ()),
        (Truth(angle=-45), 640, (Operation.DIRECTION,)),
        (Truth(contrast=0.2), 640, (Operation.LIGHTING,)),
        (Truth(contrast=0.9), 640, ()),
        (Truth(angle=180, contrast=0.2), 640, (Operation.DIRECTION, Operation.LIGHTING)),
        (Truth(boxes=SMALL, contrast=0.2), 2400, (Operation.LIGHTING, Operation.REGION)),
    ],
)
def test_the_oracle_sees_what_is_known_to_stand_in_the_way(make_case, truth, width, found):
    image = ImageRef("a" * 64, width, width * 3 // 4, "RGB", "PNG")
    assert obstacles(make_case(truth=truth, images=(image,)).sample) == found


def test_a_sample_without_an_image_is_not_applicable(make_case):
    with pytest.raises(RowError) as error:
        obstacles(make_case(images=()).sample)
    assert error.value.reason is Reason.NOT_APPLICABLE
