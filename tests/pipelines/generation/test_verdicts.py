"""A family's verdicts: necessity asked last and paid once, thresholds of calibrated judges, notes for the card."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from darkroom.pipelines.generation import engine, verdicts
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes import Recipe, load_recipes
from darkroom.pipelines.inspection.explain import explain
from darkroom.pipelines.models.policies import CompletionRequest, PolicyError, oracle_policy
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.records import Trajectory
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification.calibration_store import BUNDLED, CalibrationStore, stored_calibration
from darkroom.pipelines.verification.checks import Necessity, consistency
from darkroom.pipelines.verification.judges import PolicyJudge
from darkroom.pipelines.verification.judges.calibration import read_labels
from tests.conftest import SmallSource, Unlocated
from tests.pipelines.scripted import Scripted

PARTITION = "small-0000"
VIEWS_ASKED = (("blind", 5), ("without_tools", 2))
YES, NO = '{"verdict": true}', '{"verdict": false}'


def blank(turn: CompletionRequest) -> bool:
    return turn.task.images[0] != turn.task.sample.images[0]


def right_without_tools(turn: CompletionRequest) -> str:
    return "no idea" if blank(turn) else turn.task.sample.answer


def always_right(turn: CompletionRequest) -> str:
    return turn.task.sample.answer


def never_right(turn: CompletionRequest) -> str:
    return "no idea"


@pytest.fixture(scope="module")
def ran_crops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("ran")
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as opened:
        ran(opened, SmallSource(), "crop")
    return home


@pytest.fixture
def crops(workspace: Workspace, ran_crops: Path) -> Family:
    """Four runs of the oracle, which pass every check: made once, and copied."""
    shutil.copytree(ran_crops, workspace.home)
    return Family(workspace, necessary("crop"), PARTITION)


def necessary(name: str) -> Recipe:
    return replace(load_recipes()[name], necessity=Necessity())


def ran(workspace: Workspace, source, name: str) -> Family:
    engine.intake(workspace, source, 0, PARTITION)
    family = Family(workspace, necessary(name), PARTITION)
    for stage in (family.draft, family.run):
        stage(oracle_policy(name, revision=family.recipe.digest))
    return family


def reasons(family: Family) -> list[list[str]]:
    rows = family.workspace.tables.read(family.key("verdicts"), Trajectory)
    return [[check.reason for check in row.checks if check.reason] for row in rows]


@pytest.mark.parametrize(
    ("answer", "flaws"),
    [
        (never_right, []),
        (right_without_tools, ["answerable_without_tools"]),
        (always_right, ["answerable_blind", "answerable_without_tools"]),
        (lambda turn: turn.task.sample.answer if blank(turn) else "no idea", ["answerable_blind"]),
    ],
)
def test_rows_that_need_neither_image_nor_tools_fail_for_exactly_that(crops: Family, answer, flaws) -> None:
    crops.check(unaided=Scripted(answer))
    assert reasons(crops) == [flaws] * 4


def test_the_counts_are_kept_with_the_row_and_paid_for_once(crops: Family) -> None:
    first, second = Scripted(right_without_tools), Scripted(right_without_tools)
    report = crops.check(unaided=first, necessity=Necessity(k=2, max_without_tools=None))
    row = crops.workspace.tables.read(crops.key("verdicts"), Trajectory)[0]
    kept = {check.name: (check.score, check.n_trials, check.passed) for check in row.checks[-2:]}
    assert kept == {"needs_image": (0.0, 5, True), "needs_tools": (1.0, 2, True)}
    assert (len(first.turns), report.usage.calls, report.performed) == (28, 28, 28)
    again = crops.check(unaided=second, necessity=Necessity(k=2))
    assert (again.reused, again.performed, second.turns) == (False, 0, [])
    assert reasons(crops) == [["answerable_without_tools"]] * 4


def test_a_stage_that_measured_the_same_is_not_run_again(crops: Family) -> None:
    crops.check(unaided=Scripted(never_right))
    assert crops.check(unaided=Scripted(never_right)).reused
    assert not crops.check().reused


def test_a_reader_that_was_installed_since_judges_anew(crops: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "ocr_version", lambda: "")
    crops.check()
    assert crops.check().reused
    monkeypatch.setattr(verdicts, "ocr_version", lambda: "rapidocr 9.9")
    assert not crops.check().reused


def test_nothing_is_asked_about_a_row_that_is_taken_out_anyway(crops: Family) -> None:
    def nonsense(turn: CompletionRequest) -> str:
        return "<think>It says so.</think><answer>42</answer>"

    wrong = Scripted(nonsense)
    crops.draft(wrong)
    crops.run(wrong)
    unaided = Scripted(always_right)
    crops.check(unaided=unaided)
    assert unaided.turns == []
    assert all(found for found in reasons(crops))


def test_without_someone_to_ask_or_a_recipe_that_wants_it_nothing_is_measured(crops: Family) -> None:
    crops.check()
    names = {
        check.name for row in crops.workspace.tables.read(crops.key("verdicts"), Trajectory) for check in row.checks
    }
    assert not names & {"needs_image", "needs_tools"}
    bare = replace(crops, recipe=replace(crops.recipe, necessity=None))
    unaided = Scripted(always_right)
    bare.check(unaided=unaided)
    assert unaided.turns == []


def test_an_answer_that_cannot_be_had_quarantines_the_row(crops: Family) -> None:
    def give_up(turn: CompletionRequest) -> str:
        raise PolicyError("HTTP 503")

    report = crops.check(unaided=Scripted(give_up))
    assert report.reasons == {"policy_failed": 4}
    assert report.n_quarantined == 4


def test_explain_shows_every_answer_without_aid(crops: Family) -> None:
    crops.check(unaided=Scripted(never_right), necessity=Necessity(k=2))
    row = crops.workspace.tables.read(crops.key("verdicts"), Trajectory)[0]
    (way,) = explain(crops.workspace, row.trajectory_id).histories
    asked = sorted(act.what for act in way.calls if act.what.startswith("answer"))
    blind, without_tools = ([f"answer {n}, {view}" for n in range(1, most + 1)] for view, most in VIEWS_ASKED)
    assert asked == sorted(blind + without_tools)


def card(family: Family) -> str:
    family.keep()
    _, shipped = SftDataset(family.workspace, family.recipe, [PARTITION]).publish()
    return (shipped.folder / "README.md").read_text()


def test_the_card_says_how_necessity_came_out(crops: Family) -> None:
    crops.check(unaided=Scripted(right_without_tools), necessity=Necessity(max_without_tools=None))
    said = card(crops)
    assert "| 4 rows that passed every other check | measured on scripted | 0 of 20 answers (0.0 %)" in said
    assert "16 of 16 answers (100.0 %) | 4 right at least once | 0 (measured only) |" in said
    assert "| 0 (a sequential test of 4 to 32 answers: of questions without choices" in said
    assert "50% of the time 8.6% pass" in said
    assert "## Judges" not in said


def test_the_card_says_plainly_that_necessity_was_not_measured(crops: Family) -> None:
    crops.check()
    assert "Not measured: whether the questions can be answered without their image" in card(crops)


@pytest.fixture
def judged(workspace: Workspace) -> Family:
    """Runs of a family that asks a judge."""
    return ran(workspace, Unlocated(), "direct")


def test_the_embedded_judges_calibration_stands_in_the_card(judged: Family) -> None:
    judged.check()
    said = card(judged)
    assert "| `consistency` | an embedded rule (measured; no model) | 1 | by majority | 70 labelled rows" in said
    assert "(35 good; labelled by the makers of Darkroom, bundled: consistency.jsonl" in said
    assert "precision 0.8" in said


def test_a_judge_without_a_calibration_is_said_to_be_none(judged: Family) -> None:
    judged.check(Scripted(lambda turn: YES), n_votes=3)
    assert "| `consistency` | scripted | 3 | by majority | not calibrated |" in card(judged)


def test_a_calibrated_threshold_decides_and_stands_in_the_card(judged: Family) -> None:
    judge = Scripted(lambda turn: YES if len(judge.turns) % 3 else NO)
    judged.check(judge, n_votes=3)
    by_majority = reasons(judged)
    assert [] in by_majority
    calibrate(judged.workspace, judge, threshold=1.0)
    again = judged.check(judge, n_votes=3)
    assert (again.reused, again.performed) == (False, 0)
    assert reasons(judged) == [["inconsistent"]] * 5
    calibrate(judged.workspace, judge, threshold=0.6)
    judged.check(judge, n_votes=3)
    said = card(judged)
    assert "from a share of 0.6 | 35 labelled rows" in said
    assert "labelled by darkroom, mine.jsonl" in said
    assert "the threshold was chosen for a precision of 0.9 on 35 other labels" in said


def calibrate(workspace: Workspace, policy: Scripted, *, threshold: float) -> None:
    labels = read_labels(BUNDLED / "consistency.jsonl", "consistency").labels
    scores = [float(label.is_good) for label in labels]
    judge = PolicyJudge(policy, n_votes=3)
    made = stored_calibration(consistency, judge, labels, scores, labelled="mine.jsonl", target_precision=0.9)
    CalibrationStore(workspace.calibrations).write(
        replace(made, calibration=replace(made.calibration, threshold=threshold))
    )
