"""The papers' own data: rows with exactly a release's columns go through its bundled file to samples or to rejects."""

from __future__ import annotations

import base64
import json

import pytest
from datasets import Features, Image, Value

from darkroom.pipelines.records.samples import right_answers
from darkroom.pipelines.sources.catalog import public_source
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


def test_of_a_pair_the_better_reply_of_mm_rlhf_is_the_answer(tmp_path, taken, png):
    (tmp_path / "short").mkdir()
    (tmp_path / "short" / "1.jpg").write_bytes(png())
    pair = {"prompt": "<image>\nWhat is it?", "chosen": "A square.", "rejected": "A dot.", "chosen_score": 4}
    rows = [{**pair, "image": "short/1.jpg"}, {**pair, "video": "long/2.mp4"}]
    (tmp_path / "dpo_pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    intake = taken("mm_rlhf")
    assert [(sample.question, sample.answer) for sample in intake.samples] == [("What is it?", "A square.")]
    assert [reason for reason, _ in reasons(intake)] == ["missing_image"]


def test_a_file_of_mmpr_has_the_folder_of_its_images(tmp_path, taken, png):
    config = public_source("mmpr")
    (tmp_path / "images" / "ScienceQA").mkdir(parents=True)
    (tmp_path / "images" / "ScienceQA" / "1.png").write_bytes(png())
    row = {"image": "1.png", "question": "<image>\nWhich?\nA. red\nB. blue", "chosen": "B", "rejected": "A"}
    (tmp_path / "annotations").mkdir()
    (tmp_path / str(config.questions)).write_text(json.dumps(row))
    (sample,) = taken("mmpr").samples
    assert (sample.question, sample.answer, sample.choices) == ("Which?", "B", ("A. red", "B. blue"))
    assert len(sample.images) == 1


PROMPT = [{"role": TEXT, "content": TEXT}]
TOLD = "<image>\nWhich colour?\nThink first, call tools if needed, then answer."


def test_deepeyes_v2_asks_nothing_of_its_benchmark(tmp_path, taken, struct):
    features = {
        "prompt": PROMPT,
        "images": [Image()],
        "extra_info": {"question": TEXT},
        "reward_model": {"ground_truth": TEXT},
    }
    for n, (name, question) in enumerate({"perception_all_1": "Which?", "reason": None, "vstar_test": "No?"}.items()):
        prompt = [{"role": "system", "content": "Tools."}, {"role": "user", "content": TOLD}]
        row = {"prompt": prompt, "images": [struct(n)], "extra_info": {"question": question}}
        write(tmp_path / f"{name}.parquet", [{**row, "reward_model": {"ground_truth": "red"}}], features)
    intake = taken("deepeyes_v2")
    assert not intake.rejects
    assert [sample.question for sample in intake.samples] == ["Which?", "Which colour?"]


def test_all_answers_that_codevision_lists_are_right(tmp_path, taken, struct):
    features = {
        "images": [Image()],
        "extra_info": {"question": TEXT, "index": Value("int64"), "split": TEXT, "transform": TEXT},
        "reward_model": {"ground_truth": [TEXT], "style": TEXT},
    }
    rows = [
        {
            "images": [struct()],
            "extra_info": {"question": "How many?", "index": n, "split": split, "transform": "rotate_90"},
            "reward_model": {"ground_truth": ["14", "fourteen"], "style": "rule"},
        }
        for n, split in enumerate(("train", "test"))
    ]
    write(tmp_path / "train_group_1.parquet", rows, features)
    intake = taken("codevision")
    (sample,) = intake.samples
    assert right_answers(sample) == ("14", "fourteen")
    assert json.loads(sample.truth.details or "")["extra_info.transform"] == "rotate_90"
    assert [reason for reason, _ in reasons(intake)] == ["excluded"]
