"""Every bundled benchmark: its columns are read, its answers are scored as the benchmark scores them."""

import asyncio
import base64
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from darkroom.pipelines.generation.rollout import Rollout
from darkroom.pipelines.records import Usage
from darkroom.pipelines.storage.images import ImageStore
from darkroom.train.evaluation.benchmarks import bundled, download, opened
from darkroom.train.evaluation.questions import of_benchmark
from darkroom.train.evaluation.rollouts import score
from darkroom.train.evaluation.scorings import MAX_CHARS
from darkroom.train.runs import TrainError
from tests.train.evaluation.benchmark_rows import ANSWERS, FILES, IMAGE, OFFICIAL, ROWS, TEXT_IMAGES
from tests.train.evaluation.test_questions import png

pytestmark = pytest.mark.usefixtures("offline")

ELSEWHERE = {"vstar_bench", "hr_bench_4k", "hr_bench_8k", "mmstar", "infovqa"}
"""Read and scored in ``test_questions.py`` and ``test_evaluate.py``."""
PAPERS = {"Thyme": 19, "PyVision-RL": 9, "CodeV": 11, "Look Less, Reason More": 5, "FIGR": 7}
"""Files with sets of each paper's tables; MathVision and CharXiv have two files each."""


@pytest.fixture(scope="module")
def image():
    return png()


@pytest.fixture(scope="module")
def film():
    return encoded([np.full((32, 48, 3), grey, np.uint8) for grey in range(0, 250, 50)])


def encoded(frames):
    import io

    import av

    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=5)
        stream.width, stream.height = frames[0].shape[1], frames[0].shape[0]
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    return buffer.getvalue()


def written(name, folder, image, film):
    """The rows as the benchmark ships them: its download."""
    config, rows = bundled()[name], ROWS[name]
    folder.mkdir()
    if config.kind == "jsonl":
        for path in ("data/1.png", "images/1.png", "VisualProbe_X/1.png", "1.png"):
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(image)
        (folder / "arkitscenes").mkdir()
        (folder / "arkitscenes/41069025.mp4").write_bytes(film)
        text = json.dumps(rows) if config.questions.endswith(".json") else "\n".join(map(json.dumps, rows))
        (folder / config.questions).write_text(text.replace("VisualProbe_X/", ""))
        return folder
    shown = base64.b64encode(image).decode() if name in TEXT_IMAGES else {"bytes": image, "path": None}
    rows = [{key: shown if value is IMAGE else value for key, value in row.items()} for row in rows]
    if config.kind == "tsv":
        cells = [list(rows[0]), *(list(row.values()) for row in rows)]
        (folder / f"{name}.tsv").write_text("\n".join("\t".join(line) for line in cells))
        return folder / f"{name}.tsv"
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    return folder / "rows.parquet"


def test_every_benchmark_is_read_and_scored_by_a_test():
    assert set(bundled()) == ELSEWHERE | ROWS.keys() == ELSEWHERE | ANSWERS.keys()
    assert all(len(ROWS[name]) == len(ANSWERS[name]) for name in ROWS)
    assert {"vsi_bench"} | FILES == {name for name, config in bundled().items() if config.kind == "jsonl"} - ELSEWHERE


def test_the_papers_sets_are_all_there():
    for paper, n in PAPERS.items():
        assert sum(paper in config.papers for config in bundled().values()) == n, paper
    of_tables = {name for name, config in bundled().items() if config.papers}
    assert len(of_tables - {"mathvision_mini", "charxiv_descriptive"}) == 33


@pytest.mark.parametrize("name", ROWS)
def test_a_benchmark_is_read_and_strictly_scored(name, tmp_path, image, film):
    path = written(name, tmp_path / "download", image, film)
    strict = opened(name, path).model_copy(update={"official": ()})
    questions = of_benchmark(name, strict, ImageStore(tmp_path / "images"))
    assert not questions.left_out
    assert len(questions.questions) == len(ROWS[name])
    for question, answers in zip(questions.questions, ANSWERS[name], strict=True):
        for answer, expected in answers:
            assert_scored(question, answer, expected)


@pytest.mark.parametrize("name", ROWS)
def test_a_benchmark_is_scored_as_its_own_code_does(name, tmp_path, image, film):
    for question, answers in zip(read(name, tmp_path, image, film), OFFICIAL.get(name, ANSWERS[name]), strict=True):
        for answer, expected in answers:
            assert_scored(question, answer, expected)


