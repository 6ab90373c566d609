"""The public sources: rows with exactly a dataset's columns go through its bundled file to samples or to rejects.

Columns are as in the comment of each file; nothing here asks a hub.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import Features, Image, List, Value

from pipelines.records import Sample
from pipelines.sources import SourceError
from pipelines.sources.catalog import (
    Catalog,
    SourceConfig,
    needs_folder,
    placed,
    public_file,
    public_source,
    public_sources,
)
from pipelines.sources.ingest import Intake, ingest_shard

TEXT = Value("string")


@pytest.fixture(autouse=True)
def _offline(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()


@pytest.fixture
def png(make_image, encoded) -> Callable[[int], bytes]:
    return lambda seed=0: encoded(make_image(seed))


@pytest.fixture
def struct(png) -> Callable[[int], dict[str, Any]]:
    return lambda seed=0: {"bytes": png(seed), "path": f"{seed}.png"}


@pytest.fixture
def taken(tmp_path, store) -> Callable[..., Intake]:
    """The bundled source on a downloaded folder, through intake."""

    def take(name: str, folder: Path = tmp_path, **changes: Any) -> Intake:
        config = public_source(name).model_copy(update={"path": str(folder), **changes})
        return ingest_shard(config.open(name), 0, store)

    return take


def write(path: Path, rows: list[dict[str, Any]], features: dict[str, Any]) -> None:
    """Parquet with the features that the hub's copy has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    assert all(set(row) == set(features) for row in rows)
    datasets.Dataset.from_list(rows, features=Features(features)).to_parquet(path)


def only(intake: Intake) -> Sample:
    assert not intake.rejects, intake.rejects
    (sample,) = intake.samples
    return sample


def reasons(intake: Intake) -> list[tuple[str, str]]:
    return [(reject.reason, reject.evidence) for reject in intake.rejects]


# --- all of them


@pytest.mark.parametrize("name", public_sources())
def test_every_bundled_file_says_what_a_user_must_know(name):
    config = public_source(name)
    assert config.about is not None
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", config.about.hub)
    assert config.path == config.about.hub
    assert all((config.about.rows, config.about.asks, config.about.columns_from))
    assert "arXiv" in public_file(name)
    assert config.license or "licence" in config.about.remarks or "licen" not in config.about.remarks


@pytest.mark.parametrize("name", public_sources())
def test_an_added_file_is_read_as_it_was_bundled(name, tmp_path):
    catalog = Catalog(tmp_path / "sources")
    config = placed(name, tmp_path, n_shards=2)
    catalog.add(name, config)
    assert catalog.configs() == {name: config}


def test_no_benchmark_is_a_source():
    hubs = {config.path for config in public_sources().values()}
    assert not hubs & {"craigwu/vstar_bench", "We-Math/We-Math", "We-Math/VTBench", "Mini-o3/VisualProbe_Hard"}
    assert "test" not in {config.split for config in public_sources().values()}


# --- images beside the questions


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
    sample, without = intake.samples
    assert (sample.question, sample.answer, sample.category) == (
        "What number is on the blue door?",
        "17",
        "visual_probe_train",
    )
    assert (len(sample.images), without.images) == (1, ())
    assert reasons(intake) == [("malformed_row", "column 'images': the path '../7.jpg' leaves the folder")]


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


# --- images in the tables


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


# --- what every table may have


def test_a_wrong_type_a_cut_off_image_and_an_index_out_of_range_are_rejects(tmp_path, store, struct, png):
    features = {
        "image": TEXT,
        "question": TEXT,
        "answer": Value("int64"),
        "options": {"A": TEXT, "B": TEXT, "C": TEXT},
        "rights": TEXT,
    }
    row = {
        "image": base64.b64encode(png()).decode(),
        "question": "?",
        "answer": 1,
        "options": {"A": "red", "B": "blue", "C": None},
        "rights": "CC0-1.0",
    }
    rows = [
        row,
        {**row, "image": row["image"][:-3]},
        {**row, "answer": 2},
        {**row, "options": {"A": "red", "B": None, "C": "blue"}},
    ]
    write(tmp_path / "a.parquet", rows, features)
    config = SourceConfig.model_validate(
        {
            "kind": "parquet",
            "path": str(tmp_path / "a.parquet"),
            "license": "MIT",
            "columns": {"choices": "options", "license": "rights"},
        }
    )
    intake = ingest_shard(config.open("mine"), 0, store)
    (sample,) = intake.samples
    assert (sample.answer, sample.choices, sample.license) == ("B", ("A. red", "B. blue"), "CC0-1.0")
    found = reasons(intake)
    assert found[0][0] == "unreadable_image"
    assert found[0][1].startswith("column 'image': begins as base64 and is none")
    assert found[1:] == [
        ("malformed_row", "column 'answer': choice 2 of 2"),
        ("malformed_row", "column 'options': the choices' letters are A, C"),
    ]


# --- adding one


def test_a_source_whose_images_are_files_says_how_to_get_them():
    with pytest.raises(SourceError, match="hf download TIGER-Lab/PixelReasoner-RL-Data") as caught:
        placed("pixel_reasoner")
    assert "Unpack there: images.zip and videos.zip.\nThen: darkroom sources add pixel_reasoner --path FOLDER" in str(
        caught.value
    )
    assert {name for name, config in public_sources().items() if needs_folder(config)} == {
        "arxivqa",
        "deepeyes_calls",
        "pixel_reasoner",
        "pixel_reasoner_sft",
        "spacer",
        "visual_probe",
        "vstar",
    }


def test_a_path_that_does_not_fit_is_an_error(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"")
    with pytest.raises(SourceError, match="vstar: expected a folder, downloaded; there is none at"):
        placed("vstar", tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="mmk12: expected a folder or a parquet file"):
        placed("mmk12", tmp_path / "none")
    with pytest.raises(SourceError, match="no public source 'vstar_bench'; there are arxivqa"):
        placed("vstar_bench")


def test_one_parquet_file_of_a_dataset_is_enough(tmp_path, store, struct):
    row = {"id": "1", "question": "Which angle?", "answer": "30", "subject": "math", "image": struct()}
    write(tmp_path / "some.parquet", [row], MMK12)
    sample = only(ingest_shard(placed("mmk12", tmp_path / "some.parquet").open("mmk12"), 0, store))
    assert sample.answer == "30"


@pytest.mark.parametrize("name", public_sources())
def test_the_docs_say_of_every_public_source_what_its_file_says(name):
    config = public_source(name)
    assert config.about is not None
    page = (Path(__file__).parents[3] / "docs" / "public_sources.md").read_text()
    (line,) = [line for line in page.splitlines() if line.startswith(f"| {name} |")]
    used = ", ".join(f"`{'/'.join(group)}`" for group in config.columns.needed())
    where, read = "files" if needs_folder(config) else "hub", "card" if config.about.on_card else "code"
    said = (
        config.about.hub,
        config.about.rows,
        used,
        config.license or "not stated",
        where,
        read,
        config.about.remarks,
    )
    assert [cell.strip() for cell in line.strip("| ").split(" | ")][1:] == list(said)
