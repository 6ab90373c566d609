"""Boxes of crops, repaired while the code runs: on the image that they apply to, reported, and never more than that."""

import ast
import builtins
import math
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from sandbox._guest.boxes import Repairs, fit_box

SIZE = WIDTH, HEIGHT = 200, 100
MOST_PIXELS = Image.MAX_IMAGE_PIXELS or 0
ONE_CELL = [HealthCheck.function_scoped_fixture]
PLAIN = {name: getattr(Image.Image, name) for name in ("crop", "resize")}


class Cell:
    """Runs code as the session does: named as a cell, its slices prepared."""

    def __init__(self, repairs: Repairs) -> None:
        self.repairs = repairs
        rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
        self.array = np.stack([rows, columns, rows + columns], axis=-1).astype(np.uint8)
        self.names: dict[str, Any] = {"np": np, "array": self.array, "image": Image.fromarray(self.array)}

    def run(self, code: str, **names: Any) -> Any:
        """The value of `result`."""
        self.repairs.begin()
        self.names |= names
        tree = self.repairs.instrument(ast.parse(code, "<cell 0>"))
        exec(compile(tree, "<cell 0>", "exec"), self.names)
        return self.names.pop("result", None)

    @property
    def edits(self) -> list[tuple[str, str]]:
        assert {edit.kind for edit in self.repairs.edits} <= {"clamp_box"}
        return [(edit.before, edit.after) for edit in self.repairs.edits]


@pytest.fixture
def cell() -> Iterator[Cell]:
    """Undone after each test: Pillow is everybody's."""
    repairs = Repairs(enabled=True)
    repairs.install()
    try:
        yield Cell(repairs)
    finally:
        repairs.uninstall()
        assert {name: getattr(Image.Image, name) for name in PLAIN} == PLAIN


def outcome_of(act: Callable[[], Any]) -> tuple[Any, str]:
    """The value, or the text of the ValueError."""
    try:
        return act(), ""
    except ValueError as error:
        return None, str(error)


# --- the rule

sides = st.one_of(
    st.integers(-500, 500), st.floats(-500, 500), st.floats(allow_nan=False), st.integers(), st.just(math.inf)
)
sizes = st.tuples(st.integers(1, 300), st.integers(1, 300))


@settings(deadline=None, max_examples=300)
@given(st.tuples(sides, sides, sides, sides), sizes)
def test_a_box_ends_inside_or_the_error_names_it(box: tuple[float, ...], size: tuple[int, int]) -> None:
    fitted, error = outcome_of(lambda: fit_box(box, size, name="crop box"))
    if fitted is None:
        assert error.startswith("crop box ")
        assert error.endswith(f"the image of {size[0]}x{size[1]}")
        return
    x1, y1, x2, y2 = fitted
    assert 0 <= x1 < x2 <= size[0]
    assert 0 <= y1 < y2 <= size[1]
    assert fit_box(fitted, size, name="") == fitted


@settings(deadline=None)
@given(sizes, st.data())
def test_a_box_inside_is_left_alone(size: tuple[int, int], data: st.DataObject) -> None:
    x1, y1 = data.draw(st.integers(0, size[0] - 1)), data.draw(st.integers(0, size[1] - 1))
    box = (x1, y1, data.draw(st.integers(x1 + 1, size[0])), data.draw(st.integers(y1 + 1, size[1])))
    assert fit_box(box, size, name="") == box


@settings(deadline=None, max_examples=300, suppress_health_check=ONE_CELL)
@given(st.tuples(sides, sides, sides, sides), st.sampled_from([tuple, list, np.array]))
def test_pillow_gets_a_box_that_shows_something_or_the_code_an_error(cell: Cell, box: Any, container: Any) -> None:
    cropped, error = outcome_of(lambda: cell.run("result = image.crop(box)", box=container(box)))
    if cropped is None:
        assert error.startswith("crop box ")
        return
    x1, y1, x2, y2 = (round(max(-1e9, min(side, 1e9))) for side in box)
    is_padded = max(x1, 0) < min(x2, WIDTH) and max(y1, 0) < min(y2, HEIGHT) and (x2 - x1) * (y2 - y1) <= MOST_PIXELS
    fitted = (x1, y1, x2, y2) if is_padded else fit_box((x1, y1, x2, y2), SIZE, name="")
    assert cropped == PLAIN["crop"](cell.names["image"], fitted)
    assert bool(cell.edits) == (fitted != (x1, y1, x2, y2) or container is np.array)


# --- Pillow


