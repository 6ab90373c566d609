"""The public sources whose images and videos are files beside their questions, row by row."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from datasets import List, Value

from darkroom.pipelines.sources import SourceError
from tests.pipelines.sources.public_rows import TEXT, reasons, write

pytestmark = pytest.mark.usefixtures("offline")


@pytest.fixture
def beside(tmp_path, png) -> Callable[..., None]:
    def put(*paths: str) -> None:
        for path in paths:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(png())

    return put


def test_vstar(taken, beside, tmp_path):
    beside("gqa/images/1.jpg", "coco2017/train2017/2.jpg")
    asked = {
        "image": "gqa/images/1.jpg",
        "question": "What colour is the cup?",
        "answer": "The cup is red.",
        "target_instances": [{"name": "cup", "bbox": [4.5, 6.0, 20.0, 10.0]}, {"name": "plate", "bbox": [0, 0, 8, 8]}],
        "search": "",
        "conversations": [{"from": "human", "value": "<image>\nOther words?"}, {"from": "gpt", "value": "Others."}],
    }
    talked = {
        "image": "coco2017/train2017/2.jpg",
        "target_instances": [],
        "conversations": [
            {
                "from": "human",
                "value": "<image>\nAdditional visual information to focus on: dog <object>\nWhere is it?",
            },
            {"from": "gpt", "value": "Left."},
        ],
    }
    outside = {**asked, "question": "And this?", "target_instances": [{"name": "cup", "bbox": [90, 60, 20, 20]}]}
    (tmp_path / "GQA_data.json").write_text(json.dumps([asked, outside, 7]))
    (tmp_path / "spatial_relation_data.json").write_text(json.dumps([talked]))
    (tmp_path / "vaw_attribute_data.json").write_text("[]")
    intake = taken("vstar")
    first, second = intake.samples
    assert (first.question, first.answer) == ("What colour is the cup?", "The cup is red.")
    assert [(box.label, *box.box) for box in first.truth.boxes] == [("cup", 4, 6, 25, 16), ("plate", 0, 0, 8, 8)]
    assert (second.question, second.answer, second.source_row) == (
        "Where is it?",
        "Left.",
        "spatial_relation_data.json:1",
    )
    assert [reason for reason, _ in reasons(intake)] == ["box_outside_image", "malformed_row"]
    assert intake.n_in == 4


def arxiv(**changes: Any) -> dict[str, Any]:
    row = {
        "id": "cond-mat-1",
        "image": "images/cond-mat_1.jpg",
        "options": ["A) It grows", "B) It falls", "C) It stays", "D) It oscillates"],
        "question": "What happens to the resistance?",
        "label": "B",
        "rationale": "It falls.",
    }
    return {**row, **changes}


def test_arxivqa(taken, beside, tmp_path):
    beside("images/cond-mat_1.jpg")
    rows = [
        arxiv(),
        arxiv(options=["It grows", "It falls"], label="B."),
        arxiv(label="[D]"),
        arxiv(options=["A: It grows", "B: It falls"], label="B) It falls"),
        arxiv(label="E"),
        arxiv(options=["B) It grows", "A) It falls"]),
        arxiv(image="images/gone.jpg"),
        arxiv(options="A) It grows"),
        arxiv(label=None),
    ]
    (tmp_path / "arxivqa.jsonl").write_text("\n".join(map(json.dumps, rows)))
    intake = taken("arxivqa")
    assert [(sample.answer, sample.choices[1]) for sample in intake.samples] == [
        ("B", "B. It falls"),
        ("B", "B. It falls"),
        ("D", "B. It falls"),
    ]
    found = reasons(intake)
    assert found[0][0] == "duplicate"
    assert found[1] == ("malformed_row", "the answer 'E' is none of the choices")
    assert found[2] == ("malformed_row", "column 'options': the choices' letters run B, A")
    assert found[3][0] == "missing_image"
    assert found[4][1].startswith("column 'options': expected a list of texts, found str 'A) It grows'")
    assert found[5] == ("wrong_type", "column 'label': expected text, found nothing")


def test_visual_probe(taken, beside, tmp_path):
    beside("data/visual_probe_train_7.jpg")
    row = {
        "images": ["VisualProbe_train/data/visual_probe_train_7.jpg"],
        "doc_id": "visual_probe_train_7",
        "problem": "<image>\nWhat number is on the blue door?",
        "solution": "17",
        "data_source": "visual_probe_train",
    }
    (tmp_path / "train.json").write_text(json.dumps([row, {**row, "images": []}, {**row, "images": ["../7.jpg"]}]))
    intake = taken("visual_probe")
    (sample,) = intake.samples
    assert (sample.question, sample.answer, sample.category) == (
        "What number is on the blue door?",
        "17",
        "visual_probe_train",
    )
    assert len(sample.images) == 1
    without, outside = reasons(intake)
    assert without[0] == "missing_image"
    assert without[1].startswith("the text shows 1 images, the row has 0")
    assert outside == ("malformed_row", "column 'images': the path '../7.jpg' leaves the folder")


def test_a_json_file_that_is_cut_off_or_no_list_is_an_error(taken, tmp_path):
    (tmp_path / "train.json").write_text('[{"problem": "What')
    with pytest.raises(SourceError, match=r"train\.json: expected one list of rows in a \.json file; not JSON"):
        taken("visual_probe")
    (tmp_path / "train.json").write_text("{}")
    with pytest.raises(SourceError, match="found dict"):
        taken("visual_probe")


def test_spacer(taken, tmp_path, clip):
    (tmp_path / "ScanNet").mkdir()
    (tmp_path / "ScanNet" / "scene0.mp4").write_bytes(clip())
    row = {
        "problem_id": 1,
        "problem": "Which is closer to the door?",
        "options": ["A. the chair", "B. the table"],
        "solution": "<answer>B</answer>",
        "path": "/ScanNet/scene0.mp4",
        "data_type": "video",
        "problem_type": "multiple choice",
        "data_source": "SR_dataset",
    }
    number = {
        **row,
        "problem": "How many chairs?",
        "options": [],
        "solution": "<answer>4</answer>",
        "problem_type": "numerical",
    }
    rows = [row, number, {**row, "data_type": "image"}, {**row, "solution": "<answer>B"}, {**row, "path": "/gone.mp4"}]
    (tmp_path / "SpaceR-151k.jsonl").write_text("\n".join(map(json.dumps, rows)))
    intake = taken("spacer")
    choice, count = intake.samples
    assert (choice.answer, choice.choices, choice.images) == ("B", ("A. the chair", "B. the table"), ())
    assert (count.answer, count.choices, count.category) == ("4", (), "numerical")
    assert len(choice.videos) == 1
    assert [reason for reason, _ in reasons(intake)] == ["excluded", "malformed_row", "missing_video"]
    assert reasons(intake)[0][1] == "column 'data_type' is 'image', which the source leaves out"
    assert intake.rejects[0].disposition == "rejected"


PIXEL = {"question": TEXT, "answer": List(TEXT), "image": List(TEXT), "is_video": Value("bool"), "qid": TEXT}


def test_pixel_reasoner(taken, beside, tmp_path):
    beside("images/1.jpg", "videos/2/0.jpg", "videos/2/1.jpg")
    rows = [
        {
            "question": "Which year?",
            "answer": [r"\boxed{1999}"],
            "image": ["images/1.jpg"],
            "is_video": None,
            "qid": "a",
        },
        {
            "question": "Which country?",
            "answer": [r"\boxed{['USA', 'United States']}"],
            "image": ["images/1.jpg"],
            "is_video": False,
            "qid": "b",
        },
        {
            "question": "What is done? \nchoices: \n(A) sit\n(B) run",
            "answer": [r"\boxed{B}"],
            "image": ["videos/2/0.jpg", "videos/2/1.jpg"],
            "is_video": True,
            "qid": "c",
        },
        {"question": "None?", "answer": [], "image": ["images/1.jpg"], "is_video": False, "qid": "d"},
    ]
    write(tmp_path / "release.parquet", rows, PIXEL)
    (tmp_path / "images.zip").write_bytes(b"PK")
    intake = taken("pixel_reasoner")
    assert [(sample.answer, sample.choices, len(sample.images)) for sample in intake.samples] == [
        ("1999", (), 1),
        ("USA", (), 1),
        ("B", ("A. sit", "B. run"), 2),
    ]
    assert reasons(intake) == [("wrong_type", "column 'answer': expected text, found an empty list")]
