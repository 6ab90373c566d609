"""Published shapes of data are recognised from their files, and load without a mapping by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.samples import right_answers
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
        Image.new("RGB", (160, 120), (90, len(name) % 250, 37 * sum(map(ord, name)) % 250)).save(tmp_path / name)

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


def test_what_ten_people_said_is_proposed_rather_than_the_one_answer_chosen_of_it(tmp_path, loaded):
    PUBLISHED["VQA v2"].write(tmp_path)
    columns = recognise(tmp_path).config.columns
    assert (columns.answer, columns.answer_list) == ("answers", "majority")
    assert [right_answers(sample) for sample in loaded(tmp_path).samples] == [("red", "crimson"), ("1", "2")]


def test_of_a_question_with_choices_one_answer_is_proposed(tmp_path, write, picture):
    picture("a.jpg")
    row = {"image": "a.jpg", "question": "Which?", "choices": ["red", "blue"], "answers": ["red"] * 10}
    write("questions.json", [{**row, "multiple_choice_answer": "red"}])
    assert recognise(tmp_path).config.columns.answer == "multiple_choice_answer"


# --- wrong forms


@pytest.fixture
def rejected(tmp_path, loaded) -> Callable[[], list[tuple[str, str]]]:
    def take() -> list[tuple[str, str]]:
        return [(reject.source_row, reject.evidence) for reject in loaded(tmp_path).rejects]

    return take


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("7 0.5 0.5 0.1 0.1", "begins with no class; there are 1"),
        ("0 0.5 0.5 0.1 0.1 0.9", "expected a class and four numbers, or a polygon"),
        ("0 0.5 0.5 0.1 x", "could not convert string to float"),
    ],
)
def test_a_wrong_line_of_yolo_is_a_reject_of_its_file(write, picture, rejected, line, said):
    write("data.yaml", "names: {0: square}")
    write("labels/a.txt", f"0 0.5 0.5 0.25 0.25\n{line}\n")
    picture("images/a.jpg")
    ((row, evidence),) = rejected()
    assert row == "a.txt:1"
    assert said in evidence


def test_labels_without_the_names_of_their_classes_are_an_error(tmp_path, write, picture):
    write("labels/a.txt", "0 0.5 0.5 0.25 0.25\n")
    picture("images/a.jpg")
    with pytest.raises(SourceError, match=r"their names belong in data.yaml \(`names`\) or classes.txt"):
        recognise(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<annotation><object><name>a</name></object></annotation>", "could not convert"),
        ("<annotation><object>", "no element found"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><annotation/>', "entities"),
    ],
)
def test_a_wrong_voc_file_is_a_reject(write, rejected, text, said):
    write("Annotations/1.xml", text)
    ((_, evidence),) = rejected()
    assert said in evidence


def test_crowds_and_orphans_are_rejects_and_are_not_counted(tmp_path, write, picture, store):
    picture("a.jpg")
    crowd = {"id": 8, "image_id": 1, "category_id": 3, "bbox": [1, 1, 50, 50], "iscrowd": 1}
    orphan = {"id": 9, "image_id": 77, "category_id": 3, "bbox": [1, 1, 50, 50], "iscrowd": 0}
    write("coco.json", {**COCO, "annotations": [*COCO["annotations"], crowd, orphan]})
    config = recognise(tmp_path).config.model_copy(update={"ask": ("what", "how_many")})
    intake = ingest_shard(open_source("mine", config), 0, store)
    assert [sample.question for sample in intake.samples] == ["What is in the box (120, 90, 125, 94)?"]
    assert sorted(reject.reason for reject in intake.rejects) == ["excluded", "excluded", "missing_image"]


def test_boxes_may_be_counted(tmp_path, write, picture, store):
    picture("a.jpg")
    second = {**COCO["annotations"][0], "id": 8, "bbox": [10, 10, 20, 20]}
    write("coco.json", {**COCO, "annotations": [*COCO["annotations"], second]})
    config = recognise(tmp_path).config.model_copy(update={"ask": ("how_many",)})
    sample = only(ingest_shard(open_source("mine", config), 0, store))
    assert (sample.question, sample.answer) == ("How many objects of the kind 'square' are in the image?", "2")
    assert len(sample.truth.boxes) == 2


@pytest.mark.parametrize("content", [{"images": [{}], "annotations": []}, {"images": 7, "annotations": []}])
def test_a_file_that_is_coco_in_name_alone_is_an_error(tmp_path, write, content):
    write("coco.json", content)
    with pytest.raises(SourceError, match=r"coco\.json: not as the kind coco has it"):
        recognise(tmp_path)


def test_a_tar_that_breaks_off_is_an_error(tmp_path, write):
    (tmp_path / "shard.tar").write_bytes(b"\0" * 100)
    with pytest.raises(SourceError, match=r"shard\.tar cannot be read"):
        recognise(tmp_path)


def test_several_files_of_questions_are_an_error_that_lists_them(tmp_path, write, picture):
    picture("a.jpg")
    for name in ("instances", "captions"):
        write(f"{name}.json", COCO)
    with pytest.raises(SourceError, match=r"Name one: captions\.json, instances\.json"):
        recognise(tmp_path)


def test_json_lines_of_the_same_columns_are_one_source(tmp_path, write, picture, loaded):
    picture("a.jpg")
    for number in range(3):
        write(f"part-{number}.jsonl", {"image": "a.jpg", "question": f"{number}?", "answer": "x"})
    assert [sample.question for sample in loaded(tmp_path).samples] == ["0?", "1?", "2?"]


@pytest.mark.parametrize("n_shards", [1, 3, 9])
def test_shards_of_a_kind_with_a_file_for_each_image_are_of_files(tmp_path, write, picture, store, n_shards):
    write("data.yaml", "names: [square]")
    for number in range(5):
        picture(f"images/{number}.jpg")
        write(f"labels/{number}.txt", "0 0.5 0.5 0.25 0.25\n0 0.25 0.25 0.25 0.25\n")
    config = recognise(tmp_path).config.model_copy(update={"n_shards": n_shards})
    shards = [ingest_shard(open_source("mine", config), shard, store) for shard in range(n_shards)]
    assert sum(len(shard.samples) for shard in shards) == 10
    assert all(not shard.rejects for shard in shards)