@pytest.mark.parametrize(
    ("call", "edit", "size"),
    [
        (
            "image.crop((100, 50, 9**9, 80))",
            ("crop((100, 50, 387420489, 80))", "crop((100, 50, 200, 80))"),
            (100, 30),
        ),
        ("image.crop(box=[20, 10, -5, -5])", ("crop([20, 10, -5, -5])", "crop((0, 0, 20, 10))"), (20, 10)),
        ("image.crop((100, 80, 50, 10))", ("crop((100, 80, 50, 10))", "crop((50, 10, 100, 80))"), (50, 70)),
        (
            "image.crop(np.array([1, 2, 30, 40]))",
            ("crop(np.array([1, 2, 30, 40]))", "crop((1, 2, 30, 40))"),
            (29, 38),
        ),
        (
            "image.crop((np.int64(0), np.float32(0.5), 2, 1e9))",
            ("crop((0, 0.5, 2, 1000000000.0))", "crop((0, 0, 2, 100))"),
            (2, 100),
        ),
        (
            "image.crop((float('-inf'), 0, float('inf'), 9))",
            ("crop((-inf, 0, inf, 9))", "crop((0, 0, 200, 9))"),
            (200, 9),
        ),
        (
            "image.resize((9, 9), 0, (0, 0, 300.5, 50))",
            ("resize(box=(0, 0, 300.5, 50))", "resize(box=(0, 0, 200, 50))"),
            (9, 9),
        ),
        (
            "image.resize((9, 9), box=[50.5, 0, 10, 50])",
            ("resize(box=[50.5, 0, 10, 50])", "resize(box=(10, 0, 50.5, 50))"),
            (9, 9),
        ),
        (
            "(lambda one: one.crop((0, 9, 999, 0)))(image)",
            ("crop((0, 9, 999, 0))", "crop((0, 0, 200, 9))"),
            (200, 9),
        ),
        ("next(map(image.crop, [(0, 9, 999, 0)]))", ("crop((0, 9, 999, 0))", "crop((0, 0, 200, 9))"), (200, 9)),
        (
            "image.crop(np.array([-9, 2, 30, 40]))",
            ("crop(np.array([-9, 2, 30, 40]))", "crop((-9, 2, 30, 40))"),
            (39, 38),
        ),
    ],
)
def test_a_box_that_would_give_nothing_is_repaired_and_reported(
    cell: Cell, call: str, edit: tuple[str, str], size: tuple[int, int]
) -> None:
    assert cell.run(f"result = {call}").size == size
    assert cell.edits == [edit]
    assert all(ast.parse(text) for text in edit)


@pytest.mark.parametrize(
    "box", [(100, 50, 9000, 80), [-5, -5, 20, 10], (-300, -200, 500, 300), (199.4, 99.4, 201, 300)]
)
def test_a_crop_beyond_the_border_is_padded_with_black_as_by_pillow(cell: Cell, box: Any) -> None:
    cropped = cell.run("result = image.crop(box)", box=box)
    assert cropped == PLAIN["crop"](cell.names["image"], box)
    assert not np.asarray(cropped)[-1, -1].any() or not np.asarray(cropped)[0, 0].any()
    assert cell.edits == []


def test_a_box_counts_for_the_image_that_it_is_cut_from(cell: Cell) -> None:
    code = "big = image.resize((400, 300))\nresult = [big.crop(box), big.crop(box).crop(box)]"
    large, small = cell.run(code, box=(0, 0, 350, 250))
    assert (large.size, small.size) == ((350, 250), (350, 250))
    assert cell.edits == []
    assert cell.run("result = image.crop((350, 250, 0, 0))").size == SIZE


