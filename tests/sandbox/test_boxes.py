"""Boxes of crops, repaired while the code runs: on the image that they apply to, reported, and never more than that."""

import ast
import builtins
import math
import traceback
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image, ImageOps

from darkroom.sandbox._guest.boxes import Repairs, fit_box
from tests.matrices import fewer_quickly
from tests.sandbox.cells import HEIGHT, ONE_CELL, PLAIN, SIZE, WIDTH, Cell, outcome_of

MOST_PIXELS = Image.MAX_IMAGE_PIXELS or 0


# --- the rule

sides = st.one_of(
    st.integers(-500, 500), st.floats(-500, 500), st.floats(allow_nan=False), st.integers(), st.just(math.inf)
)
sizes = st.tuples(st.integers(1, 300), st.integers(1, 300))


@settings(deadline=None, max_examples=fewer_quickly(300))
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


@settings(deadline=None, max_examples=fewer_quickly(300), suppress_health_check=ONE_CELL)
@given(st.tuples(sides, sides, sides, sides), st.sampled_from([tuple, list, np.array]))
def test_pillow_gets_a_box_that_shows_something_or_the_code_an_error(cell: Cell, box: Any, container: Any) -> None:
    cropped, error = outcome_of(lambda: cell.run("result = image.crop(box)", box=container(box)))
    if cropped is None:
        assert error.startswith("crop box ") or " has fractions: " in error
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
            ("crop(np.array([-9, 2, 30, 40]))", "crop((0, 2, 30, 40))"),
            (30, 38),
        ),
    ],
)
def test_a_box_that_would_give_nothing_is_repaired_and_reported(
    cell: Cell, call: str, edit: tuple[str, str], size: tuple[int, int]
) -> None:
    assert cell.run(f"result = {call}").size == size
    assert cell.edits == [edit]
    assert all(ast.parse(text) for text in edit)


@pytest.mark.parametrize("box", [(-300, -200, 500, 300), [0, 0, 200, 120], (-1, 0, 200, 100)])
def test_a_crop_that_holds_the_whole_image_is_padded_with_black_as_by_pillow(cell: Cell, box: Any) -> None:
    cropped = cell.run("result = image.crop(box)", box=box)
    assert cropped == PLAIN["crop"](cell.names["image"], box)
    assert not np.asarray(cropped)[-1, -1].any() or not np.asarray(cropped)[0, 0].any()
    assert cell.edits == []


@pytest.mark.parametrize(
    ("box", "clamped"),
    [
        ((100, 50, 9000, 80), (100, 50, 200, 80)),
        ([-5, -5, 20, 10], (0, 0, 20, 10)),
        ((198.4, 98.4, 201, 300), (198, 98, 200, 100)),
        ((-5, 10, 205, 20), (0, 10, 200, 20)),
    ],
)
def test_a_crop_beyond_the_border_is_clamped_and_reported(cell: Cell, box: Any, clamped: tuple[int, ...]) -> None:
    assert cell.run("result = image.crop(box)", box=box) == PLAIN["crop"](cell.names["image"], clamped)
    assert [after for _, after in cell.edits] == [f"crop({clamped})"]


def test_a_box_that_is_a_string_is_an_error_that_says_so(cell: Cell) -> None:
    with pytest.raises(TypeError, match="crop takes four numbers"):
        cell.run("image.crop('[1, 2, 3, 4]')")
    with pytest.raises(TypeError, match="four numbers"):
        cell.run("image.crop(['1', '2', '3', '4'])")
    with pytest.raises(TypeError, match="four numbers"):
        cell.run("image.crop([(1, 2), (3, 4)])")
    with pytest.raises(ValueError, match="has fractions: a box counts pixels"):
        cell.run("image.crop((0.1, 0.2, 0.3, 0.4))")


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
    [None, (1, 2, 3), 7, np.zeros((4, 2)), np.array(5), (1, 2, 3, None), {1, 2, 3, 4}],
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


def test_switched_on_it_bears_pillows_names(cell: Cell) -> None:
    assert "crop" in repr(Image.Image.crop)
    assert Image.Image.crop is not PLAIN["crop"]
