"""Questions of exported datasets and of benchmark files with exactly the columns that the public ones have."""

import base64
import json

import datasets
import pytest
from datasets import Features, Image, List, Value

from darkroom.pipelines.publishing.parquet_shards import write_trajectories
from darkroom.pipelines.records import Grader, PassRate, RLRow, Votes
from darkroom.pipelines.sources.catalog import Catalog, public_sources
from darkroom.train.evaluation.benchmarks import bundled, opened
from darkroom.train.evaluation.questions import of_benchmark, of_dataset, of_source
from darkroom.train.runs import TrainError
from tests.image_files import encoded
from tests.pipelines.publishing.shipping import write_held_out, write_prompts
from tests.train.conftest import sign
from tests.train.evaluation.conftest import desert, sample

pytestmark = pytest.mark.usefixtures("offline")

TEXT, NUMBER = Value("string"), Value("int64")


def png(seed=0):
    return encoded(desert(seed))


def write(path, rows, features):
    path.parent.mkdir(parents=True, exist_ok=True)
    datasets.Dataset.from_list(rows, features=Features(features)).to_parquet(path)
    return path


# --- benchmarks


def test_no_benchmark_is_a_source_to_train_on():
    hubs = {config.about.hub for config in bundled().values()}
    assert not hubs & {config.path for config in public_sources().values()}
    assert not bundled().keys() & public_sources().keys()


@pytest.mark.parametrize("name", bundled())
def test_every_bundled_benchmark_says_what_a_user_must_know(name):
    config = bundled()[name]
    assert config.path == config.about.hub
    assert config.about.rows
    assert "never trained on" in config.about.remarks