def assert_scored(question, answer, expected):
    scored = asyncio.run(score(Rollout((), "", answer, Usage(), None), question))
    assert scored.value == pytest.approx(expected), (question.benchmark, question.sample.answer, answer, scored.detail)
    assert scored.right is (expected == 1)


def test_the_page_counts_the_answers_that_strict_scores_otherwise(tmp_path, image, film):
    n = lower = higher = 0
    for name, rows in OFFICIAL.items():
        (tmp_path / name).mkdir()
        for question, answers in zip(read(name, tmp_path / name, image, film), rows, strict=True):
            for answer, expected in answers:
                rollout = Rollout((), "", answer, Usage(), None)
                value = asyncio.run(score(rollout, replace(question, official=()))).value
                n, lower, higher = n + 1, lower + (value < expected - 1e-9), higher + (value > expected + 1e-9)
    page = " ".join((Path(__file__).parents[3] / "docs" / "benchmarks.md").read_text().split())
    assert f"Of {n} answers scored by hand from that code, `--strict` scores {lower} lower, {higher} higher." in page


def test_every_set_names_its_code_and_how_it_scores_otherwise():
    configs = bundled()
    assert {name for name, config in configs.items() if config.official} == OFFICIAL.keys()
    assert all(config.official_code and config.differs for config in configs.values() if config.official)
    assert all(config.differs for config in configs.values())


@pytest.mark.parametrize("name", OFFICIAL)
def test_an_endless_answer_has_an_official_score(name, tmp_path, image, film):
    answers = ["A ", "{", "1 ", "row", "1,", ". ", "(a", "answer ", "=", "9", "\\boxed{", "e"]
    longest = [(text * MAX_CHARS)[:MAX_CHARS] for text in answers]
    for question in read(name, tmp_path, image, film):
        for answer in longest:
            assert 0 <= asyncio.run(score(Rollout((), "", answer, Usage(), None), question)).value <= 1


def read(name, tmp_path, image, film=b""):
    path = written(name, tmp_path / "download", image, film)
    return of_benchmark(name, opened(name, path), ImageStore(tmp_path / "images")).questions


def test_a_question_with_several_images_has_those_that_there_are(tmp_path, image):
    (question, _) = read("mmmu", tmp_path, image)
    assert len(question.sample.images) == 2
    assert question.sample.choices == ("A. a cup", "B. a image 2 <image>", "C. a hat")


def test_a_question_about_a_film_has_it_and_no_image(tmp_path, image, film):
    (question, _) = read("vsi_bench", tmp_path, image, film)
    assert (question.sample.images, question.sample.videos[0].n_frames) == ((), 5)
    assert question.sample.category == "room_size_estimation"


def test_instructions_are_no_part_of_a_question(tmp_path, image):
    assert [q.sample.question for q in read("realworldqa", tmp_path, image)] == [
        "Which car is nearest?",
        "How many signs are there?",
    ]


def test_the_versions_of_a_problem_are_one_group(tmp_path, image):
    first, second, _ = read("dynamath", tmp_path, image)
    assert first.sample.sample_id != second.sample.sample_id
    assert first.group == second.group


def test_what_to_download_says_how_and_what_to_unpack():
    assert download(bundled()["mmvet_hard"]).startswith("wget https://")
    assert download(bundled()["tir_bench"]).endswith("--local-dir FOLDER; unzip data.zip in it")


def test_a_rule_of_ones_own_is_a_pattern_and_a_comparison(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("kind: jsonl\npath: x\nofficial: [{find: '[A-Z'}]\n")
    with pytest.raises(TrainError, match=r"mine.yaml: official.0.find: .*regular expression"):
        opened("mine", path)
    path.write_text("kind: jsonl\npath: x\nofficial: [{compare: bleu}]\n")
    with pytest.raises(TrainError, match=r"mine.yaml: official.0.compare: Input should be 'same'"):
        opened("mine", path)


def test_mathvista_asks_with_unit_and_precision_and_lists_its_choices_once(tmp_path, image):
    length, *_, chosen, _, _ = (question.sample for question in read("mathvista", tmp_path, image))
    assert "one decimal place" in length.question
    assert length.question.endswith("How long is the bar? (Unit: cm)")
    assert chosen.question.endswith("Question: Which?")
    assert chosen.choices == ("A. 145°", "B. 135°")
