"""`make demo`, as a user runs it: once, and again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import pyarrow.parquet as pq
import pytest

from darkroom.pipelines.demo.images import DemoSource
from darkroom.pipelines.generation.funnel import Forecast, funnel_of
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.publishing.dataset_reader import read_files
from darkroom.pipelines.publishing.rl_dataset import KEY
from darkroom.pipelines.records import GraderKind, Reject, RLRow, SuitabilityVotes
from darkroom.pipelines.selection.sampling import SPLITS
from darkroom.pipelines.sources.catalog import partition_key
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from measurements.diversity import distinct_n, thoughts_of
from tests.e2e.demo_runs import demo, digests, ledger

N_SHARDS = DemoSource().n_shards
N_ANNOTATION = 5
"""Tables of the recorded campaign."""
PRINT_ROWS = """
import sys, datasets
rows = datasets.load_dataset("parquet", data_files=sys.argv[1] + "/*.parquet", split="train")
assert not any(name.split(".")[0] in ("pipelines", "sandbox", "assets") for name in sys.modules)
row = rows[0]
print(len(rows), [image.size for image in row["images"]], row["rounds"][0]["observation"]["images"])
"""


def test_the_summary_says_what_happened(undisturbed: tuple[Path, str]) -> None:
    home, said = undisturbed
    for expected in (
        "Rows per family",
        "agentic_video",
        "Not applicable: rows that are not for a family",
        "truncated_image",
        "quarantined",
        "SFT loss, epoch 1",
        "SFT loss, epoch 2",
        "GRPO",
        "Evaluation of base",
        "Evaluation of grpo",
        "the first trajectory: ",
        str(home / "evaluations" / "grpo" / "gallery.html"),
        "darkroom ui",
        str(home / "datasets" / "sft" / "crop"),
    ):
        assert expected in said, expected
    assert said.index("agentic_image/trajectories") < said.index("agentic_video/drafts"), "a family after the other"


def test_the_dataset_is_read_without_darkroom(undisturbed: tuple[Path, str], tmp_path: Path) -> None:
    home, _ = undisturbed
    folder = home / "datasets" / "sft" / "crop"
    # from another folder, so that not even the packages' sources are on the path
    said = subprocess.run(
        [sys.executable, "-c", PRINT_ROWS, str(folder)], capture_output=True, text=True, cwd=tmp_path, check=True
    ).stdout
    n_rows = int(said.split()[0])
    assert n_rows >= 20
    assert "[1]" in said
    assert (folder / "README.md").read_text().startswith("---\n")


def test_training_wrote_checkpoints_with_falling_loss(undisturbed: tuple[Path, str]) -> None:
    home, _ = undisturbed
    sft = json.loads((home / "checkpoints" / "sft" / "training.json").read_text())
    losses = [step["loss"] for step in sft["steps"] if "loss" in step]
    assert sum(losses[-3:]) < 0.8 * sum(losses[:3])
    assert (home / "checkpoints" / "sft" / "model.safetensors").exists()
    assert (home / "checkpoints" / "grpo" / "model.safetensors").exists()
    assert (home / "checkpoints" / "grpo" / "rollouts.html").exists()
    assert json.loads((home / "evaluations" / "grpo" / "report.json").read_text())["n_failed"] == 0


def test_the_trained_model_looks_and_beats_the_untrained_on_held_out_questions(undisturbed: tuple[Path, str]) -> None:
    home, _ = undisturbed
    untrained, trained = (
        json.loads((home / "evaluations" / name / "report.json").read_text())["results"]["all"]
        for name in ("base", "grpo")
    )
    assert trained["accuracy"]["n_questions"] == untrained["accuracy"]["n_questions"] >= 30
    assert trained["accuracy"]["right"]["mean"] > untrained["accuracy"]["right"]["mean"] + 0.2
    assert trained["code"]["tool_use"]["mean"] > 0.9
    assert trained["code"]["pass_rate"] > 0.9
    for step in json.loads((home / "checkpoints" / "grpo" / "training.json").read_text())["steps"]:
        assert step["reward"] > 0
        assert step["executable_rate"] > 0
    assert (home / "evaluations" / "grpo" / "gallery.html").exists()


def test_a_second_run_does_no_finished_work_again(undisturbed: tuple[Path, str], root: Path) -> None:
    home, _ = undisturbed
    acts, before = ledger(home), digests(home, "tables", "datasets", "checkpoints")
    said = demo(root, home)
    assert ledger(home) == acts
    assert digests(home, "tables", "datasets", "checkpoints") == before
    # the command builds some families of the second shard, and the process beside it the others
    assert said.count("sft_trajectories: 1 of 1 shards are finished") == N_SHARDS + 1
    assert "rl_prompts: 1 of 1 shards are finished" in said
    assert "datasets: finished" in said
    assert said.count("(unchanged)") == N_SHARDS + N_ANNOTATION + 1


@pytest.mark.parametrize(
    ("family", "reasons"),
    [
        ("agentic_video", set()),
        ("rotation", {"unsuitable"}),
        ("contrast", {"unsuitable", "check_failed"}),
    ],
)
def test_what_a_family_takes_out_of_the_whole_demo_is_what_it_says(
    undisturbed: tuple[Path, str], family: str, reasons: set[str]
) -> None:
    """Their own tests work on a part of it. Of a film or a turned image no check may fail."""
    with Workspace.from_environment({"DARKROOM_HOME": str(undisturbed[0])}) as workspace:
        keys = [TableKey((family, "rejects"), partition_key("demo", shard)) for shard in range(N_SHARDS)]
        taken_out = [reject for key in keys for reject in workspace.tables.read(key, Reject)]
    assert {reject.reason for reject in taken_out} <= reasons


def test_every_family_has_at_least_twenty_accepted_rows(undisturbed: tuple[Path, str]) -> None:
    home, _ = undisturbed
    for family in load_recipes():
        rows = [pq.read_metadata(path).num_rows for path in (home / "datasets" / "sft" / family).glob("*.parquet")]
        assert sum(rows) >= 20, family


def test_every_dataset_has_its_share_of_validation_rows_and_no_image_in_both_splits(
    undisturbed: tuple[Path, str],
) -> None:
    home, _ = undisturbed
    split_of_image: dict[str, str] = {}
    for folder in sorted([*(home / "datasets" / "sft").iterdir(), *(home / "datasets" / "rl").iterdir()]):
        files = {split: sorted(folder.glob(f"{split}-*.parquet")) for split in SPLITS}
        rows = {split: sum(pq.read_metadata(path).num_rows for path in paths) for split, paths in files.items()}
        assert 0.05 <= rows["validation"] / sum(rows.values()) <= 0.15, folder.name
        if folder.parent.name == "sft":
            for split, paths in files.items():
                for row in read_files(paths, only=("image_refs", "n_question_images")):
                    for ref in row["image_refs"][: row["n_question_images"]]:
                        assert split_of_image.setdefault(ref["sha256"], split) == split, folder.name


@pytest.fixture(scope="module")
def trajectories(undisturbed: tuple[Path, str]) -> dict[str, list[dict[str, Any]]]:
    """The published rows by family, the columns that are read below."""
    columns = ("question", "image_refs", "n_question_images", "rounds", "final_thought")
    folders = (undisturbed[0] / "datasets" / "sft").iterdir()
    return {folder.name: list(read_files(sorted(folder.glob("*.parquet")), only=columns)) for folder in folders}


def test_four_questions_at_most_are_asked_about_an_image(trajectories: dict[str, list[dict[str, Any]]]) -> None:
    questions: defaultdict[str, set[str]] = defaultdict(set)
    for row in chain.from_iterable(trajectories.values()):
        for ref in row["image_refs"][: row["n_question_images"]]:
            questions[ref["sha256"]].add(row["question"])
    assert max(map(len, questions.values())) <= 4


def test_thoughts_are_in_many_words_and_none_of_them_says_nothing(
    trajectories: dict[str, list[dict[str, Any]]],
) -> None:
    for family, rows in trajectories.items():
        thoughts = [thoughts_of(row) for row in rows]
        assert distinct_n(thoughts) >= 0.5, family
        written = "\n".join([*thoughts, *(turn["code"] for row in rows for turn in row["rounds"])])
        for empty in ("the part with the part in question", "the thing in question", "Having 1 computed"):
            assert empty not in written, family
        assert "not seen the picture yet" not in written, family


def test_the_forecast_of_the_first_shard_holds_on_the_second(undisturbed: tuple[Path, str]) -> None:
    with Workspace.from_environment({"DARKROOM_HOME": str(undisturbed[0])}) as workspace:
        for family in load_recipes():
            seen, later = (funnel_of(workspace.tables, family, [f"demo-000{shard}"]) for shard in (0, 1))
            forecast = Forecast.of(seen, later.steps[0].n_out)
            assert forecast.least <= later.n_accepted <= forecast.most, family


def test_the_rl_dataset_has_votes_rates_and_what_people_wrote(undisturbed: tuple[Path, str]) -> None:
    home, said = undisturbed
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        rows = workspace.tables.read(KEY, RLRow)
        votes = workspace.tables.read(TableKey(("suitability_votes",), "demo_rl-0000"), SuitabilityVotes)
    assert len(rows) >= 200
    assert {len(row.votes.ballots) for row in votes} == {8}
    public = [row for row in rows if row.origin == "public"]
    assert all(row.pass_rate is not None and row.pass_rate.votes.n == 8 for row in public)
    assert {row.grader.kind for row in rows} == set(get_args(GraderKind))
    assert sum(row.origin == "annotated" for row in rows) >= 24
    assert "RL data, stage by stage" in said
    assert (home / "datasets" / "rl" / "prompts" / "README.md").read_text().startswith("---\n")


def test_a_missing_key_is_said_before_any_work(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run(
        "darkroom",
        "demo",
        check=False,
        DARKROOM_POLICY="openai",
        DARKROOM_POLICY_URL="https://api.example.invalid/v1",
        DARKROOM_POLICY_MODEL="some-model",
        OPENAI_API_KEY="",
    )
    assert done.returncode == 1
    assert "OPENAI_API_KEY" in done.stderr
    assert "Traceback" not in done.stderr
