"""Each family's declaration of its samples, and what it objects to in others."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from darkroom.pipelines.generation.applicability import Applicability
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.records import ImageRef, Sample, Truth, TruthBox, VideoRef
from darkroom.pipelines.records.reject_reasons import Reason, RowError

IMAGE = ImageRef("0" * 64, 100, 100, "RGB", "PNG")
VIDEO = VideoRef("1" * 64, "mp4", 100, 100, 10, 5.0)
BOX = TruthBox("square", 10, 10, 20, 20)
SAMPLE = Sample("s" * 64, "signs", "1", "", (), "How many?", (), "6", Truth(), "")
WITH_IMAGE = replace(SAMPLE, images=(IMAGE,))
WITH_BOX = replace(WITH_IMAGE, truth=Truth(boxes=(BOX,)))
CROPPING = {"crop", "error_correction", "further_enhancement"}
LOOKING = {"agentic_image", "direct", "operation_aware", "real_world", "rotation"}


def families_for(sample: Sample) -> set[str]:
    return {name for name, recipe in load_recipes().items() if not recipe.objection(sample)}


@pytest.mark.parametrize(
    ("sample", "families"),
    [
        (SAMPLE, set()),
        (replace(SAMPLE, category="Geometry"), {"figure"}),
        (replace(SAMPLE, category="NuminaMath"), {"figure", "math_code"}),
        (WITH_IMAGE, LOOKING),
        (replace(WITH_IMAGE, category="OCR"), LOOKING | {"contrast"}),
        (replace(WITH_IMAGE, category="chart math"), LOOKING | {"math_code"}),
        (WITH_BOX, LOOKING | CROPPING | {"contrast"}),
        (replace(WITH_BOX, images=(IMAGE, IMAGE), truth=Truth(boxes=(replace(BOX, image=1),))), LOOKING),
        (replace(SAMPLE, videos=(VIDEO,), category="math"), {"agentic_video"}),
    ],
)
def test_the_families_of_a_sample_are_told_by_its_facts(sample: Sample, families: set[str]) -> None:
    assert families_for(sample) == families


def test_a_source_keeps_a_sample_for_some_families() -> None:
    kept = replace(WITH_BOX, truth=replace(WITH_BOX.truth, details=json.dumps({"families": ["crop"]})))
    assert families_for(kept) == {"crop"}
    assert load_recipes()["direct"].objection(kept) == "its source keeps it for crop"


@pytest.mark.parametrize(
    ("family", "sample", "objection"),
    [
        ("direct", SAMPLE, "it has no image"),
        ("crop", WITH_IMAGE, "it has no box in its first image"),
        ("figure", WITH_IMAGE, "it has an image"),
        ("math_code", WITH_IMAGE, "it has the category '', without `math`"),
        ("contrast", WITH_IMAGE, "it has no box in its first image and the category '', without `ocr`"),
        ("agentic_video", WITH_IMAGE, "it has no video"),
        ("direct", replace(WITH_IMAGE, videos=(VIDEO,)), "it has a video, which thyme does not show"),
    ],
)
def test_an_objection_names_the_fact(family: str, sample: Sample, objection: str, store) -> None:
    recipe = load_recipes()[family]
    assert recipe.objection(sample) == objection
    with pytest.raises(RowError) as caught:
        recipe.prepared(sample, store)
    assert (caught.value.reason, caught.value.evidence) == (Reason.NOT_APPLICABLE, objection)


def test_a_declaration_in_words() -> None:
    assert Applicability().in_words == "any"
    contrast = load_recipes()["contrast"].samples.in_words
    assert contrast == "an image; a box in the first image, or a category with `ocr`"
