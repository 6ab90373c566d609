"""Two turns of the flywheel by a student that learned one row by heart; the second one is also killed and resumed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from darkroom.pipelines.generation.engine import Family, intake
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.models.policies import oracle_policy
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.records import Reject, Trajectory, Truth, TruthBox
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.sources.columns import Columns
from darkroom.pipelines.sources.source_config import SourceConfig
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from tests.conftest import signed
from tests.e2e.demo_runs import digests, ledger

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

EXAMPLE = Path(__file__).parents[2] / "examples" / "flywheel.py"
BOX = (200, 150, 248, 174)
"""Of every sign: where it is need not be learned."""
QUESTION = "What does the sign in the region 190, 140, 258, 184 say?"


class OneSign:
    """The row that the student learns."""

    name = fingerprint = "one_sign"
    n_shards = 1

    def rows(self, shard: int) -> Iterator[SourceRow]:
        truth = Truth(boxes=(TruthBox("sign", *BOX),))
        images = (signed(100, "S0X", BOX),)
        yield SourceRow("0", images, QUESTION, "S0X", truth=truth, category="OCR", license="CC0-1.0")


def train_student(home: Path) -> Path:
    """A tiny model that writes the oracle's row about ``OneSign`` for every image."""
    from darkroom.train import tiny
    from darkroom.train.finetuning.settings import SftSettings
    from darkroom.train.sft import finetune

    recipe = load_recipes()["crop"]
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        intake(workspace, OneSign(), 0, "one")
        family, oracle = Family(workspace, recipe, "one"), oracle_policy("crop", revision=recipe.digest)
        family.draft(oracle)
        family.run(oracle)
        family.check()
        family.keep()
        _, shipped = SftDataset(workspace, recipe, ["one"]).publish()
        assert shipped.n_rows == 1
    random, student = home / "random", home / "student"
    tiny.build(random, seed=0, texts=tiny.dataset_texts(shipped.folder))
    settings = SftSettings(max_steps=60, batch_size=1, learning_rate=1e-2, max_pixels=3136)
    finetune([shipped.folder], random, student, settings)
    return student


def add_signs(home: Path, folder: Path) -> None:
    """Six questions about other images, three a turn; the sign of one in three says something else."""
    folder.mkdir()
    lines = []
    for number in range(6):
        text = "S1X" if number >= 4 else "S0X"
        (folder / f"{number}.jpg").write_bytes(signed(number, text, BOX))
        lines.append({"image": f"{number}.jpg", "question": QUESTION, "answer": text, "boxes": [list(BOX)]})
    (folder / "metadata.jsonl").write_text("\n".join(map(json.dumps, lines)))
    columns = Columns(boxes="boxes", box_frame="corners")
    config = SourceConfig(kind="jsonl", path=str(folder), columns=columns, n_shards=2, license="CC0-1.0")
    Catalog(home / "sources").add("signs", config)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flywheel")


@pytest.fixture(scope="module")
def home(root: Path) -> Iterator[Path]:
    """After two turns."""
    add_signs(root / "home", root / "signs")
    with pytest.MonkeyPatch.context() as patched:
        student = train_student(root / "first")
        patched.setenv("DARKROOM_HOME", str(root / "home"))
        turns(student, 1)
        shutil.copytree(root / "home", root / "killed")
        turns(student, 2)
        yield root / "home"


@pytest.fixture(scope="module")
def killed(root: Path, home: Path) -> Iterator[Path]:
    """The same, but the second turn was killed while the student wrote, and run again."""
    student, killed = root / "first" / "student", root / "killed"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("DARKROOM_HOME", str(killed))
        before = set(ledger(killed))
        kill_while_it_writes(student, killed)
        written = {key: made_at for key, made_at in ledger(killed).items() if key not in before}
        assert written
        assert not (killed / "datasets/flywheel/turn-2").exists()
        turns(student, 2)
        assert written.items() <= ledger(killed).items()
        yield killed


def command(student: Path, n_turns: int) -> list[str]:
    """The example; its SFT need not learn anything more."""
    words = ["--max-pixels", "3136", "--epochs", "1", "--batch-size", "1", "--learning-rate", "1e-4"]
    return [sys.executable, str(EXAMPLE), "signs", str(student), str(n_turns), *words]


def turns(student: Path, n_turns: int) -> None:
    subprocess.run(command(student, n_turns), env=environment(), check=True)


def environment() -> dict[str, str]:
    """With the programs of this Python."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def kill_while_it_writes(student: Path, home: Path) -> None:
    """Start the second turn and kill it with SIGKILL after its first call is on the ledger."""
    n_before = len(ledger(home))
    with subprocess.Popen(command(student, 2), env=environment(), start_new_session=True) as process:
        while process.poll() is None and len(ledger(home)) == n_before:
            time.sleep(0.01)
        assert process.poll() is None, "it ended before it could be killed"
        os.killpg(process.pid, signal.SIGKILL)


def test_each_turn_writes_on_questions_of_its_own(home: Path) -> None:
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        asked = [
            {row.sample_id for row in workspace.tables.read(TableKey(("crop", "verdicts"), turn), Trajectory)}
            for turn in ("turn-1", "turn-2")
        ]
    assert [len(samples) for samples in asked] == [3, 3]
    assert not asked[0] & asked[1]


def test_the_student_of_the_second_turn_is_the_checkpoint_of_the_first(home: Path) -> None:
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        first, second = (
            {(row.provenance.policy, row.provenance.model) for row in workspace.tables.read(key, Trajectory)}
            for key in (TableKey(("crop", "trajectories"), turn) for turn in ("turn-1", "turn-2"))
        )
    assert (first, second) == ({("local", "student")}, {("local", "turn-1")})


def test_a_model_wrote_what_is_kept_and_a_wrong_answer_is_not(home: Path) -> None:
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        for turn in ("turn-1", "turn-2"):
            kept = workspace.tables.read(TableKey(("crop", "trajectories"), turn), Trajectory)
            rejects = workspace.tables.read(TableKey(("crop", "rejects"), turn), Reject)
            assert [row.answer for row in kept] == ["S0X", "S0X"]
            assert [reject.check for reject in rejects] == ["answer_matches"]


def test_a_turn_that_was_killed_and_resumed_gives_the_same_bytes(home: Path, killed: Path) -> None:
    folders = ("tables", "datasets")
    assert digests(home, *folders) == digests(killed, *folders)
    weights = [each / "checkpoints/flywheel/turn-2/model.safetensors" for each in (home, killed)]
    assert weights[0].read_bytes() == weights[1].read_bytes()
