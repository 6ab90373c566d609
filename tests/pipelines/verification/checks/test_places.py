"""What a look shows, and whether one could know where to look."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from PIL import Image, ImageDraw

from darkroom.pipelines.records import Observation, Round, Truth, TruthBox
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.verification.checks import (
    crop_contains_target,
    image_operations,
    not_blank,
    place_could_be_known,
)
from darkroom.pipelines.verification.checks.crop import FirstLooks, first_looks
from darkroom.pipelines.verification.checks.image_operations import print_can_be_read
from darkroom.pipelines.vision.crop_localization import CropLocation
from darkroom.pipelines.vision.legibility import TextLine

# three signs in make_case's image of 640 x 480 pixels; the first is the target
SIGNS = ((200, 120, 260, 150), (20, 300, 80, 330), (500, 20, 560, 50))
SEARCHED = Truth(boxes=tuple(TruthBox("sign", *box) for box in SIGNS), details=json.dumps({"found": "searched"}))


@pytest.fixture
def looks(make_case, make_image, store):
    """A rollout whose rounds show these parts of the image."""

    def make(*boxes, truth=SEARCHED, **sample):
        original = make_image(3, 640, 480)
        shown = [store.add_pixels(original.crop(box)) for box in boxes]
        rounds = tuple(
            Round("I look.", f"image.crop({box})", Observation("ok", "", images=(image,)))
            for box, image in zip(boxes, shown, strict=True)
        )
        return make_case(rounds=rounds, truth=truth, **sample)

    return make


def around(box: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    return box[0] - 12, box[1] - 12, box[2] + 12, box[3] + 12


# --- where to look


def test_a_look_is_measured_against_the_chance_to_show_the_target(looks) -> None:
    hit, miss = place_could_be_known(looks(around(SIGNS[0]))), place_could_be_known(looks(around(SIGNS[1])))
    both = place_could_be_known(looks((10, 100, 280, 340)))
    assert (hit.passed, hit.score) == (True, pytest.approx(2 / 3, abs=1e-3))
    assert (miss.passed, miss.score) == (True, pytest.approx(-1 / 3, abs=1e-3))
    assert both.score == pytest.approx(1 / 3, abs=1e-3), "two of three signs: a hit of two in three"
    assert "shows 1 of 3, with the target" in hit.detail


def test_only_the_first_look_counts_and_the_whole_image_is_none(looks) -> None:
    assert place_could_be_known(looks(around(SIGNS[1]), around(SIGNS[0]))).score < 0
    assert place_could_be_known(looks((0, 0, 640, 480), around(SIGNS[0]))).score > 0
    assert place_could_be_known(looks((0, 0, 640, 480))).score is None


@pytest.fixture
def sheets(make_case, make_image, store):
    """A rollout whose rounds each show a contact sheet of parts of the image, as matplotlib draws axes in a row."""

    def make(*sheets, in_one_figure=True):
        original = make_image(3, 640, 480)
        rounds = []
        for boxes in sheets:
            views = [original.crop(box).resize((160, 110)) for box in boxes]
            figure = Image.new("RGB", (20 + 180 * len(views), 150), "white")
            for place, view in enumerate(views):
                figure.paste(view, (20 + 180 * place, 20))
            shown = tuple(map(store.add_pixels, [figure] if in_one_figure else views))
            rounds.append(Round("I compare.", f"boxes = {list(boxes)}", Observation("ok", "", images=shown)))
        return make_case(rounds=tuple(rounds), truth=SEARCHED)

    return make


@pytest.mark.parametrize("in_one_figure", [True, False])
def test_every_part_of_a_contact_sheet_counts_as_shown(sheets, in_one_figure) -> None:
    first, second, third = map(around, SIGNS)
    verdict = place_could_be_known(sheets([second, first], in_one_figure=in_one_figure))
    assert verdict.score == pytest.approx(1 / 3, abs=1e-3)
    assert "shows 2 of 3, with the target" in verdict.detail
    others = place_could_be_known(sheets([second, third], [first], in_one_figure=in_one_figure))
    assert others.score == pytest.approx(-2 / 3, abs=1e-3), "the first look alone counts"


def test_a_look_at_all_candidates_tells_next_to_nothing(sheets) -> None:
    assert place_could_be_known(sheets([around(sign) for sign in SIGNS])).score == pytest.approx(0.01)


def test_a_figure_of_one_part_is_placed_without_its_white_border(sheets) -> None:
    assert place_could_be_known(sheets([around(SIGNS[0])])).score == pytest.approx(2 / 3, abs=1e-3)


@pytest.mark.parametrize("found", ["named", "visible"])
def test_what_the_source_says_can_be_known_is_not_measured(looks, found) -> None:
    truth = replace(SEARCHED, details=json.dumps({"found": found}))
    verdict = place_could_be_known(looks(around(SIGNS[0]), truth=truth))
    assert (verdict.passed, verdict.score, verdict.detail) == (True, None, found)


def test_without_a_statement_size_and_contrast_decide(looks) -> None:
    plain = Truth(boxes=SEARCHED.boxes)
    assert place_could_be_known(looks(around(SIGNS[0]), truth=plain)).detail == "visible"
    tiny = Truth(boxes=(TruthBox("speck", 230, 130, 235, 134),))
    verdict = place_could_be_known(looks((200, 110, 270, 160), truth=tiny))
    assert verdict.score == pytest.approx(1 - 70 * 50 / (640 * 480), abs=1e-3), "alone, it is hit by area"
    asked = "What is in 230, 130, 235, 134?"
    assert place_could_be_known(looks((200, 110, 270, 160), truth=tiny, question=asked)).detail == "named"


def test_another_statement_is_an_error_and_no_guess(looks) -> None:
    with pytest.raises(RowError, match="one of named, visible, searched; found 'Searched'"):
        place_could_be_known(looks(around(SIGNS[0]), truth=replace(SEARCHED, details='{"found": "Searched"}')))


def test_looks_that_always_hit_are_beyond_chance_and_honest_ones_are_not() -> None:
    knowing = first_looks([0.75] * 68)
    assert (knowing.n, knowing.n_hits, knowing.by_chance) == (68, 68, pytest.approx(17))
    assert knowing.is_beyond_chance
    assert not first_looks([0.75] * 17 + [-0.25] * 51).is_beyond_chance
    assert not first_looks([0.75] * 3).is_beyond_chance, "three hits of one in four are luck"
    assert first_looks([0.75] * 5).is_beyond_chance
    assert not FirstLooks(0, 0, 0.0).is_beyond_chance


def test_a_tiny_look_that_hits_has_a_chance_that_is_not_nothing(make_case, make_image, store) -> None:
    image = store.add_pixels(make_image(3, 3000, 2400))
    target, look = (1500, 1200, 1504, 1204), (1496, 1196, 1508, 1208)
    truth = Truth(boxes=(TruthBox("speck", *target),), details=SEARCHED.details)
    crop = make_image(3, 3000, 2400).crop(look)
    case = make_case(crop=crop, code=f"image.crop({look})", images=(image,), truth=truth)
    score = place_could_be_known(replace(case, trajectory=replace(case.trajectory, images=(image,)))).score
    assert score == 0.999
    assert first_looks([score] * 2).is_beyond_chance


def test_honest_datasets_are_hardly_ever_called_knowing() -> None:
    chance = random.Random(4)
    alarms = 0
    for _ in range(4000):
        odds = [chance.choice((0.2, 0.25, 0.5)) for _ in range(chance.choice((4, 12, 40)))]
        alarms += first_looks([(chance.random() < odd) - odd for odd in odds]).is_beyond_chance
    assert alarms <= 4


def _share_called(n: int, chance: float, *, known: float) -> float:
    """The share of datasets called beyond chance, exactly, if in a share of the rows the place is ``known``."""
    hit = known + (1 - known) * chance
    called = (k for k in range(n + 1) if FirstLooks(n, k, n * chance).is_beyond_chance)
    return sum(math.comb(n, k) * hit**k * (1 - hit) ** (n - k) for k in called)


def test_the_documented_error_rates_are_those_of_the_test() -> None:
    """docs/quality.md has these figures."""
    for chance in (1 / 2, 1 / 3, 1 / 4, 1 / 50):
        assert max(_share_called(n, chance, known=0) for n in range(1, 201)) <= 0.001
    assert [n for n in range(1, 40) if not _share_called(n, 1 / 3, known=1)] == [1, 2, 3, 4, 5, 6]
    missed = [[round(100 * (1 - _share_called(n, 1 / 3, known=share))) for n in (7, 30, 100, 400)] for share in SHARES]
    assert missed == [[0, 0, 0, 0], [94, 42, 0, 0], [99, 95, 62, 0], [100, 100, 99, 83]]


SHARES = (1, 0.5, 0.25, 0.1)


@given(st.lists(st.sampled_from([0.75, -0.25, 0.5, -0.5, 0.0]), max_size=40))
def test_counts_come_back_out_of_the_scores(scores: list[float]) -> None:
    counted = first_looks(scores)
    assert counted.n_hits == sum(score > 0 for score in scores)
    assert counted.by_chance == pytest.approx(sum((1 - score) if score > 0 else -score for score in scores))


# --- what is shown


def test_a_black_crop_of_a_dark_place_does_not_show_the_target(make_case, store) -> None:
    dark = Image.new("RGB", (640, 480), (6, 6, 6))
    ImageDraw.Draw(dark).text((205, 125), "STOP", fill=(30, 30, 30))
    image, region = store.add_pixels(dark), (190, 110, 270, 160)
    code = f"image.crop({region}).save(path)"

    def shown(crop: Image.Image):
        case = make_case(crop=crop, code=code, images=(image,))
        return replace(case, trajectory=replace(case.trajectory, images=(image,)))

    black = shown(Image.new("RGB", (80, 50)))
    assert crop_contains_target(black).reason == "shows_nothing"
    assert not_blank(black).reason == "shows_nothing"
    assert crop_contains_target(shown(dark.crop(region))).passed
    enlarged = dark.crop(region).resize((320, 200))
    assert crop_contains_target(shown(enlarged)).passed, "what is faint is there all the same"


def test_a_crop_with_something_else_where_the_target_was_is_found(make_case, make_image) -> None:
    region = (100, 40, 420, 280)
    crop, code = make_image(3, 640, 480).crop(region), f"image.crop({region}).save(path)"
    assert crop_contains_target(make_case(crop=crop, code=code)).passed
    crop.paste(crop.crop((200, 150, 280, 200)), (90, 70))
    found = crop_contains_target(make_case(crop=crop, code=code))
    assert (found.passed, found.reason) == (False, "shows_nothing")


def test_a_blank_look_may_be_followed_by_one_that_shows_something(make_case, store, make_image) -> None:
    blank, crop = Image.new("RGB", (90, 60), "white"), make_image(3, 640, 480).crop((180, 100, 280, 170))
    rounds = [Round("", "", Observation("ok", "", images=(store.add_pixels(image),))) for image in (blank, crop)]
    assert (not_blank(make_case(rounds=tuple(rounds))).passed, not_blank(make_case(rounds=tuple(rounds))).score) == (
        True,
        0.5,
    )
    found = not_blank(make_case(rounds=tuple(reversed(rounds))))
    assert (found.passed, found.reason, found.score) == (False, "shows_nothing", 0.5)
    assert not_blank(make_case(rounds=())).passed


def test_thin_lines_on_white_are_something(make_case) -> None:
    drawing = Image.new("RGB", (600, 400), "white")
    ImageDraw.Draw(drawing).line((20, 380, 580, 20), fill="black")
    assert not_blank(make_case(crop=drawing)).passed


class _Reader:
    """Reads what a list says, one image after the other; the first is the target's line."""

    def __init__(self, *texts: str) -> None:
        self.texts, self.n_read = list(texts), 0

    def read(self, image: Image.Image, *, is_line: bool = False) -> list[TextLine]:
        assert np.asarray(image).size
        assert is_line == (self.n_read == 0)
        self.n_read += 1
        return [TextLine(self.texts.pop(0), 0.9)]


