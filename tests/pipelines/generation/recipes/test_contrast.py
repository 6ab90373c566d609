"""The family `contrast`: what it does to samples, and the whole chain on the embedded source."""

from __future__ import annotations

import pytest
from PIL import Image

from darkroom.pipelines.demo.images.material import photograph_image
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes.contrast import MAX_SIDE, prepare, recipe
from darkroom.pipelines.records import Sample, Trajectory, Truth, TruthBox
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.vision.legibility import KINDS, contrast, sample_degradation
from tests.pipelines.scripted import taken_out

SPOON = TruthBox("spoon", 318, 234, 408, 327)


def sample_of(store, image: Image.Image, *boxes: TruthBox, category: str = "OCR") -> Sample:
    return Sample(
        sample_id="a" * 64,
        source="photographs",
        source_row="1",
        license="CC0-1.0",
        images=(store.add_pixels(image),),
        question="What lies on the saucer?",
        choices=(),
        answer="spoon",
        truth=Truth(boxes=boxes),
        category=category,
    )


def test_fadings_are_of_every_kind_and_their_seeds():
    fadings = [sample_degradation(seed) for seed in range(40)]
    assert {fade.kind for fade in fadings} == set(KINDS)
    assert {bool(fade.noise) for fade in fadings} == {True, False}
    assert fadings == [sample_degradation(seed) for seed in range(40)]


def test_a_faded_image_has_lost_its_contrast_and_names_its_parent(store):
    sample = sample_of(store, photograph_image("coffee"), SPOON)
    prepared = prepare(sample, store)
    shown = prepared.images[0]
    assert contrast(store.open(shown)).rms < 0.1 * contrast(photograph_image("coffee")).rms
    assert shown.parent == sample.images[0].sha256
    assert shown.made_by.startswith("contrast: Fading")
    assert prepare(sample, store) == prepared


def test_an_image_that_was_found_faint_stays_as_it_is(store):
    sample = sample_of(store, sample_degradation(1).faded(photograph_image("coffee")), SPOON)
    prepared = prepare(sample, store)
    assert (prepared.images, prepared.hint) == (sample.images, {"fault": "found faint"})


def test_what_would_not_come_back_is_unsuitable(store):
    plain = photograph_image("coffee").copy()
    plain.paste((120, 120, 120), (0, 0, 300, 400))
    with pytest.raises(RowError, match="too little comes back") as caught:
        prepare(sample_of(store, plain, TruthBox("nothing", 100, 100, 200, 200)), store)
    assert caught.value.reason == Reason.UNSUITABLE


def test_an_image_that_needs_a_crop_first_is_unsuitable(store):
    with pytest.raises(RowError, match="longer than") as caught:
        prepare(sample_of(store, Image.new("RGB", (MAX_SIDE + 1, 40))), store)
    assert caught.value.reason == Reason.UNSUITABLE


@pytest.fixture(scope="module")
def finished(demo_chain) -> Family:
    """The chain on three kinds of the embedded source's rows."""
    return demo_chain(recipe, "notice", "photo", "maths")


def test_at_least_20_trajectories_come_out_of_the_embedded_source(finished):
    assert len(finished.workspace.tables.read(finished.key("trajectories"), Trajectory)) >= 20


def test_every_reject_has_a_typed_reason(finished):
    rejects = taken_out(finished)
    assert {reject.reason for reject in rejects} <= {"unsuitable", "not_applicable", "check_failed"}


def test_every_program_of_the_oracle_executes(finished):
    runs = finished.workspace.tables.read(finished.key("runs"), Trajectory)
    assert {run.rounds[0].observation.status for run in runs} == {"ok"}
    assert len({run.rounds[0].code for run in runs}) == 8
