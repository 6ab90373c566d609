"""Published shapes of data are recognised from their files, and load without a mapping by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from darkroom.pipelines.records import Sample
from darkroom.pipelines.sources import SourceError
from darkroom.pipelines.sources.catalog import open_source
from darkroom.pipelines.sources.ingest import Intake, ingest_shard
from darkroom.pipelines.sources.shapes import recognise
from tests.pipelines.sources.published_shapes import PUBLISHED

pytestmark = pytest.mark.usefixtures("offline")

COCO = {
    "images": [{"id": 1, "file_name": "a.jpg", "width": 160, "height": 120, "license": 3}],
    "annotations": [
        {"id": 7, "image_id": 1, "category_id": 3, "bbox": [120.0, 90.0, 5.0, 4.0], "area": 20.0, "iscrowd": 0}
    ],
    "categories": [{"supercategory": "shape", "id": 3, "name": "square"}],
}


@pytest.fixture
def picture(tmp_path) -> Callable[[str], None]:
    def write(name: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (160, 120), (90, len(name) % 250, sum(map(ord, name)) % 250)).save(tmp_path / name)

    return write


@pytest.fixture
def write(tmp_path) -> Callable[[str, Any], Path]:
    def write_text(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write_text


@pytest.fixture
def loaded(store) -> Callable[..., Intake]:
    def load(path: Path, **settings: Any) -> Intake:
        return ingest_shard(open_source("mine", recognise(path, **settings).config), 0, store)

    return load


def only(intake: Intake) -> Sample:
    assert not intake.rejects
    (sample,) = intake.samples
    return sample


def test_boxes_without_questions_are_asked_about_by_a_template(tmp_path, write, picture, loaded):
    picture("train2017/a.jpg")
    write("annotations/instances_train2017.json", COCO)
    sample = only(loaded(tmp_path))
    assert (sample.question, sample.answer) == ("What is in the box (120, 90, 125, 94)?", "square")
    assert sample.category == "square"
    assert [tuple(box.box) for box in sample.truth.boxes] == [(120, 90, 125, 94)]
    assert json.loads(sample.truth.details or "") == {"question_template": "what"}


def test_several_splits_and_none_chosen_are_an_error_that_lists_them(tmp_path, write, picture, loaded):
    picture("train2017/a.jpg")
    for split in ("train", "val"):
        write(f"annotations/instances_{split}2017.json", COCO)
    with pytest.raises(SourceError, match="Set `split` to one of: train, validation"):
        recognise(tmp_path)
    assert only(loaded(tmp_path, split="val")).answer == "square"


def test_a_folder_of_nothing_known_says_what_is_known(tmp_path, picture):
    picture("a.jpg")
    with pytest.raises(SourceError, match=r"holds no questions or annotations \(\.jpg\)\. Known are: .*YOLO"):
        recognise(tmp_path)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_shape_loads_whole(tmp_path, loaded, name):
    shape = PUBLISHED[name]
    folder = tmp_path / "published"
    path = shape.write(folder) or folder
    intake = loaded(path, split=shape.split)
    assert not intake.rejects
    samples = [(sample.question, sample.answer, len(sample.images)) for sample in intake.samples]
    assert samples == shape.samples