@pytest.mark.parametrize("box", [(0, 0, 200, 100), [10, 20, 30, 40], (0.4, -0.3, 199.6, 100.4), (np.int64(1), 2, 3, 4)])
def test_a_box_inside_goes_to_pillow_as_it_is(cell: Cell, box: Any) -> None:
    assert cell.run("result = image.crop(box)", box=box) == PLAIN["crop"](cell.names["image"], box)
    assert cell.edits == []


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("image.crop((2100, 50, 2600, 80))", "crop box (2100, 50, 2600, 80) is outside the image of 200x100"),
        ("image.crop([-9, -9, 0, 0])", "crop box [-9, -9, 0, 0] is outside the image of 200x100"),
        ("image.crop((5, 5, 5, 50))", "crop box (5, 5, 5, 50) has no area in the image of 200x100"),
        ("image.crop((99.6, 0, 100.4, 9))", "crop box (99.6, 0, 100.4, 9) has no area in the image of 200x100"),
        (
            "image.crop((float('nan'), 0, 5, 9))",
            "crop box (nan, 0, 5, 9) has a side that is not a number, in the image of 200x100",
        ),
        (
            "image.resize((5, 5), box=(0, 300, 5, 400))",
            "resize box (0, 300, 5, 400) is outside the image of 200x100",
        ),
        ("array[150:160, 0:9]", "slice [150:160, 0:9] is outside the image of 200x100"),
        ("array[10:20, 500:400]", "slice [10:20, 500:400] is outside the image of 200x100"),
        ("array[5:5, 0:9]", "slice [5:5, 0:9] has no area in the image of 200x100"),
        ("array[-9:-300, 0:9, ::-1]", "slice [-9:-300, 0:9] is outside the image of 200x100"),
    ],
)
def test_a_box_without_pixels_is_an_error_that_names_it(cell: Cell, call: str, told: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole text is compared
        cell.run(f"\nresult = {call}")
    assert str(caught.value) == told
    assert [frame.lineno for frame in traceback.extract_tb(caught.tb) if frame.filename == "<cell 0>"] == [2]
    assert cell.edits == []


@pytest.mark.parametrize(
    "box",
    [None, (1, 2, 3), ("1", "2", "3", "4"), 7, "box", np.zeros((4, 2)), np.array(5), (1, 2, 3, None), {1, 2, 3, 4}],
)
def test_anything_else_is_pillows_own_business(cell: Cell, box: Any) -> None:
    def outcome(crop: Any) -> Any:
        try:
            return crop()
        except Exception as error:
            return type(error), str(error)

    image = cell.names["image"]
    assert outcome(lambda: cell.run("result = image.crop(box)", box=box)) == outcome(lambda: PLAIN["crop"](image, box))


def test_a_huge_number_makes_no_huge_text(cell: Cell) -> None:
    cell.run("image.crop((0, 0, 10**6000, 10))\narray[10**6000:0, 0:5]")
    assert cell.edits[0] == ("crop((0, 0, 9007199254740992, 10))", "crop((0, 0, 200, 10))")


def test_crops_of_libraries_are_not_touched(cell: Cell) -> None:
    assert cell.run("result = crop(image, -5)", crop=ImageOps.crop).size == (210, 110)
    assert cell.names["image"].crop((-10, 0, 20, 30)).size == (30, 30)
    cell.run("image.copy().thumbnail((20, 20)); image.convert('RGBA').resize((9, 9))")
    assert cell.edits == []


def test_pillows_signatures_stay(cell: Cell) -> None:
    assert cell.run("import inspect; result = str(inspect.signature(image.crop))").startswith("(box: ")
    with pytest.raises(TypeError, match=r"crop\(\) got an unexpected keyword argument 'area'"):
        cell.run("image.crop(area=(1, 2, 3, 4))")


# --- slices


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


@settings(deadline=None, max_examples=500, suppress_health_check=ONE_CELL)
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
        repairs.uninstall()


def test_nested_code_is_prepared_without_recursion(cell: Cell) -> None:
    deep = "1" + " + 1" * 900
    assert cell.run(f"result = ({deep}, array[80:50, 1:9].shape[0])") == (901, 30)


# --- what is told


def test_many_edits_are_counted(cell: Cell) -> None:
    cell.run("for n in range(1064): image.crop((0, 50, 201 + n, 0))")
    assert len(cell.edits) == 65
    assert cell.edits[-1] == ("", "# … and 1000 more")


def test_the_same_edit_in_a_row_is_told_once(cell: Cell) -> None:
    cell.run("for n in range(9): image.crop((0, 50, 300, 0))\nimage.crop((0, 50, 301, 0))\nimage.crop((0, 50, 300, 0))")
    assert [before for before, _ in cell.edits] == [
        "crop((0, 50, 300, 0))",
        "crop((0, 50, 301, 0))",
        "crop((0, 50, 300, 0))",
    ]


def test_each_call_tells_its_own(cell: Cell) -> None:
    cell.run("image.crop((0, 50, 300, 0))")
    cell.run("")
    assert cell.edits == []


# --- on and off


def test_switched_off_it_is_plain_python() -> None:
    repairs = Repairs(enabled=False)
    repairs.install()
    plain = Cell(repairs)
    assert {name: getattr(Image.Image, name) for name in PLAIN} == PLAIN
    assert plain.run("result = image.crop((-10, 0, 20, 30))").size == (30, 30)
    assert plain.run("result = array[80:50, 1:9]").size == 0
    assert not [name for name in vars(builtins) if not name.isidentifier()]


def test_uninstalled_nothing_stays_behind() -> None:
    repairs = Repairs(enabled=True)
    repairs.install()
    repairs.install()
    assert "crop" in repr(Image.Image.crop)
    assert Image.Image.crop is not PLAIN["crop"]
    repairs.uninstall()
    repairs.uninstall()
    assert {name: getattr(Image.Image, name) for name in PLAIN} == PLAIN
    assert not [name for name in vars(builtins) if not name.isidentifier()]


def test_preparing_thirty_lines_costs_nothing_to_speak_of(cell: Cell) -> None:
    code = "part = array[10:20, 5:9]\nif part.size:\n    print(f'{part.mean():.2f}', part.shape)\n" * 10
    trees = [ast.parse(code) for _ in range(50)]

    def seconds(tree: ast.Module) -> float:
        started = time.perf_counter()
        cell.repairs.instrument(tree)
        return time.perf_counter() - started

    assert min(map(seconds, trees)) < 1e-3
