"""Programs are parsed by many threads at once, and garbage is collected in between."""

from __future__ import annotations

import ast
import gc
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from darkroom.pipelines.models import parsing
from darkroom.pipelines.models.parsing import literal_boxes, parsed
from darkroom.pipelines.records.geometry import Box


@pytest.fixture
def busy_collector() -> Iterator[None]:
    """Every few objects a collection, which lets another thread run."""

    def give_way(*_: object) -> None:
        time.sleep(0)

    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(20)
    gc.callbacks.append(give_way)
    yield
    gc.callbacks.remove(give_way)
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval)


def test_threads_that_parse_at_once_do_not_disturb_each_other(busy_collector: None) -> None:
    code = Path(parsing.__file__).read_text()
    with ThreadPoolExecutor(8) as threads:
        trees = list(threads.map(parsed, [code] * 120))
    assert all(isinstance(tree, ast.Module) for tree in trees)


@pytest.mark.parametrize("code", ["x = (", "\0", "(" * 1000])
def test_what_does_not_parse_is_none(code: str) -> None:
    assert parsed(code) is None


def test_what_another_librarys_parser_disturbs_is_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    disturbed, parse = [True, True], ast.parse

    def disturbed_parse(code: str) -> ast.Module:
        if disturbed:
            disturbed.pop()
            raise SystemError("AST constructor recursion depth mismatch (before=51, after=47)")
        return parse(code)

    monkeypatch.setattr(ast, "parse", disturbed_parse)
    assert literal_boxes("box = (1, 2, 30, 40)", 640, 480) == [Box(1, 2, 30, 40)]
    assert not disturbed


def test_a_strange_escape_is_no_warning() -> None:
    assert parsed('"\\d"') is not None


@pytest.mark.parametrize(
    "code",
    [
        "(1, 2, 3)",
        "(9, 9, 1, 1)",
        "('1', 2, 3, 4)",
        "(True, False, 3, 4)",
        "f(1, 2, 3, 4)",
        "(1, 2, x, 4)",
        "a[1:2]",
        "a[1:2, :4]",
        "a[1, 2:3]",
        f"(0, 0, 1, {'9' * 400})",
        "(0, 0, 1, 1e999)",
        "x = '\0'",
        "(" * 5000,
        "-" * 20_000 + "1",
        "\ud800",
    ],
)
def test_code_without_a_box_has_none(code):
    assert literal_boxes(code, 640, 480) == []


def test_code_with_an_odd_escape_warns_nobody():
    assert literal_boxes("'\\d'; box = (1, 2, 3, 4)", 640, 480) == [Box(1, 2, 3, 4)]


def test_boxes_come_once_and_negative_ones_too():
    assert literal_boxes("a = (1, 2, 3, 4); b = [1, 2, 3, 4]; c = (-1, -2, 3, 4)", 640, 480) == [
        Box(1, 2, 3, 4),
        Box(-1, -2, 3, 4),
    ]


def test_fractions_are_of_the_image():
    code = "left, top, right, bottom = 0.39, 0.5, 0.43, 1"
    assert literal_boxes(code, 3200, 1700) == [Box(1248, 850, 1376, 1700)]
    assert literal_boxes("crop((0, 0, 1, 1))", 640, 480) == [Box(0, 0, 1, 1)]
