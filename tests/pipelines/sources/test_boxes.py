"""Boxes of users' rows: every spelling and frame becomes pixels, and a frame that does not fit its column stops."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, strategies as st
from PIL import Image

from darkroom.pipelines.records import TruthBox
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.sources import SourceError, UserBox
from darkroom.pipelines.sources.boxes import (
    BoxColumn,
    BoxRow,
    ColumnFinding,
    box_in_pixels,
    check_column,
    order_and_unit,
)
from darkroom.pipelines.sources.columns import BoxFrame, Columns
from darkroom.pipelines.sources.ingest import Intake, ingest_shard
from darkroom.pipelines.sources.jsonl import JsonLinesSource
from tests.matrices import every_nth

FRAMES: tuple[BoxFrame, ...] = get_args(BoxFrame)
FULL = {"fractions": 1, "percent": 100, "thousandths": 1000}
Size = tuple[int, int]


def written(box: Box, frame: BoxFrame, size: Size) -> tuple[float, float, float, float]:
    """A box as people write it, with six digits behind the point."""
    order, unit = order_and_unit(frame)
    factors = [FULL[unit] / side for side in size] if unit in FULL else [1, 1]
    x1, y1, x2, y2 = (side * factor for side, factor in zip(box, factors * 2, strict=True))
    sides = {
        "corners": (x1, y1, x2, y2),
        "xywh": (x1, y1, x2 - x1, y2 - y1),
        "cxcywh": ((x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1),
        "yxyx": (y1, x1, y2, x2),
    }[order]
    a, b, c, d = (round(side, 6) for side in sides)
    return a, b, c, d


def of_any_size(rng: random.Random, size: Size) -> Box:
    (x1, x2), (y1, y2) = (sorted(rng.sample(range(side + 1), 2)) for side in size)
    return Box(x1, y1, x2, y2)


def small(rng: random.Random, size: Size) -> Box:
    """A target of 2 to 10 % of each side."""
    width, height = (max(2, round(side * rng.uniform(0.02, 0.1))) for side in size)
    x, y = rng.randrange(size[0] - width), rng.randrange(size[1] - height)
    return Box(x, y, x + width, y + height)


def rows(frame: BoxFrame, rng: random.Random, box_in: Callable[[random.Random, Size], Box]) -> list[BoxRow]:
    """Twenty rows, each with a box in a photograph of its own size."""
    sizes = [(rng.randrange(300, 4000), rng.randrange(300, 4000)) for _ in range(20)]
    return [BoxRow((UserBox("", written(box_in(rng, size), frame, size)),), (size,)) for size in sizes]


SIDES = st.integers(2, 8000)


@given(st.sampled_from(FRAMES), st.tuples(SIDES, SIDES), st.randoms(use_true_random=False))
def test_a_box_written_in_a_frame_comes_back_to_the_pixel(frame, size, rng):
    box = of_any_size(rng, size)
    assert box_in_pixels(written(box, frame, size), frame, size) == box


def cannot_be_told_apart(frame: BoxFrame, other: BoxFrame, *, are_small: bool) -> bool:
    """Transposed corners fit every unit square as well; sizes say little of a small box, that ends where it begins."""
    (order, unit), (other_order, other_unit) = order_and_unit(frame), order_and_unit(other)
    orders = {order, other_order}
    is_transposed = orders == {"corners", "yxyx"} and unit != "pixels"
    return unit == other_unit and (is_transposed or (are_small and orders == {"xywh", "cxcywh"}))


def column_findings(boxes: Sequence[BoxRow], frame: BoxFrame | None) -> list[ColumnFinding]:
    return list(BoxColumn(boxes).doubts(frame or "corners"))


@pytest.mark.parametrize("frame", every_nth(FRAMES, 6))
@pytest.mark.parametrize("box_in", [of_any_size, small])
def test_the_column_check_refuses_every_other_frame(frame, box_in):
    rng = random.Random(16)
    columns = [BoxColumn(rows(frame, rng, box_in)) for _ in range(40)]
    assert not any(any(column.doubts(frame)) for column in columns)
    for other in FRAMES:
        if other != frame and not cannot_be_told_apart(frame, other, are_small=box_in is small):
            n_refused = sum(any(column.doubts(other)) for column in columns)
            assert n_refused >= 0.95 * len(columns), other


def fits_as_corners_and_xywh(rng: random.Random, size: Size) -> tuple[float, ...]:
    """Two points in the upper left quarter, or a point and a size that is larger than its distance from the edges."""
    (x1, x2), (y1, y2) = (sorted(rng.sample(range(side // 2), 2)) for side in size)
    return x1, y1, x2, y2


def test_boxes_that_fit_as_corners_and_as_xywh_need_a_stated_frame():
    rng = random.Random(4)
    for _ in range(40):
        sizes = [(rng.randrange(300, 4000), rng.randrange(300, 4000)) for _ in range(20)]
        boxes = [BoxRow((UserBox("", fits_as_corners_and_xywh(rng, size)),), (size,)) for size in sizes]
        with pytest.raises(SourceError, match=r"fit their images as xywh, too.*state corners or xywh"):
            check_column(boxes, None, source="streets", column="boxes")
        for frame, other in (("corners", "xywh"), ("xywh", "corners")):
            doubts = check_column(boxes, frame, source="streets", column="boxes")
            assert doubts == [f"the boxes fit their images as {other}, too"]


@pytest.mark.parametrize(("n_rows", "n_corners", "n_xywh"), [(3, 137, 0), (20, 200, 0)])
def test_small_boxes_in_the_upper_left_are_corners_where_their_ends_follow_their_beginnings(n_rows, n_corners, n_xywh):
    rng = random.Random(6)
    sizes = [[(rng.randrange(300, 4000), rng.randrange(300, 4000)) for _ in range(n_rows)] for _ in range(200)]
    n_taken = {}
    for name, sides_in in {
        "corners": lambda size: tuple(small(rng, (size[0] // 2, size[1] // 2))),
        "xywh": lambda size: fits_as_corners_and_xywh(rng, size),
    }.items():
        columns = [[BoxRow((UserBox("", sides_in(size)),), (size,)) for size in of_column] for of_column in sizes]
        n_taken[name] = sum(not BoxColumn(boxes).rivals("corners") for boxes in columns)
    assert n_taken == {"corners": n_corners, "xywh": n_xywh}


def screenshots(rng: random.Random, size: Size, across: float, down: float) -> Box:
    """A control in an area of the screen that begins at its upper left corner."""
    width, height = rng.randrange(16, 90), rng.randrange(16, 36)
    x, y = (rng.randrange(4, round(side * share)) for side, share in zip(size, (across, down), strict=True))
    return Box(x, y, x + width, y + height)


PHOTOS, SCREENS = [(4000, 3000), (3024, 4032), (6000, 4000)], [(2560, 1440), (3840, 2160)]
ONE_SIZE = (60, 40)


def in_copy(rng: random.Random, size: Size, copy: float | Size, *, is_of_one_size: bool = True) -> Box:
    """A target as pixels of a smaller copy of its image, or of a fixed range."""
    shown = (round(size[0] * copy), round(size[1] * copy)) if isinstance(copy, float) else copy
    x, y = (rng.randrange(side - of) for side, of in zip(shown, ONE_SIZE, strict=True))
    return Box(x, y, x + ONE_SIZE[0], y + ONE_SIZE[1]) if is_of_one_size else small(rng, shown)


def n_stopped(box_in: Callable[[random.Random, Size], Box], sizes: Sequence[Size], *, n_rows: int = 20) -> int:
    """Of 40 columns of pixels with a size of image each."""
    rng = random.Random(9)
    columns = [[(box_in(rng, size), size) for _ in range(n_rows)] for size in rng.choices(sizes, k=40)]
    rows_of = ([BoxRow((UserBox("", tuple(box)),), (size,)) for box, size in column] for column in columns)
    return sum(bool(column_findings(rows, None)) for rows in rows_of)


@pytest.mark.parametrize(
    ("copy", "is_of_one_size", "fewest"),
    [
        ((1000, 1000), True, 40),
        ((1280, 1280), True, 38),
        (0.4, True, 37),
        (0.5, True, 37),
        (0.7, True, 37),
        (0.5, False, 37),
        ((1333, 800), True, 20),
    ],
)
def test_boxes_that_fill_an_upper_left_part_are_stopped(copy, is_of_one_size, fewest):
    assert n_stopped(partial(in_copy, copy=copy, is_of_one_size=is_of_one_size), PHOTOS) >= fewest


@pytest.mark.parametrize(
    ("across", "down", "most"), [(0.95, 0.95, 0), (0.95, 0.03, 0), (0.7, 0.1, 0), (0.08, 0.9, 0), (0.5, 0.5, 40)]
)
def test_controls_of_a_toolbar_a_sidebar_or_the_whole_screen_pass(across, down, most):
    n = n_stopped(partial(screenshots, across=across, down=down), SCREENS)
    assert n == most, "an area with the shape of the screen is stopped: nothing tells it from a copy"


def centred(rng: random.Random, size: Size) -> Box:
    x, y = (round(side * min(0.85, max(0.1, rng.gauss(0.45, 0.08)))) for side in size)
    return Box(x, y, x + size[0] // 20, y + size[1] // 20)


def test_subjects_near_the_centre_pass():
    assert n_stopped(centred, PHOTOS) == 0
    assert n_stopped(centred, PHOTOS, n_rows=200) == 0


def test_boxes_in_a_part_go_on_where_the_frame_is_stated_and_few_say_nothing():
    rng = random.Random(3)
    boxes = column(*(in_copy(rng, (4000, 3000), 0.7) for _ in range(30)), size=(4000, 3000))
    (doubt,) = check_column(boxes, "corners", source="streets", column="boxes")
    assert doubt.startswith("the boxes fill only an upper left part of their images, as pixels of smaller copies do")
    with pytest.raises(SourceError, match=r"smaller copies do \(scale those\).*state corners"):
        check_column(boxes, None, source="streets", column="boxes")
    assert check_column(boxes[:19], None, source="streets", column="boxes") == []
    assert check_column(boxes[:10] * 3, None, source="streets", column="boxes") == []


@pytest.mark.parametrize(("n_rows", "n_stopped"), [(1, 40), (3, 5), (20, 0)])
def test_of_columns_in_corners_only_short_ones_fit_as_xywh_by_chance(n_rows, n_stopped):
    rng = random.Random(5)
    columns = [rows("corners", rng, small)[:n_rows] for _ in range(200)]
    assert sum(bool(BoxColumn(column).rivals("corners")) for column in columns) == n_stopped


def test_fields_that_name_an_order_and_boxes_from_the_corner_leave_nothing_open():
    size, open_box = (800, 600), (210.0, 210.0, 390.0, 280.0)
    assert column_findings(column(open_box, size=size), None)
    assert column_findings([BoxRow((UserBox("", open_box, are_corners=True),), (size,))], None) == []
    assert column_findings(column((0, 0, 390, 280), size=size), None) == []
    assert column_findings(column(open_box, (500, 400, 700, 500), size=size), None) == []


@pytest.mark.parametrize("frame", FRAMES)
def test_the_frame_is_among_those_that_fit(frame):
    rng = random.Random(3)
    for _ in range(20):
        assert frame in BoxColumn(rows(frame, rng, of_any_size)).fitting


def column(*boxes: Sequence[float], size: Size = (1600, 1200), is_turned: bool = False) -> list[BoxRow]:
    return [BoxRow((UserBox("", tuple(box)),), (size,), (is_turned,)) for box in boxes]  # type: ignore[arg-type]


def test_no_boxes_are_no_finding():
    assert column_findings([BoxRow((), ((9, 9),))], None) == []
    assert column_findings(column((math.nan, 0, 1, 1)), None) == []


def test_a_doubtful_frame_that_is_stated_goes_on_with_what_was_found():
    boxes = column((750, 750, 781, 783))
    with pytest.raises(SourceError, match=r"as no frame is stated, but every value is at most 1000.* thousandths or"):
        check_column(boxes, None, source="streets", column="boxes")
    assert check_column(boxes, "corners", source="streets", column="boxes") == ["every value is at most 1000"]
    assert check_column(boxes, "thousandths", source="streets", column="boxes") == []


@pytest.mark.parametrize("frame", ["corners", "xywh", "percent", "thousandths"])
def test_fractions_are_in_no_other_unit_whatever_is_stated(frame):
    with pytest.raises(SourceError, match=r"every value is at most 1[^0].*fractions"):
        check_column(column((0.1, 0.2, 0.5, 0.5)), frame, source="streets", column="boxes")


def test_boxes_that_another_frame_fits_stop_with_their_share():
    boxes = column((0.765, 0.766, 0.031, 0.033), (0.3, 0.3, 0.5, 0.5))
    with pytest.raises(SourceError, match=r"1 of 2 rows \(50%\) a box is inverted.*: cxcywh_fractions or xywh_"):
        check_column(boxes, "fractions", source="streets", column="boxes")


def test_a_single_bad_box_is_its_rows_and_two_are_the_columns():
    good, bad = (1000, 700, 1500, 1100), (1000, 700, 1800, 1100)
    assert column_findings(column(*[good] * 9, bad), None) == []
    with pytest.raises(SourceError, match=r"2 of 10 rows \(20%\).*: state corners"):
        check_column(column(*[good] * 8, bad, bad), None, source="streets", column="boxes")
    assert check_column(column(*[good] * 8, bad, bad), "corners", source="streets", column="boxes")


def test_boxes_of_one_pixel_are_doubtful():
    boxes = column((1500, 1100, 1501, 1101), (1001, 7, 1002, 8))
    assert [finding.what for finding in column_findings(boxes, None)] == ["in 2 of 2 rows (100%) a box is of one pixel"]


def test_pixels_of_an_image_that_exif_turns_may_be_those_of_the_file():
    fits_both, upright, raw = (110, 10, 1100, 1100), (10, 10, 1100, 1500), (10, 10, 1500, 1100)
    size = (1200, 1600)
    (doubt,) = column_findings(column(fits_both, size=size, is_turned=True), "corners")
    assert "EXIF turns" in doubt.what
    assert not doubt.is_certain
    assert column_findings(column(fits_both, upright, size=size, is_turned=True), None) == []
    assert column_findings(column(fits_both, size=size), None) == []
    assert any(doubt.is_certain for doubt in column_findings(column(raw, size=size, is_turned=True), "corners"))


def test_images_that_are_counted_from_1_stop():
    boxes = [BoxRow((UserBox("", (900, 900, 1100, 1150), image),), ((1600, 1200),) * 2) for image in (1, 2)]
    assert any("counted from 1" in doubt.what and doubt.is_certain for doubt in column_findings(boxes, "corners"))


# --- spellings


@pytest.mark.parametrize(
    "value",
    [
        "10, 20, 30, 40",
        7,
        True,
        math.nan,
        [1, 2, 3],
        [1, 2, 3, 4, 5],
        ["1", "2", "3", "4"],
        [1, 2, 3, None],
        [True, False, 3, 4],
        [[1, 2, 3]],
        [[1, 2, 3, 4], None],
        [{"label": "sign"}],
        {"box": [1, 2, 3]},
        {"x1": 1},
        {"bndbox": {"xmin": 1, "ymin": 2, "xmax": "three", "ymax": 4}},
        {"points": [[1, 2]]},
        {"points": [[1, 2], [3]]},
    ],
)
def test_what_is_no_box_is_a_wrong_type(refused, value):
    row = refused(boxes=value)
    assert row.reason is Reason.WRONG_TYPE
    assert "column 'boxes': expected" in row.evidence


BOX = UserBox("", (1, 2, 3, 5))
NAMED_BOX = BOX._replace(are_corners=True)


@pytest.mark.parametrize(
    ("value", "boxes"),
    [
        ([1, 2, 3, 5], (BOX,)),
        ("[[1, 2, 3, 5]]", (BOX,)),
        ([[1, 2, 3, 5], [5, 6, 7, 8]], (BOX, UserBox("", (5, 6, 7, 8)))),
        ({"box": [1, 2, 3, 5], "label": "sign"}, (UserBox("sign", (1, 2, 3, 5)),)),
        ([{"bbox": [1, 2, 3, 5], "name": "cup"}], (UserBox("cup", (1, 2, 3, 5)),)),
        ([{"bbox_2d": [1, 2, 3, 5], "label": None}], (BOX,)),
        (
            [{"bndbox": {"xmin": "1", "ymin": "2", "xmax": "3", "ymax": "5"}, "name": "cat"}],
            (NAMED_BOX._replace(label="cat"),),
        ),
        ([{"xmin": 1, "ymin": 2, "xmax": 3, "ymax": 5}], (NAMED_BOX,)),
        ([{"x": 1, "y": 2, "width": 2, "height": 3}], (NAMED_BOX,)),
        ([{"points": [[3, 2], [1, 5]], "label": "gate"}], (NAMED_BOX._replace(label="gate"),)),
        ({"ref": ["a", "b"], "bbox": [[1, 2, 3, 5]] * 2}, (BOX._replace(label="a"), BOX._replace(label="b"))),
        ([], None),
        (None, None),
        (..., None),
    ],
)
def test_boxes_come_alone_in_lists_and_in_the_usual_objects(mapped, value, boxes):
    row = mapped(boxes=value)
    assert (row.boxes and row.boxes.boxes) == boxes


@pytest.mark.parametrize(
    "named", [{"xmin": 10, "ymin": 20, "xmax": 30, "ymax": 60}, {"x": 10, "y": 20, "w": 20, "h": 40}]
)
@pytest.mark.parametrize("frame", [None, *FRAMES])
def test_fields_that_name_an_order_keep_it_in_every_frame(mapped, named, frame):
    (box,) = mapped(Columns(boxes="boxes", box_frame=frame), boxes=[named]).boxes.boxes
    unit = order_and_unit(frame or "corners")[1]
    size = (FULL.get(unit, 100), FULL.get(unit, 100))
    assert box_in_pixels(box.sides, frame or "corners", size, are_corners=True) == Box(10, 20, 30, 60)


def test_four_columns_are_a_box(mapped):
    columns = Columns(boxes=("x1", "y1", "x2", "y2"))
    assert mapped(columns, x1=1, y1=2, x2=3, y2=5).boxes.boxes == (NAMED_BOX,)
    assert mapped(columns, x1="1", y1="2", x2="3", y2="5").boxes.boxes == (NAMED_BOX,)
    assert mapped(Columns(boxes=("a", "b", "c", "d")), a=1, b=2, c=3, d=5).boxes.boxes == (BOX,)
    assert mapped(Columns(boxes=("x", "y", "w", "h")), x=1, y=2, w=2, h=3).boxes.boxes == (NAMED_BOX,)
    assert mapped(columns, x1=None, y1=None).boxes is None
    assert mapped(columns, x1=1, y1=2, x2=3).reason is Reason.WRONG_TYPE
    assert ("y2",) in columns.needed()


@pytest.mark.parametrize("key", ["image_id", "image_index", "image"])
def test_a_box_may_name_the_index_of_its_image(mapped, key):
    two = ["sign.png", "deep/sign.png"]
    assert mapped(image=two, boxes=[{"bbox": [1, 2, 3, 5], key: 1}]).boxes.boxes == (BOX._replace(image=1),)
    assert mapped(boxes=[{"bbox": [1, 2, 3, 5], key: 397133}]).boxes.boxes == (BOX,)  # of the whole dataset


# --- intake


@pytest.fixture
def ingested(folder: Path, store) -> Callable[..., Intake]:
    """Rows about an image of 96 x 64 pixels (or ``image``), through intake."""

    def ingest(*boxes: object, frame: BoxFrame | None = None, image: object = "sign.png") -> Intake:
        lines = [
            {"image": image, "question": f"Which colour, {n}?", "answer": "red", "boxes": value}
            for n, value in enumerate(boxes)
        ]
        path = folder.parent / "questions.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)))
        columns = Columns(boxes="boxes", box_frame=frame)
        return ingest_shard(JsonLinesSource("streets", path, folder, columns), 0, store)

    return ingest


@pytest.mark.parametrize("frame", FRAMES)
def test_boxes_of_every_frame_become_pixels(ingested, frame):
    box = Box(24, 16, 84, 60)
    (sample,) = ingested(list(written(box, frame, (96, 64))), frame=frame).samples
    assert sample.truth.boxes == (TruthBox("", *box),)


@pytest.mark.parametrize("value", [[9, 9, 1, 1], [[1, 2, 1, 4]], [math.nan, 0, 1, 1], [0, 0, math.inf, 1]])
@pytest.mark.parametrize("frame", ["corners", "fractions", "percent"])
def test_a_box_that_is_inverted_or_not_finite_is_malformed(ingested, value, frame):
    good = written(Box(24, 16, 84, 60), frame, (96, 64))
    intake = ingested(*[list(good)] * 20, value, frame=frame)
    (rejected,) = intake.rejects
    assert (rejected.reason, len(intake.samples)) == (Reason.MALFORMED_ROW, 20)
    assert rejected.evidence.startswith("column 'boxes': ")
    assert "boxes" in json.loads(rejected.row)


def test_what_sticks_out_by_a_pixel_is_clipped_and_more_is_outside(ingested):
    intake = ingested([50.4, 40.2, 96.4, 64.3], [-0.6, 1, 20, 65], [50, 40, 97.5, 64])
    assert [sample.truth.boxes for sample in intake.samples] == [
        (TruthBox("", 50, 40, 96, 64),),
        (TruthBox("", 0, 1, 20, 64),),
    ]
    assert [rejected.reason for rejected in intake.rejects] == [Reason.BOX_OUTSIDE_IMAGE]


def test_a_box_of_the_second_image_is_stored_for_it(ingested):
    boxes = [{"bbox": [40, 20, 90, 60], "label": "square", "image_id": 1}]
    (sample,) = ingested(boxes, image=["sign.png", "deep/sign.png"]).samples
    assert sample.truth.boxes == (TruthBox("square", 40, 20, 90, 60, image=1),)
    (rejected,) = ingested([{**boxes[0], "image_id": 7}], image=["sign.png", "deep/sign.png"]).rejects
    assert rejected.reason == Reason.BOX_OUTSIDE_IMAGE


def test_relative_boxes_are_in_the_upright_frame(ingested, folder, make_image, encoded):
    exif = Image.Exif()
    exif[0x0112] = 6
    (folder / "turned.jpg").write_bytes(encoded(make_image(), exif=exif))
    (sample,) = ingested([0, 0, 1, 0.5], frame="fractions", image="turned.jpg").samples
    assert sample.truth.boxes == (TruthBox("", 0, 0, 64, 48),)
    with pytest.raises(SourceError, match="EXIF turns the image: boxes count in the upright one"):
        ingested([0, 0, 60, 50], image="turned.jpg")
    assert ingested([0, 0, 60, 50], frame="corners", image="turned.jpg").boxes["doubts"]


def test_the_frame_stands_in_the_intakes_notes(ingested):
    assert ingested().boxes is None
    intake = ingested([10, 10, 90, 60], [20, 10, 90, 60])
    assert intake.boxes == {"column": "boxes", "frame": "corners", "is_stated": False, "doubts": []}
    assert intake.notes[0] == (2, "rows with boxes, read as corners (not stated)", "")
    assert ingested([100, 100, 900, 600], frame="thousandths").boxes["is_stated"]


def test_a_long_column_stops_after_its_first_rows(ingested, monkeypatch):
    monkeypatch.setattr("darkroom.pipelines.sources.ingest._N_FIRST", 3)
    with pytest.raises(SourceError, match="3 of 3 rows"):
        ingested(*[[90, 60, 10, 10]] * 50)
