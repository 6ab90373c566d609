"""The check on restored contrast, with the real reader and without one."""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from PIL import Image, ImageOps

from darkroom.pipelines.demo.images.notices import notices
from darkroom.pipelines.records import Observation
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks import image_operations
from darkroom.pipelines.verification.checks.check import Flaw
from darkroom.pipelines.verification.checks.image_operations import legibility_gain
from darkroom.pipelines.vision.legibility import Degradation, TextLine, anls, contrast, ocr_reader, plain

NOTICE = notices(0)[0].build()
FADE = Degradation("pale", 1.0, 0.03, 210, 0.0, 0)
Program = Callable[[Image.Image], Image.Image]


@pytest.fixture
def faded(store, make_case) -> Callable[..., Case]:
    def make(*programs: Program, answer: str = NOTICE.answer, boxes: bool = True, fade: Degradation = FADE) -> Case:
        original = Image.open(io.BytesIO(NOTICE.images[0]))
        given = fade.faded(original)
        shown = tuple(store.add_pixels(program(given)) for program in programs)
        truth = NOTICE.truth if boxes else replace(NOTICE.truth, boxes=())
        case = make_case(
            observation=Observation("ok", "", images=shown),
            images=(store.add_pixels(original),),
            answer=answer,
            truth=truth,
        )
        trajectory = replace(case.trajectory, images=(store.add_pixels(given),))
        return replace(case, sample=replace(case.sample, answer=answer), trajectory=trajectory)

    return make


@pytest.fixture
def without_reader(monkeypatch) -> None:
    monkeypatch.setattr(image_operations, "ocr_reader", lambda: None)


def stretched(image: Image.Image) -> Image.Image:
    return ImageOps.autocontrast(image.convert("L"), cutoff=0.5)


def equalised(image: Image.Image) -> Image.Image:
    return Image.fromarray(cv2.createCLAHE(2.0, (4, 4)).apply(np.asarray(stretched(image))))


def enlarged(image: Image.Image) -> Image.Image:
    return stretched(image).resize((1200, 900), Image.Resampling.BICUBIC)


def cropped(image: Image.Image) -> Image.Image:
    return stretched(image).crop((100, 60, 780, 560))


GOOD = {"stretched": stretched, "equalised": equalised, "enlarged": enlarged, "cropped": cropped}
BAD = {
    "unchanged": lambda image: image.copy(),
    "fainter": lambda image: Image.blend(image, Image.new("RGB", image.size, (210, 210, 210)), 0.6),
    "a little": lambda image: image.point(lambda level: max(0, min(255, round(210 + (level - 210) * 1.2)))),
}


@pytest.mark.parametrize("program", GOOD.values(), ids=GOOD)
def test_restored_contrast_passes_by_reading(faded, program):
    pytest.importorskip("rapidocr")
    found = legibility_gain(faded(program))
    assert found.passed, found
    assert "a reader reads" in found.detail


@pytest.mark.parametrize("program", GOOD.values(), ids=GOOD)
def test_restored_contrast_passes_by_contrast(faded, without_reader, program):
    assert legibility_gain(faded(program)).passed


@pytest.mark.parametrize("program", BAD.values(), ids=BAD)
def test_contrast_that_did_not_rise_fails(faded, without_reader, program):
    assert legibility_gain(faded(program)).reason == Flaw.NO_LEGIBILITY_GAIN


NOISE = np.random.default_rng(0).integers(0, 255, (600, 800), dtype=np.uint8)


@pytest.mark.parametrize("shown", [Image.fromarray(NOISE), Image.linear_gradient("L").resize((800, 600))])
def test_contrast_of_something_else_is_no_gain(faded, without_reader, shown):
    assert legibility_gain(faded(lambda image: shown)).reason == Flaw.NO_LEGIBILITY_GAIN


def test_an_image_that_could_be_read_before_gained_nothing(faded):
    pytest.importorskip("rapidocr")
    clear = Degradation("grey", 1.0, 0.8, 128, 0.0, 0)
    assert legibility_gain(faded(stretched, fade=clear)).reason == Flaw.NO_LEGIBILITY_GAIN


def test_print_that_was_lost_is_misread(faded):
    pytest.importorskip("rapidocr")
    found = legibility_gain(faded(lambda image: stretched(image).resize((80, 60)).resize((800, 600))))
    assert found.reason == Flaw.TEXT_MISREAD


def test_what_no_reader_can_read_is_judged_by_contrast(faded):
    found = legibility_gain(faded(stretched, answer="a spoon"))
    assert found.passed
    assert found.detail.startswith("contrast")


def test_without_a_box_the_whole_image_counts(faded, without_reader):
    assert legibility_gain(faded(stretched, boxes=False)).passed
    assert not legibility_gain(faded(lambda image: image, boxes=False)).passed


@pytest.mark.parametrize(
    ("rms", "edges", "looked", "looks", "passes"),
    [
        (0.181, 0.361, 0.5, 0.5, True), (0.179, 0.4, 0.5, 0.5, False), (0.2, 0.359, 0.5, 0.5, False),
        # a tenth of the likeness may be lost, and some must remain
        (0.2, 0.4, 0.75, 0.65, True), (0.2, 0.4, 0.75, 0.64, False), (0.2, 0.4, 0.1, 0.3, True),
        (0.2, 0.4, 0.1, 0.29, False),
    ],
)  # fmt: skip
def test_contrast_and_edges_rise_and_likeness_stays(monkeypatch, rms, edges, looked, looks, passes):
    known = {"before": (SimpleNamespace(rms=0.1, edges=0.2), looked)}
    known |= {"after": (SimpleNamespace(rms=rms, edges=edges), looks)}
    monkeypatch.setattr(image_operations, "contrast", lambda image: known[image][0])
    monkeypatch.setattr(image_operations, "likeness", lambda image, original: known[image][1])
    found = image_operations._measured("original", "before", "after")
    assert (found.flaw is None, found.score) == (passes, round(min(rms / 0.1, edges / 0.2), 2))


def test_the_last_image_counts(faded, without_reader):
    assert legibility_gain(faded(BAD["fainter"], stretched)).passed
    assert not legibility_gain(faded(stretched, BAD["fainter"])).passed


def test_a_rollout_that_showed_nothing_restored_nothing(faded):
    assert legibility_gain(faded()).reason == Flaw.NO_IMAGE


@pytest.mark.parametrize(
    ("read", "known", "score"),
    [
        (("shelf: 32",), "32", 1.0),
        (("found in: Krakow", "year 1961"), "krakow", 1.0),
        (("room:116",), "116", 1.0),
        (("opens at: 10:05",), "10:05", 1.0),
        (("Kral<ow",), "Krakow", 5 / 6),
        (("nothing",), "Krakow", 0.0),
        ((), "Krakow", 0.0),
        (("Krakow",), "", 0.0),
    ],
)
def test_anls_is_that_of_the_closest_words(read, known, score):
    assert anls([TextLine(text, 1.0) for text in read], known)[0] == pytest.approx(score, abs=0.05)


def test_letters_and_digits_are_what_counts():
    assert plain("  Zürich–10:05 ") == "zürich1005"


def test_a_plain_image_has_no_contrast():
    found = contrast(Image.new("RGB", (40, 1), "grey"))
    assert (found.rms, found.edges) == (0, 0)


def test_the_reader_reads_print_and_is_one_for_all_threads():
    pytest.importorskip("rapidocr")
    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(lambda _: ocr_reader(), range(4)))) == 1
    lines = ocr_reader().read(Image.open(io.BytesIO(NOTICE.images[0])))
    assert NOTICE.answer in " ".join(line.text for line in lines)
