"""The public sources whose rows hold their images or need none, row by row."""

from __future__ import annotations

import json
from typing import Any

import pytest
from datasets import Image, List, Value

from darkroom.pipelines.records import Sample
from darkroom.pipelines.sources import SourceError
from darkroom.pipelines.sources.catalog import open_source, placed, public_source
from darkroom.pipelines.sources.ingest import Intake, ingest_shard
from tests.pipelines.sources.public_rows import TEXT, reasons, write

pytestmark = pytest.mark.usefixtures("offline")


def only(intake: Intake) -> Sample:
    assert not intake.rejects, intake.rejects
    (sample,) = intake.samples
    return sample


THINKLITE = {
    "image": Value("binary"),
    "problem": TEXT,
    "answer": TEXT,
    "id": TEXT,
    "choices": List(TEXT),
    "ground_truth": TEXT,
}


def test_thinklite(taken, tmp_path, png):
    row = {
        "image": png(),
        "problem": "<image>Find x.",
        "answer": "C",
        "id": "g1",
        "choices": ["1", "2", "12.5"],
        "ground_truth": "C",
    }
    rows = [
        row,
        {**row, "id": "g2", "problem": "<image>Find y. Choices:\n(A) 1\n(B) 2\n(C) 12.5", "ground_truth": "12.5"},
        {**row, "id": "g3", "choices": None, "ground_truth": "red"},
        {**row, "id": "g4", "ground_truth": "Z"},
        {**row, "id": "g5", "image": png()[:200]},
    ]
    write(tmp_path / "ThinkLite-VL-70k.parquet", rows, THINKLITE)
    intake = taken("thinklite_70k")
    assert [(one.question, one.answer, len(one.choices), one.source_row) for one in intake.samples] == [
        ("Find x.", "C", 3, "g1"),
        ("Find y.", "C", 3, "g2"),
        ("Find x.", "red", 0, "g3"),
    ]
    assert [reason for reason, _ in reasons(intake)] == ["malformed_row", "truncated_image"]


MESSAGES = List({"role": TEXT, "content": TEXT})
DEEPEYES = {
    "data_source": TEXT,
    "prompt": MESSAGES,
    "images": List(Image()),
    "ability": TEXT,
    "env_name": TEXT,
    "reward_model": {"ground_truth": TEXT, "style": TEXT},
    "extra_info": {"answer": TEXT, "index": TEXT, "question": TEXT, "split": TEXT},
}
CALL = "\nThink first, call **image_zoom_in_tool** if needed, then answer. Format strictly as:  <think>...</think>"


def deepeyes(image: dict[str, Any], asked: str, truth: str, source: str) -> dict[str, Any]:
    return {
        "data_source": source,
        "prompt": [{"role": "system", "content": "Tools."}, {"role": "user", "content": f"<image>\n{asked}{CALL}"}],
        "images": [image],
        "ability": "vl_chart",
        "env_name": "visual_toolbox_v2",
        "reward_model": {"ground_truth": truth, "style": "model"},
        "extra_info": {"answer": truth, "index": "1", "question": asked, "split": "train"},
    }


@pytest.mark.parametrize(
    ("name", "asked", "truth", "choices"),
    [
        ("deepeyes_visual", "What colour is the cup?", "The cup is red.", ()),
        ("deepeyes_chart", "Which curve is highest?\nA. red\nB. blue", "B. blue", ("A. red", "B. blue")),
        ("deepeyes_reasoning", "Find x.", r"\boxed{12}", ()),
    ],
)
def test_deepeyes(taken, tmp_path, struct, name, asked, truth, choices):
    config = public_source(name)
    write(tmp_path / config.files[0], [deepeyes(struct(), asked, truth, "vstar")], DEEPEYES)
    write(tmp_path / "another.parquet", [deepeyes(struct(1), "Other?", "other", "vstar")], DEEPEYES)
    sample = only(taken(name))
    assert sample.question == asked.splitlines()[0]
    assert (sample.answer, sample.choices) == ({"B. blue": "B", r"\boxed{12}": "12"}.get(truth, truth), choices)
    assert (sample.category, len(sample.images), sample.license) == ("vstar", 1, "apache-2.0")


def test_a_nested_column_that_is_not_there_names_those_that_are(taken, tmp_path, struct):
    row = deepeyes(struct(), "?", "!", "vstar")
    features = {**DEEPEYES, "reward_model": {"style": TEXT}}
    write(tmp_path / "data_0.1.2_visual_toolbox_v2.parquet", [{**row, "reward_model": {"style": "model"}}], features)
    with pytest.raises(SourceError, match=r"no column 'reward_model.ground_truth'; it has .*'reward_model.style'"):
        taken("deepeyes_visual")


V_INTERACTION = {
    **dict.fromkeys(("id", "question", "original_img_code", "tool_code", "CoT_with_code", "answer"), TEXT),
    "image": Image(),
    "edited_image": Image(),
}
V_PERCEPTION = {
    **dict.fromkeys(("id", "question", "answer", "python_code"), TEXT),
    "image": Image(),
    "element_arrtibute": List(TEXT),
}


