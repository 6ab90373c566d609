"""Slices of arrays that would be empty, repaired while the code runs; anything else is Python's own."""

import ast
import sys
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from darkroom.sandbox._guest.boxes import Repairs
from tests.matrices import fewer_quickly
from tests.sandbox.cells import ONE_CELL, Cell, outcome_of, take_back


@pytest.mark.parametrize(
    ("code", "after", "box"),
    [
        ("array[80:50, 10:90]", "image[50:80, 10:90]", (10, 50, 90, 80)),
        ("array[50:80, 9000:10]", "image[50:80, 10:200]", (10, 50, 200, 80)),
        ("array[-50:40, 10:90]", "image[0:40, 10:90]", (10, 0, 90, 40)),
        ("array[50:80, 100:-150]", "image[50:80, 0:100]", (0, 50, 100, 80)),
        ("array[80:50, -50:-10]", "image[50:80, 150:190]", (150, 50, 190, 80)),
        ("array[80:50, -500:999]", "image[50:80, 0:200]", (0, 50, 200, 80)),
        ("array[np.int64(80):50:1, 10:90, :]", "image[50:80, 10:90]", (10, 50, 90, 80)),
    ],
)
def test_a_slice_that_would_be_empty_is_repaired(cell: Cell, code: str, after: str, box: tuple[int, ...]) -> None:
    result = cell.run(f"result = {code}")
    x1, y1, x2, y2 = box
    assert np.array_equal(result, cell.array[y1:y2, x1:x2])
    assert np.shares_memory(result, cell.array)
    before = code.removeprefix("array").replace("np.int64(80):50:1", "80:50").replace(", :]", "]")
    assert cell.edits == [(f"image{before}", after)]


def test_what_else_is_asked_of_a_slice_is_kept(cell: Cell) -> None:
    assert np.array_equal(cell.run("result = array[80:50, 10:90, ::-1]"), cell.array[50:80, 10:90, ::-1])
    assert np.array_equal(cell.run("result = array[80:50, 10:90, 1]"), cell.array[50:80, 10:90, 1])
    assert cell.run("result = array[10:20, 10:90, 3:]").shape == (10, 80, 0)
    assert cell.run("result = array[80:50, 10:90, 3:]").shape == (0, 80, 0)
    assert cell.edits == []


ends = st.one_of(st.none(), st.integers(-250, 250))
slices = st.builds(slice, ends, ends, st.sampled_from([None, None, 1, -1, 2]))


@settings(deadline=None, max_examples=fewer_quickly(500), suppress_health_check=ONE_CELL)
@given(slices, slices, st.sampled_from(["", ", :", ", ::-1", ", 0", ", 3:", ", ..."]))
def test_a_slice_with_pixels_is_numpys(cell: Cell, rows: slice, columns: slice, rest: str) -> None:
    def text(side: slice) -> str:
        return ":".join("" if end is None else str(end) for end in (side.start, side.stop, side.step))

    key = f"{text(rows)}, {text(columns)}{rest}"
    plain = eval(f"array[{key}]", {"array": cell.array})
    result, error = outcome_of(lambda: cell.run(f"result = array[{key}]"))
    if result is None:
        assert plain.size == 0
        assert error.startswith("slice [")
    elif plain.size:
        assert cell.edits == []
        assert np.array_equal(result, plain)
    else:
        assert bool(cell.edits) == bool(result.size)


@pytest.mark.parametrize(
    "thing",
    [
        np.zeros((100, 200)),
        np.zeros((100, 200), np.int64),
        np.zeros((100, 200), bool),
        np.zeros((100, 200, 2), np.uint8),
        np.zeros((100, 200, 3), np.int32),
        np.zeros((5, 100, 200, 3), np.uint8),
        np.zeros((0, 200, 3), np.uint8),
        np.ma.masked_array(np.zeros((100, 200), np.uint8)),
    ],
)
def test_what_is_no_image_is_left_alone(cell: Cell, thing: Any) -> None:
    assert cell.run("result = thing[80:50, 10:90]", thing=thing).size == 0
    assert cell.edits == []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_images_have_channels(cell: Cell, dtype: type) -> None:
    assert cell.run("result = thing[80:50, 10:90]", thing=np.zeros((100, 200, 3), dtype)).shape == (30, 80, 3)


class Told:
    """Says what it was asked, and from where."""

    def __getitem__(self, key: Any) -> Any:
        return key, sys._getframe(1).f_code.co_filename


def test_other_objects_are_indexed_by_the_code_itself(cell: Cell) -> None:
    assert cell.run("result = told[9:3, 4:1, 'x']", told=Told()) == ((slice(9, 3), slice(4, 1), "x"), "<cell 0>")
    with pytest.raises(TypeError, match="'int' object is not subscriptable"):
        cell.run("result = (5)[9:3, 4:1]")


def test_what_is_sliced_is_evaluated_once_and_first(cell: Cell) -> None:
    code = """
calls = []
def note(name, value):
    calls.append(name)
    return value
note('array', array)[note('y1', 80):note('y2', 50), note('x1', 1):note('x2', 9)]
result = calls
"""
    assert cell.run(code) == ["array", "y1", "y2", "x1", "x2"]


@pytest.mark.parametrize(
    "code",
    [
        "own[80:50, 10:90] = 7",
        "own[80:50, 10:90] += 7",
        "own[80:50, 10:90][:] = 7",
        "own[80:50, 10:90].flat = 7",
        "for own[80:50, 10:90] in [7]: pass",
    ],
)
def test_targets_of_assignments_are_left_alone(cell: Cell, code: str) -> None:
    own = cell.array.copy()
    cell.run(code, own=own)
    assert np.array_equal(own, cell.array)
    assert cell.edits == []


def test_slices_in_functions_classes_and_texts_are_repaired(cell: Cell) -> None:
    code = """
def cut(a):
    return [a[80:50, 1:9] for _ in range(1)]
class C:
    part = array[80:50, 1:9]
result = [cut(array)[0], C.part, (lambda: array[80:50, 1:9][20:10, 0:5])()]
text = f"{array[80:50, 1:9].shape}"
"""
    assert [part.shape[:2] for part in cell.run(code)] == [(30, 8), (30, 8), (10, 5)]
    assert cell.names["text"] == "(30, 8, 3)"


def test_the_places_of_the_code_stay() -> None:
    repairs = Repairs(enabled=True)
    repairs.install()
    try:
        code = "x = 1\ny = (\n    array\n    [80:50, 1:9]\n)\n"
        tree = repairs.instrument(ast.parse(code))
        places = [
            (node.lineno, node.col_offset, node.end_lineno)
            for node in ast.walk(tree)
            if isinstance(node, ast.Subscript | ast.Call)
        ]
        assert places == [(3, 4, 4), (3, 4, 3)]
        compile(tree, "<cell 0>", "exec")
    finally:
        take_back()


def test_nested_code_is_prepared_without_recursion(cell: Cell) -> None:
    deep = "1" + " + 1" * 900
    assert cell.run(f"result = ({deep}, array[80:50, 1:9].shape[0])") == (901, 30)


def test_preparing_thirty_lines_costs_nothing_to_speak_of(cell: Cell) -> None:
    code = "part = array[10:20, 5:9]\nif part.size:\n    print(f'{part.mean():.2f}', part.shape)\n" * 10
    trees = [ast.parse(code) for _ in range(50)]

    def seconds(tree: ast.Module) -> float:
        started = time.perf_counter()
        cell.repairs.instrument(tree)
        return time.perf_counter() - started

    assert min(map(seconds, trees)) < 1e-3
