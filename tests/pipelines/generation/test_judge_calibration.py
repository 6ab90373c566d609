"""A judge asked about labelled rows: found by id or place, asked once, resumable, what is of no use set aside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.judge_calibration import Calibrated, calibrate_judge, judged_checks
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.models.policies import (
    Completion,
    CompletionRequest,
    PolicyError,
    PolicyIdentity,
    PolicyUnavailable,
    oracle_policy,
)
from darkroom.pipelines.records import Trajectory, Usage
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification.calibration_store import BUNDLED, CalibrationStore
from darkroom.pipelines.verification.checks import consistency
from darkroom.pipelines.verification.judges import PolicyJudge
from darkroom.pipelines.verification.judges.calibration import CalibrationError
from darkroom.sandbox.errors import UserError
from tests.conftest import Unlocated

PARTITION = "small-0000"
YES, NO = '{"verdict": true}', '{"verdict": false}'


class Voter:
    """A judge that knows what people said, and stops after ``n_most`` votes: a fake where money would be spent."""

    concurrency = 4

    def __init__(self, n_most: int = 10_000) -> None:
        self.identity = PolicyIdentity("openai", "voter")
        self.n_votes, self._n_most = 0, n_most
        lines = map(json.loads, (BUNDLED / "consistency.jsonl").read_text().splitlines())
        self._accepted = {(one["thought"], one["answer"]) for one in lines if one["verdict"] == "accept"}

    async def check(self) -> None:
        pass

    async def write(self, turn: CompletionRequest) -> Completion:
        if self.n_votes >= self._n_most:
            raise PolicyUnavailable("the budget is spent")
        self.n_votes += 1
        said = turn.messages[-1].parts[-1].text.strip()
        is_good = any(said.endswith(f"Reasoning:\n{thought}\n\nAnswer: {answer}") for thought, answer in self._accepted)
        return Completion(YES if is_good else NO, usage=Usage(calls=1, cost_usd=0.01))

    async def close(self) -> None:
        pass


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """The bundled lines, as a file of one's own."""
    path = tmp_path / "mine.jsonl"
    path.write_text((BUNDLED / "consistency.jsonl").read_text())
    return path


def add(path: Path, **line: str) -> None:
    with path.open("a") as file:
        file.write(json.dumps({"family": "direct", "check": "consistency", "verdict": "accept"} | line) + "\n")


def calibrated(workspace: Workspace, path: Path, judge: Voter | None = None, **settings) -> Calibrated:
    return calibrate_judge(workspace, "consistency", path, policy=judge, **settings)


def test_a_judge_that_agrees_with_people_is_perfect_and_is_found_by_its_family(
    workspace: Workspace, labels: Path
) -> None:
    found = calibrated(workspace, labels, Voter(), n_votes=2, target_precision=0.95)
    numbers = found.frozen.calibration
    assert (numbers.precision.value, numbers.recall.value, numbers.kappa.value) == (1.0, 1.0, 1.0)
    assert (numbers.target_precision, numbers.n_labels, found.frozen.labelled) == (0.95, 35, "mine.jsonl")
    kept = CalibrationStore(workspace.calibrations)
    assert kept.of(consistency, PolicyJudge(Voter(), n_votes=2)) == found.frozen
    assert kept.of(consistency, PolicyJudge(Voter(), n_votes=3)) is None


def test_a_run_that_stopped_goes_on_and_pays_for_no_vote_twice(workspace: Workspace, labels: Path) -> None:
    first, second, third = Voter(n_most=25), Voter(), Voter()
    with pytest.raises(PolicyUnavailable):
        calibrated(workspace, labels, first)
    assert not workspace.calibrations.exists()
    whole = calibrated(workspace, labels, second)
    assert (first.n_votes, second.n_votes) == (25, 45)
    assert calibrated(workspace, labels, third) == whole
    assert third.n_votes == 0


@pytest.fixture
def runs(workspace: Workspace) -> list[Trajectory]:
    """Runs of the family ``direct``."""
    engine.intake(workspace, Unlocated(), 0, PARTITION)
    recipe = load_recipes()["direct"]
    family = Family(workspace, recipe, PARTITION)
    for stage in (family.draft, family.run):
        stage(oracle_policy(recipe.family, revision=recipe.digest))
    return workspace.tables.read(family.key("runs"), Trajectory)


def test_rows_are_found_by_their_id_and_by_their_place(
    workspace: Workspace, runs: list[Trajectory], labels: Path
) -> None:
    add(labels, row=runs[0].trajectory_id)
    add(labels, row="small:row/2", verdict="reject")
    found = calibrated(workspace, labels)
    assert found.rejects == []
    assert [row.score for row in found.rows[-2:]] == [1.0, 1.0]
    assert [row.label.is_good for row in found.rows[-2:]] == [True, False]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"row": "small:row/99"}, "no run of direct is or comes from 'small:row/99'"),
        ({"row": "t" * 64}, "no run of direct"),
        ({"row": "small:row/2", "family": "nonsense"}, "there is no family 'nonsense'"),
        ({"row": "small:row/2", "family": "../samples"}, "there is no family"),
        ({"row": "small:row/2", "family": "crop"}, "no run of crop"),
    ],
)
def test_a_row_that_is_nowhere_is_a_reject_with_its_line(
    workspace: Workspace, runs: list[Trajectory], labels: Path, line: dict[str, str], said: str
) -> None:
    add(labels, **line)
    (rejected,) = calibrated(workspace, labels).rejects
    assert (rejected.reason, rejected.source_row) == ("row_unknown", "mine.jsonl:71")
    assert said in rejected.evidence


def test_a_vote_that_cannot_be_had_leaves_its_row_out(workspace: Workspace, labels: Path) -> None:
    class Deaf(Voter):
        async def write(self, turn: CompletionRequest) -> Completion:
            if "grid" in str(turn.messages):
                raise PolicyError("HTTP 503")
            return await super().write(turn)

    found = calibrated(workspace, labels, Deaf())
    assert {rejected.reason for rejected in found.rejects} == {"policy_failed"}
    assert len(found.rows) + len(found.rejects) == 70


def test_a_row_that_the_grade_decides_says_nothing_of_the_judge(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text("")
    for n in range(30):
        given = "a boat" if n % 2 else "something else entirely"
        verdict = "accept" if n % 2 else "reject"
        add(
            path,
            row=str(n),
            check="answer_judged",
            verdict=verdict,
            question=f"What is {n}?",
            expected="a boat",
            answer=given,
        )
    with pytest.raises(CalibrationError, match="15 labels"):
        calibrate_judge(workspace, "answer_judged", path)


def test_too_few_labels_write_nothing(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "few.jsonl"
    add(path, row="1", question="?", thought="It is A.", answer="A")
    with pytest.raises(CalibrationError, match="at least 20"):
        calibrated(workspace, path)
    assert not workspace.calibrations.exists()


def test_an_unknown_judge_names_those_that_there_are(workspace: Workspace, labels: Path) -> None:
    with pytest.raises(UserError, match="answer_judged, consistency, judge_effective, judge_leak"):
        calibrate_judge(workspace, "nobody", labels)


def test_every_judge_of_a_recipe_can_be_calibrated() -> None:
    assert set(judged_checks()) == {"answer_judged", "consistency", "judge_effective", "judge_leak"}