@pytest.fixture
def vstar(tmp_path):
    folder = tmp_path / "vstar_bench"
    asked = "What is the material of the glove?\n(A) rubber\n(B) cotton\n(C) kevlar\n(D) leather\n"
    rows = [
        {
            "image": "direct_attributes/sa_4690.jpg",
            "text": f"{asked}Answer with the option's letter from the given choices directly.",
            "category": "direct_attributes",
            "label": "A",
            "question_id": "0",
        },
        {
            "image": "relative_position/sa_1.jpg",
            "text": "Is the dog left or right of the cat?\n(A) left\n(B) right\n"
            "Answer with the option's letter from the given choices directly.",
            "category": "relative_position",
            "label": "B",
            "question_id": "115",
        },
    ]
    for row, boxes in zip(rows, ([[10, 20, 30, 40]], [[1, 2, 3, 4], [100, 50, 20, 10]]), strict=True):
        image = folder / row["image"]
        image.parent.mkdir(parents=True)
        image.write_bytes(png(len(boxes)))
        beside = {"target_object": ["x"] * len(boxes), "bbox": boxes, "question": "?", "options": ["a", "b"]}
        image.with_suffix(".json").write_text(json.dumps(beside))
    (folder / "test_questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


def test_vstar_has_its_choices_its_categories_and_its_targets(vstar, store):
    found = of_benchmark("vstar_bench", opened("vstar_bench", vstar), store)
    assert not found.left_out
    first, second = (question.sample for question in found.questions)
    assert first.question == "What is the material of the glove?"
    assert first.choices == ("A. rubber", "B. cotton", "C. kevlar", "D. leather")
    assert (first.answer, first.category) == ("A", "direct_attributes")
    assert [tuple(box.box) for box in first.truth.boxes] == [(10, 20, 40, 60)]
    assert [tuple(box.box) for box in second.truth.boxes] == [(1, 2, 4, 6), (100, 50, 120, 60)]
    assert (second.answer, second.category) == ("B", "relative_position")


def test_a_target_file_that_is_not_there_leaves_its_row_out(vstar, store):
    (vstar / "relative_position/sa_1.json").unlink()
    found = of_benchmark("vstar_bench", opened("vstar_bench", vstar), store)
    assert len(found.questions) == 1
    assert found.left_out == {"malformed_row": 1}


@pytest.fixture
def hr_bench(tmp_path):
    texts = ["Red", "Blue", "White", "Yellow"]
    rows = []
    for cycle in range(4):
        moved = texts[cycle:] + texts[:cycle]
        rows.append(
            {
                "index": cycle,
                "question": "What color are the woman's shorts?",
                "answer": "ABCD"[moved.index("Red")],
                "category": "single",
                **dict(zip("ABCD", moved, strict=True)),
                "cycle_category": str(cycle),
                "image": base64.b64encode(png()).decode(),
            }
        )
    features = {**dict.fromkeys(rows[0], TEXT), "index": NUMBER}
    return write(tmp_path / "hr" / "hr_bench_4k.parquet", rows, features)


@pytest.mark.parametrize("as_folder", [False, True])
def test_hr_bench_asks_one_question_in_four_orders(hr_bench, store, as_folder):
    path = hr_bench.parent if as_folder else hr_bench
    questions = of_benchmark("hr_bench_4k", opened("hr_bench_4k", path), store).questions
    assert [question.cycle for question in questions] == ["0", "1", "2", "3"]
    assert [question.sample.answer for question in questions] == ["A", "D", "C", "B"]
    assert questions[1].sample.choices == ("A. Blue", "B. White", "C. Yellow", "D. Red")
    assert len({question.sample.sample_id for question in questions}) == 4
    assert len({question.group for question in questions}) == 1
    assert questions[0].grader == Grader("choice")


def test_infovqa_keeps_every_accepted_answer(tmp_path, store):
    features = {
        "questionId": TEXT,
        "question": TEXT,
        "answers": List(TEXT),
        "answer_type": List(TEXT),
        "image": Image(),
        "image_url": TEXT,
        "ocr": TEXT,
        "operation/reasoning": List(TEXT),
        "data_split": TEXT,
    }
    row = dict.fromkeys(features, "") | {
        "questionId": "98313",
        "question": "How many women are there?",
        "answers": ["twenty two", "22"],
        "answer_type": [],
        "operation/reasoning": [],
        "image": {"bytes": png(), "path": "1.png"},
    }
    path = write(tmp_path / "validation.parquet", [row], features)
    (question,) = of_benchmark("infovqa", opened("infovqa", path), store).questions
    assert (question.scoring, question.accepted, question.grader) == ("anls", ("twenty two", "22"), None)
    assert (question.sample.answer, question.sample.source_row) == ("twenty two", "98313")


def test_mmstar_has_its_options_out_of_the_question(tmp_path, store):
    row = {
        "index": 0,
        "question": "Which option describe the object relationship in the image correctly?\n"
        "Options: A: The suitcase is on the book., B: The suitcase is beneath the cat., C: The suitcase is beneath the "
        "bed., D: The suitcase is beneath the book.",
        "image": {"bytes": png(), "path": "1.png"},
        "answer": "A",
        "category": "instance reasoning",
        "l2_category": "cross-instance relation reasoning",
        "meta_info": {"source": "SEEDBench_IMG", "split": "", "image_path": ""},
    }
    meta = {"source": TEXT, "split": TEXT, "image_path": TEXT}
    features = {**dict.fromkeys(row, TEXT), "index": NUMBER, "image": Image(), "meta_info": meta}
    path = write(tmp_path / "mmstar.parquet", [row], features)
    (question,) = of_benchmark("mmstar", opened("mmstar", path), store).questions
    assert question.sample.question == "Which option describe the object relationship in the image correctly?"
    assert question.sample.choices[1] == "B. The suitcase is beneath the cat."
    assert len(question.sample.choices) == 4
    assert question.sample.category == "instance reasoning"


def test_a_benchmark_of_ones_own_is_a_file(tmp_path, store):
    (tmp_path / "1.png").write_bytes(png())
    (tmp_path / "rows.jsonl").write_text('{"image": "1.png", "q": "How many?", "gt": "3"}\n')
    mine = tmp_path / "mine.yaml"
    mine.write_text(f"kind: jsonl\npath: {tmp_path}\nquestions: rows.jsonl\ncolumns: {{question: q, answer: gt}}\n")
    (question,) = of_benchmark("mine", opened("mine", mine), store).questions
    assert (question.benchmark, question.sample.answer, question.grader.kind) == ("mine", "3", "number")


def test_a_limit_reads_no_further(vstar, store):
    assert len(of_benchmark("vstar_bench", opened("vstar_bench", vstar), store, limit=1).questions) == 1


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nothing", "hr_bench_4k, hr_bench_8k, infovqa, .*, vstar_bench, wemath"),
        ("infovqa", "hf download lmms-lab/DocVQA"),
    ],
)
def test_what_is_not_there_is_said_with_what_to_do(tmp_path, name, says):
    with pytest.raises(TrainError, match=says):
        opened(name, tmp_path / "gone")


