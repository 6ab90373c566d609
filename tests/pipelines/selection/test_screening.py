"""Near-duplicates and rows of a benchmark do not ship, and the reject says why."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image, ImageOps
from skimage import data

from pipelines.records import Sample, Trajectory
from pipelines.selection.screening import Screening
from pipelines.selection.splits import grouped
from pipelines.storage.images import ImageStore
from pipelines.storage.workspace import Workspace


def _row(make_case, store: ImageStore, n: int, pixels, question: str) -> tuple[Sample, Trajectory]:
    case, image = make_case(), store.add_pixels(pixels)
    sample = replace(case.sample, sample_id=f"s{n}", question=question, choices=(), images=(image,))
    return sample, replace(case.trajectory, trajectory_id=f"t{n}", sample_id=f"s{n}", images=(image,), rounds=())


@pytest.fixture
def cat() -> Image.Image:
    return Image.fromarray(data.cat())


@pytest.fixture
def coffee() -> Image.Image:
    return Image.fromarray(data.coffee())


def test_a_row_whose_image_and_question_are_near_another_goes(workspace: Workspace, make_case, cat, coffee) -> None:
    question, store = "What is the colour of the eyes of the animal in the picture?", workspace.images
    rows = [
        _row(make_case, store, 0, cat, question),
        _row(make_case, store, 1, cat.resize((200, 133)), question),
        _row(make_case, store, 2, cat, "How many whiskers can be counted on the left side?"),
        _row(make_case, store, 3, coffee, question),
    ]
    errors = Screening(workspace).screen("crop", rows)
    assert {row: error.reason.value for row, error in errors.items()} == {"t1": "near_duplicate"}
    assert "t0" in errors["t1"].evidence
    assert not (workspace.home / "contamination").exists()


def test_a_row_that_shows_a_benchmarks_image_goes_with_its_evidence(
    workspace: Workspace, make_case, cat, coffee, tmp_path: Path
) -> None:
    folder = tmp_path / "private"
    folder.mkdir()
    cat.convert("RGB").save(folder / "cat.jpg", quality=80)
    workspace.home.mkdir(parents=True, exist_ok=True)
    workspace.benchmarks.write_text(json.dumps({"private": {"kind": "folder", "path": str(folder)}}))
    rows = [_row(make_case, workspace.images, 0, cat, "A?"), _row(make_case, workspace.images, 1, coffee, "B?")]
    errors = Screening(workspace).screen("crop", rows)
    assert {row: error.reason.value for row, error in errors.items()} == {"t0": "contaminated"}
    assert errors["t0"].evidence.startswith("private cat.jpg: near_image")
    found = pq.read_table(workspace.home / "contamination" / "crop.parquet").to_pylist()
    assert {(row["trajectory_id"], row["benchmark_row"]) for row in found} == {("t0", "cat.jpg")}


@pytest.mark.parametrize(
    "change",
    [
        ImageOps.mirror,
        lambda image: image.rotate(90, expand=True),
        lambda image: image.crop((20, 0, image.width - 20, image.height * 9 // 10)),
    ],
)
def test_a_changed_image_with_the_same_question_goes(workspace: Workspace, make_case, cat, change) -> None:
    """By hash alone, as it shipped before, none of these was found."""
    question, store = "What is the colour of the eyes of the animal in the picture?", workspace.images
    rows = [_row(make_case, store, 0, cat, question), _row(make_case, store, 1, change(cat), question)]
    assert set(Screening(workspace).screen("crop", rows)) == {"t1"}


def test_a_mirrored_part_of_a_benchmarks_image_is_found(workspace: Workspace, make_case, cat, tmp_path: Path) -> None:
    folder = tmp_path / "private"
    folder.mkdir()
    cat.convert("RGB").save(folder / "cat.png")
    workspace.home.mkdir(parents=True, exist_ok=True)
    workspace.benchmarks.write_text(json.dumps({"private": {"kind": "folder", "path": str(folder)}}))
    part = ImageOps.mirror(cat).crop((150, 60, 350, 220))
    errors = Screening(workspace).screen("crop", [_row(make_case, workspace.images, 0, part, "A?")])
    assert errors["t0"].evidence.startswith("private cat.png: image_part")
    assert errors["t0"].evidence.endswith("mirrored")


def test_images_that_are_one_changed_are_in_one_split(workspace: Workspace, make_case, cat, coffee) -> None:
    images = [cat, ImageOps.mirror(cat), coffee]
    samples = [_row(make_case, workspace.images, n, image, "A?")[0] for n, image in enumerate(images)]
    same = Screening(workspace).same_images(image for sample in samples for image in sample.images)
    assert same == {samples[1].images[0].sha256: samples[0].images[0].sha256}
    splits = grouped(samples, validation_share=0.5, same=same)
    assert splits.bucket("s0") == splits.bucket("s1") != splits.bucket("s2")
