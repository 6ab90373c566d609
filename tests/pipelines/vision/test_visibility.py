"""One measurement of what can be made out, and the decision that follows from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from darkroom.pipelines.records import Sample, Truth, TruthBox
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.vision.visibility import Visibility, shown_side, visibility_hint, visibility_of


@pytest.fixture
def sample(store, make_image) -> Sample:
    image = store.add_pixels(make_image(3, 640, 480))
    truth = Truth(boxes=(TruthBox("sign", 200, 120, 220, 180),))
    return Sample("s", "signs", "1", "CC0", (image,), "Which?", (), "x", truth, "OCR")


def test_the_shorter_side_counts_as_the_model_sees_it():
    assert shown_side(Box(0, 0, 60, 40), 640, 480) == pytest.approx(40, abs=2)
    large = shown_side(Box(0, 0, 60, 40), 6400, 4800)
    assert large == pytest.approx(40 * (2_000_000 / (6400 * 4800)) ** 0.5, abs=1)


@pytest.mark.parametrize(
    ("side", "size"), [(27.9, "small"), (28.0, "between"), (83.9, "between"), (84.0, "large"), (None, "unknown")]
)
def test_a_target_is_small_between_or_large(side, size):
    assert Visibility(side, 0.02, 200.0).size == size


def test_only_what_is_large_clear_and_not_turned_is_plain_to_see():
    plain = Visibility(100.0, 0.1, 200.0, None, 640)
    assert plain.is_plain
    for changed in ({"side": 60.0}, {"side": None}, {"levels": 50.0}, {"levels": None}, {"angle": 90.0}):
        assert not replace(plain, **changed).is_plain, changed


def test_nothing_needs_a_closer_look_and_is_plain_to_see():
    seen = [
        Visibility(side, share, 200.0, None, longest)
        for side in (10.0, 40.0, 90.0)
        for share in (0.001, 0.1)
        for longest in (640, 4000)
    ]
    assert not any(each.needs_closer_look and each.is_plain for each in seen)
    assert [each.needs_closer_look for each in seen] == [True] * 4 + [False, True] + [False] * 6


def test_it_is_measured_on_the_pixels_and_stored_as_json(store, sample, make_image):
    seen = visibility_of(sample, store)
    assert seen.size == "small"
    assert not seen.is_faint
    assert Visibility.from_json(visibility_hint(sample, store)["visibility"]) == seen
    faint = store.add_pixels(make_image(3, 640, 480).point([100 + level // 12 for level in range(256)] * 3))
    assert visibility_of(replace(sample, images=(faint,)), store).is_faint


def test_without_a_box_the_whole_image_is_measured_and_without_an_image_nothing(store, sample):
    whole = visibility_of(replace(sample, truth=Truth(angle=90.0)), store)
    assert (whole.size, whole.is_turned) == ("unknown", True)
    assert visibility_of(replace(sample, images=()), store) == Visibility()
    assert visibility_hint(replace(sample, images=()), store) == {}