@pytest.mark.parametrize(
    ("texts", "passes"),
    [
        (("STOP",), True),
        (("all STOP here",), True),
        (("ST", "all STOP here"), True),
        (("ST0P", "ST0P", "STOP"), False),
        (("", "", "STOP"), False),
        (("ST0P", "ST0P", "ST0P"), True),
    ],
)
def test_the_print_that_is_asked_for_is_read_where_it_can_be(make_case, monkeypatch, texts, passes) -> None:
    monkeypatch.setattr(image_operations, "ocr_reader", lambda: _Reader(*texts))
    assert print_can_be_read(make_case()).passed == passes


def test_without_a_reader_or_a_question_about_print_nothing_is_read(make_case, monkeypatch) -> None:
    monkeypatch.setattr(image_operations, "ocr_reader", lambda: None)
    assert print_can_be_read(make_case()).detail == "no reader is installed"
    monkeypatch.setattr(image_operations, "ocr_reader", lambda: _Reader())
    assert print_can_be_read(make_case(category="object")).passed


def test_print_in_a_view_that_is_much_smaller_than_its_part_is_read(make_case, make_image, monkeypatch) -> None:
    monkeypatch.setattr(image_operations, "ocr_reader", lambda: _Reader("", "STOP"))
    shown = CropLocation(Box(0, 0, 640, 480), 0.0)
    monkeypatch.setattr(image_operations, "last_located", lambda _: shown)
    assert print_can_be_read(make_case(crop=make_image(3, 640, 480).resize((3, 2)))).passed


def test_the_last_view_is_read_and_then_the_targets_surroundings(make_case, make_image, store, monkeypatch) -> None:
    sizes = []
    reader = SimpleNamespace(read=lambda image, is_line=False: sizes.append(image.size) or [TextLine("GO", 0.9)])
    monkeypatch.setattr(image_operations, "ocr_reader", lambda: reader)
    monkeypatch.setattr(image_operations, "last_located", lambda _: None)
    shown = tuple(store.add_pixels(make_image(5, width, 60)) for width in (50, 70))
    assert print_can_be_read(make_case(observation=Observation("ok", "", images=shown))).passed
    assert sizes == [(70, 60), (60 + 2 * 10, 30 + 2 * 10)]
