"""The plug-in's comparison of what a person gave on a practice image, and what they get; its page: tests/e2e."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

import pytest

from darkroom.annotation._plugin.darkroom_studio.validation import (
    MOST_BOXES,
    draw_practice,
    overlap,
    practice_errors,
    read_boxes,
)
from darkroom.annotation.quality.agreement import mean_iou
from darkroom.pipelines.records import answers, geometry
from darkroom.pipelines.records.geometry import Box

RECTANGLE = {"x": 10, "y": 10, "width": 10, "height": 10}
IMAGE = {"answer": "7", "boxes": [[10, 10, 30, 30]], "is_planted": False, "own": "7.0", "own_boxes": [[11, 11, 31, 31]]}


def test_a_try_has_five_images_and_two_or_three_planted_errors() -> None:
    n_planted = set()
    for _ in range(200):
        drawn = draw_practice(dict.fromkeys("abcdefgh", 0))
        assert len({key for key, _ in drawn}) == 5
        n_planted.add(sum(planted for _, planted in drawn))
    assert n_planted == {2, 3}


def test_images_come_again_only_when_all_were_there() -> None:
    n_before = Counter(dict.fromkeys("abcdefghijkl", 0))
    for n_tries in range(1, 8):
        n_before.update(key for key, _ in draw_practice(n_before))
        assert max(n_before.values()) - min(n_before.values()) <= 1, n_tries


@pytest.mark.parametrize(
    ("changes", "verdict", "wrong"),
    [
        ({}, "accept", []),
        ({}, "reject", ["verdict"]),
        ({"is_planted": True}, "accept", ["verdict"]),
        ({"is_planted": True}, "reject", []),
        ({"own": "8"}, "accept", ["answer"]),
        ({"own_boxes": [[20, 20, 40, 40]]}, "accept", ["box"]),
        ({"own_boxes": [[11, 11, 31, 31], [200, 200, 240, 240], [300, 1, 310, 9]]}, "accept", ["box"]),
        ({"own": "", "own_boxes": [[200, 200, 240, 240]]}, "reject", ["answer", "box", "verdict"]),
    ],
)
def test_an_image_is_right_if_answer_box_and_verdict_are(changes: dict, verdict: str, wrong: list[str]) -> None:
    assert practice_errors(IMAGE | changes, verdict) == wrong


def test_overlap_is_that_of_the_quality_figures() -> None:
    first = [Box(0, 0, 10, 10), Box(20, 20, 40, 40)]
    for second in ([Box(22, 20, 40, 40), Box(1, 0, 10, 10)], [Box(0, 0, 10, 10)], [*first, Box(50, 50, 60, 60)]):
        assert overlap(first, second) == pytest.approx(mean_iou(first, second))


def test_boxes_of_a_page_are_read_in_pixels() -> None:
    assert read_boxes([RECTANGLE], (400, 300)) == [(40, 30, 80, 60)]


@pytest.mark.parametrize(
    "sent",
    [
        None,
        [],
        {},
        [1],
        [RECTANGLE] * (MOST_BOXES + 1),
        [RECTANGLE | {"width": 0}],
        [RECTANGLE | {"x": float("nan")}],
        [RECTANGLE | {"x": 200}],
        [{"x": "1"}],
    ],
)
def test_what_is_no_box_of_the_image_is_refused(sent: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_boxes(sent, (400, 300))


@pytest.mark.parametrize("module", [answers, geometry])
def test_the_modules_that_the_plug_in_loads_from_their_files_need_only_python(module: object) -> None:
    tree = ast.parse(Path(module.__file__).read_text())  # type: ignore[attr-defined]
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {str(name).partition(".")[0] for name in imported} <= sys.stdlib_module_names