def test_a_wrong_file_is_named_with_its_field(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("kind: jsonl\npath: x\nscoring: bleu\n")
    with pytest.raises(TrainError, match=r"mine.yaml: scoring: Input should be 'grader', 'anls', 'braced'"):
        opened("mine", path)


def test_what_a_benchmark_scores_with_must_be_kept_of_its_rows(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("kind: jsonl\npath: x\nscoring: anls\naccepted: answers\n")
    with pytest.raises(TrainError, match=r"'answers' is not among columns\.details"):
        opened("mine", path)


def test_a_benchmark_without_a_mapped_column_is_named(tmp_path, store):
    (tmp_path / "test_questions.jsonl").write_text('{"image": "1.png", "text": "?"}\n')
    with pytest.raises(TrainError, match=r"benchmark 'vstar_bench'.*has no column 'label'"):
        of_benchmark("vstar_bench", opened("vstar_bench", tmp_path), store)


# --- datasets


def test_an_rl_dataset_brings_grader_boxes_and_category(tmp_path, store):
    image = store.add_pixels(desert())
    grader = Grader("number", 0.05)
    rate = PassRate("q", Votes("student", (True,), 1, ("",)), False)
    rows = [RLRow(sample("q", images=(image,), answer="3"), grader, "public", "easy", rate, None, None)]
    write_prompts(tmp_path / "rl", rows, store=store, split="validation")
    (question,) = of_dataset(tmp_path / "rl", store).questions
    assert question.sample.images == (image,)
    assert question.sample == sample("q", images=(image,), answer="3")
    assert (question.grader, question.benchmark, question.protocol) == (grader, "rl", "")


def test_an_sft_dataset_brings_its_protocol_and_its_held_out_questions(tmp_path, store):
    pairs = [sign(store, index) for index in range(4)]
    write_trajectories(tmp_path / "sft", pairs[:3], store=store)
    write_held_out(tmp_path / "sft", [pairs[3], pairs[3]], store=store)
    (question,) = of_dataset(tmp_path / "sft", store).questions
    assert (question.sample.sample_id, question.sample.answer) == ("s3", "white")
    assert question.sample.images == pairs[3][1].images  # the question's, not those of the observations
    assert (question.protocol, question.mode, question.sample.category) == ("thyme", "free", "crop")
    assert len(of_dataset(tmp_path / "sft", store, split="all").questions) == 4
    assert len(of_dataset(tmp_path / "sft", store, split="train", limit=2).questions) == 2


def test_a_split_that_is_not_there_is_said_with_those_that_are(signs, store):
    with pytest.raises(TrainError, match=r"no rows in the split 'validation' \(it has: train\)"):
        of_dataset(signs, store)


def test_a_folder_that_is_no_dataset_of_ours_is_refused(tmp_path, store):
    write(tmp_path / "train-0.parquet", [{"a": "b"}], {"a": TEXT})
    with pytest.raises(TrainError, match="neither an RL nor an SFT dataset: it has the columns a"):
        of_dataset(tmp_path, store, split="train")


def test_a_source_of_the_catalog_is_taken_in(tmp_path, store):
    found = of_source(Catalog(tmp_path).open("demo_rl"), store, limit=5)
    assert found.name == "demo_rl"
    assert len(found.questions) + sum(found.left_out.values()) == 5
