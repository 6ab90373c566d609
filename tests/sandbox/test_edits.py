"""Rewrites of the code: only what helps, and every one reported."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox import Edit, SandboxPool, Session
from sandbox._guest.clamp import BoxClamp, clamp_box
from sandbox._guest.edits import clamp_boxes, parse_repaired

SIZE = (200, 100)
sides = st.one_of(st.integers(-10_000, 10_000), st.floats(-1e4, 1e4))


@settings(deadline=None)
@given(st.tuples(sides, sides, sides, sides))
def test_a_clamped_box_lies_in_the_image_and_stays_there(box: tuple[float, ...]) -> None:
    clamped = clamp_box(box, SIZE)
    assert all(0 <= side <= most for side, most in zip(clamped, SIZE * 2, strict=True))
    assert clamp_box(clamped, SIZE) == clamped


@settings(deadline=None)
@given(st.tuples(st.integers(0, 200), st.integers(0, 100), st.integers(0, 200), st.integers(0, 100)))
def test_a_box_in_the_image_is_left_alone(box: tuple[int, ...]) -> None:
    code = f"crop_box = {box}"
    assert clamp_boxes(ast.parse(code), code, BoxClamp([SIZE])) == []


@settings(deadline=None)
@given(st.tuples(sides, sides, sides, sides))
def test_the_clamped_code_binds_the_clamped_box(box: tuple[float, ...]) -> None:
    code = f"bbox = {list(box)}"
    tree = ast.parse(code)
    clamp_boxes(tree, code, BoxClamp([SIZE]))
    names: dict = {}
    exec(compile(tree, "<test>", "exec"), names)
    assert names["bbox"] == list(clamp_box(box, SIZE))


def edits_of(code: str, *sizes: tuple[int, int]) -> list[tuple[str, str]]:
    found = clamp_boxes(ast.parse(code), code, BoxClamp(sizes or [SIZE]))
    return [(edit.before, edit.after) for edit in found]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("box = (10, 20, 300, 400)", "box = (10, 20, 200, 100)"),
        ("Crop_Coords = [-5, 0, 20, 30]", "Crop_Coords = [0, 0, 20, 30]"),
        ("x1, y1, x2, y2 = 10, 20, 300, 40", "x1, y1, x2, y2 = (10, 20, 200, 40)"),
        ("left, top, right, bottom = (5, 5, 10, 900)", "left, top, right, bottom = (5, 5, 10, 100)"),
        ("box: tuple = (10, 20, 300, 40)", "box: tuple = (10, 20, 200, 40)"),
    ],
)
def test_a_box_outside_the_image_is_moved_into_it(before: str, after: str) -> None:
    assert edits_of(before) == [(before, after)]


@pytest.mark.parametrize(
    "code",
    [
        "left, top, right, bottom = (5, 5, 10, 10)",  # small, and stays small
        "size = (1, 2, 3000, 4000)",
        "box = (1, 2, 3000)",
        "box = (x, 2, 3000, 4000)",
        "big = image_clue_0.resize((400, 200))\nbox = (10, 20, 300, 150)\nbig.crop(box)",
        "other = Image.open('made_before.png')\nbox = (10, 20, 300, 150)",
    ],
)
def test_a_box_that_may_be_meant_is_left_alone(code: str) -> None:
    assert edits_of(code) == []


def test_a_box_counts_for_the_image_that_the_code_names() -> None:
    code = "image = Image.open(image_path_1)\nbox = (0, 0, 500, 50)"
    assert edits_of(code, SIZE, (600, 600)) == []
    assert edits_of(code.replace("path_1", "path_0"), SIZE, (600, 600)) != []


def test_a_box_after_an_earlier_round_resized_is_left_alone() -> None:
    clamp = BoxClamp([SIZE])
    for code, n_edits in (("big = image_clue_0.resize((400, 200))", 0), ("box = (0, 0, 300, 150)", 0)):
        assert len(clamp_boxes(ast.parse(code), code, clamp)) == n_edits
    again = "image = Image.open(image_path)\nbox = (0, 0, 300, 150)"
    assert len(clamp_boxes(ast.parse(again), again, clamp)) == 1


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("dedent", "    x = 1\n    y = 2"),
        ("align_first_line", "x = 1\n    y = 2\n    z = 3"),
        ("autopep8", "def f():\n  x = 1\n   y = 2\n"),
    ],
)
def test_code_that_does_not_compile_is_repaired(kind: str, code: str) -> None:
    _, edits = parse_repaired(code, "<cell 0>")
    assert [(edit.kind, edit.before) for edit in edits] == [(kind, code)]


@pytest.mark.parametrize(
    "code", ["for i in range(3):\n    x = i", "x=1 ;y  =  2", 'print(f"{0.5:.2f}")', "s = '''\n a\n'''"]
)
def test_code_that_compiles_is_not_touched(code: str) -> None:
    tree, edits = parse_repaired(code, "<cell 0>")
    assert edits == []
    assert ast.dump(tree) == ast.dump(ast.parse(code))


def test_an_observation_reports_every_edit(session: Session) -> None:
    observation = session.run("    box = (0, 0, 9000, 10)\n    print(box)")
    assert observation.text == "(0, 0, 2000, 10)\n"
    assert observation.edits == (
        Edit("dedent", "    box = (0, 0, 9000, 10)\n    print(box)", "box = (0, 0, 9000, 10)\nprint(box)"),
        Edit("clamp_box", "box = (0, 0, 9000, 10)", "box = (0, 0, 2000, 10)"),
    )


def test_without_an_image_no_box_is_clamped(pool: SandboxPool) -> None:
    with pool.group() as group, group.session() as session:
        assert session.run("box = (0, 0, 9000, 10)").edits == ()
