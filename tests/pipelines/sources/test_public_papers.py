"""The papers' own data: rows with exactly a release's columns go through its bundled file to samples or to rejects."""

from __future__ import annotations

import base64
import json

import pytest
from datasets import Features, Image, Value

from tests.pipelines.sources.public_rows import TEXT, reasons, write

pytestmark = pytest.mark.usefixtures("offline")

TURNS = [{"from": TEXT, "value": TEXT}]


def turns(question: str, answer: str) -> list[dict[str, str]]:
    return [{"from": "human", "value": question}, {"from": "gpt", "value": answer}]


def test_all_configurations_of_llava_onevision_are_one_source(tmp_path, taken, struct):
    features = {"id": TEXT, "image": Image(), "conversations": TURNS, "data_source": TEXT}
    for n, name in enumerate(("sroie", "geo170k(qa)", "magpie_pro(l3_80b_st)")):
        image = struct(n) if n < 2 else None
        question = "<image>\nWho is it?" if image else "Who is it?"
        row = {"id": str(n), "image": image, "conversations": turns(question, name), "data_source": name}
        write(tmp_path / name / "train-00000-of-00001.parquet", [row], features)
    intake = taken("llava_onevision")
    assert not intake.rejects
    found = [(sample.question, sample.answer, sample.category, len(sample.images)) for sample in intake.samples]
    assert sorted(found) == [
        ("Who is it?", "geo170k(qa)", "geo170k(qa)", 1),
        ("Who is it?", "magpie_pro(l3_80b_st)", "magpie_pro(l3_80b_st)", 0),
        ("Who is it?", "sroie", "sroie", 1),
    ]


def test_thyme_rl_holds_images_in_base64(tmp_path, taken, png):
    features = {"images": [TEXT], "question": TEXT, "solution": TEXT}
    image = base64.b64encode(png()).decode()
    rows = [
        {"images": [image], "question": "Which?\nA. red\nB. blue", "solution": "<answer>A</answer>"},
        {"images": [], "question": "1 + 1?", "solution": "2"},
    ]
    write(tmp_path / "data" / "train-00000-of-00001.parquet", rows, features)
    intake = taken("thyme_rl")
    found = [(sample.question, sample.answer, len(sample.choices), len(sample.images)) for sample in intake.samples]
    assert found == [("Which?", "A", 2, 1), ("1 + 1?", "2", 0, 0)]


def test_a_label_of_chartqa_is_a_list_of_one(tmp_path, taken, struct):
    features = {"image": Image(), "query": TEXT, "label": [TEXT], "human_or_machine": Value("int64")}
    for split in ("train", "val"):
        row = {"image": struct(), "query": "How many bars?", "label": ["14"], "human_or_machine": 0}
        write(tmp_path / "data" / f"{split}-00000-of-00001.parquet", [row], features)
    (sample,) = taken("chartqa_train").samples
    assert (sample.question, sample.answer) == ("How many bars?", "14")


def test_a_solution_of_retool_gives_its_boxed_answer(tmp_path, taken):
    features = {"messages": [{"role": TEXT, "content": TEXT}]}
    solution = "<think>\n<code>print(6 * 7)</code>\n</think>\n<answer>\n\\boxed{42}\n</answer>"
    row = {"messages": [{"role": "user", "content": "Six times 7?"}, {"role": "assistant", "content": solution}]}
    write(tmp_path / "data" / "train-00000-of-00001.parquet", [row], features)
    (sample,) = taken("retool_sft").samples
    assert (sample.question, sample.answer, sample.images) == ("Six times 7?", "42", ())


def test_choices_of_gmai_are_cut_out_of_the_question(tmp_path, taken, png):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "1.png").write_bytes(png())
    row = {"image": "images/1.png", "conversations": turns("<image>\nWhich organ?\nA. Liver\nB. Lung", "B")}
    (tmp_path / "train.jsonl").write_text(json.dumps(row))
    intake = taken("gmai_reasoning", config=None)
    assert not intake.rejects
    (sample,) = intake.samples
    assert (sample.question, sample.answer, sample.choices) == ("Which organ?", "B", ("A. Liver", "B. Lung"))


def test_llava_cot_names_images_below_its_archive(tmp_path, taken, png):
    (tmp_path / "sqa").mkdir()
    (tmp_path / "sqa" / "1.png").write_bytes(png())
    rows = [
        {"id": "1", "image": "sqa/1.png", "conversations": turns("Which?", "<CONCLUSION> It is red. </CONCLUSION>")},
        {"id": "2", "image": "sqa/2.png", "conversations": turns("Which?", "Red.")},
    ]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    intake = taken("llava_cot")
    assert [sample.question for sample in intake.samples] == ["Which?"]
    assert [reason for reason, _ in reasons(intake)] == ["missing_image"]


def test_longvideo_reason_names_a_film(tmp_path, taken):
    features = Features({"problem": TEXT, "reasoning": TEXT, "videos": TEXT, "answer": TEXT})
    row = {"problem": "Why?\nA. Rain\nB. Snow", "reasoning": "…", "videos": "longvila_videos/1.mp4", "answer": "A"}
    write(tmp_path / "train-00000-of-00001.parquet", [row], dict(features))
    assert [reason for reason, _ in reasons(taken("longvideo_reason"))] == ["missing_video"]