@pytest.mark.parametrize(
    ("name", "features", "extra"),
    [
        (
            "v_interaction",
            V_INTERACTION,
            {"original_img_code": "", "tool_code": "", "CoT_with_code": "", "edited_image": None},
        ),
        ("v_perception", V_PERCEPTION, {"python_code": "", "element_arrtibute": ["point A"]}),
    ],
)
def test_v_thinker(taken, tmp_path, struct, name, features, extra):
    split = public_source(name).split
    row = {"id": "7", "question": "Where is A?\nA. left\nB. right", "answer": "B", "image": struct(), **extra}
    write(tmp_path / "data" / f"{split}-00000-of-00001.parquet", [row], features)
    sample = only(taken(name))
    assert (sample.question, sample.answer, sample.source_row, len(sample.images)) == ("Where is A?", "B", "7", 1)


def test_wemath(taken, tmp_path, struct):
    row = {"question": "Find the angle.", "answer": "$30^\\circ$", "image": struct()}
    write(
        tmp_path / "std" / "data" / "standard-00000-of-00001-6bb245.parquet",
        [row],
        {"question": TEXT, "answer": TEXT, "image": Image()},
    )
    assert only(taken("wemath_standard", tmp_path / "std")).answer == r"30^\circ"
    more = {"question_id": "1-2", "difficulty": "2", "knowledge points": ["angles", "sums"], "idx": 3}
    features = {
        **dict.fromkeys(("question_id", "question", "answer", "difficulty"), TEXT),
        "image": Image(),
        "knowledge points": List(TEXT),
        "idx": Value("int64"),
    }
    write(tmp_path / "pro" / "data" / "pro-00000-of-00001-720da2.parquet", [{**row, **more}], features)
    sample = only(taken("wemath_pro", tmp_path / "pro"))
    assert json.loads(sample.truth.details or "") == {"difficulty": "2", "knowledge points": ["angles", "sums"]}
    assert sample.source_row == "1-2"


MMK12 = {**dict.fromkeys(("id", "question", "answer", "subject"), TEXT), "image": Image()}


def test_mmk12_reads_no_row_of_its_benchmark(taken, tmp_path, struct):
    row = {
        "id": "1",
        "question": "<image>As shown, ∠1 = ( )\nA. $$30$$\nB.45.2\n\nC. 60",
        "answer": "B",
        "subject": "math",
        "image": struct(),
    }
    write(tmp_path / "data" / "train-00000-of-00001.parquet", [row], MMK12)
    write(tmp_path / "data" / "test-00000-of-00001.parquet", [{**row, "id": "2"}], MMK12)
    sample = only(taken("mmk12"))
    assert (sample.question, sample.choices) == ("As shown, ∠1 = ( )", ("A. $$30$$", "B. 45.2", "C. 60"))
    assert (sample.answer, sample.category, sample.source_row) == ("B", "math", "1")


DEEPMATH = {
    **dict.fromkeys(("question", "final_answer", "topic", "r1_solution_1", "r1_solution_2", "r1_solution_3"), TEXT),
    "difficulty": Value("float64"),
}


def test_deepmath(taken, tmp_path):
    row = {
        **dict.fromkeys(DEEPMATH, "…"),
        "question": "Evaluate $\\int_0^1 x$.",
        "final_answer": "$\\dfrac{1}{2}$",
        "topic": "Calculus",
        "difficulty": 4.5,
    }
    write(tmp_path / "data" / "train-00000-of-00001.parquet", [row, {**row, "final_answer": None}], DEEPMATH)
    intake = taken("deepmath")
    (sample,) = intake.samples
    assert (sample.answer, sample.category, sample.images) == (r"\dfrac{1}{2}", "Calculus", ())
    assert json.loads(sample.truth.details or "") == {"difficulty": 4.5}
    assert reasons(intake) == [("wrong_type", "column 'final_answer': expected text, found nothing")]


def test_deepmath_keeps_figr_s_votes(taken, tmp_path):
    features = {"question": TEXT, "final_answer": TEXT, "suitability": List(Value("int64"))}
    row = {"question": "Which angle?", "final_answer": "60", "suitability": [1, 1, 0, 1, 0, 1, 1, 0]}
    write(tmp_path / "train.parquet", [row], features)
    sample = only(taken("deepmath_suitability", kind="parquet"))
    assert json.loads(sample.truth.details or "") == {"suitability": row["suitability"]}


def test_one_parquet_file_of_a_dataset_is_enough(tmp_path, store, struct):
    row = {"id": "1", "question": "Which angle?", "answer": "30", "subject": "math", "image": struct()}
    write(tmp_path / "some.parquet", [row], MMK12)
    sample = only(ingest_shard(open_source("mmk12", placed("mmk12", tmp_path / "some.parquet")), 0, store))
    assert sample.answer == "30"
