"""Explain: a row is found by what people have of it, and everything about it is there."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.inspection.explain import Explanation, FamilyHistory, RowAmbiguous, explain
from darkroom.pipelines.records import PoolImage, Reject, Sample, Trajectory
from darkroom.pipelines.records.reject_reasons import Reason, reject
from darkroom.pipelines.storage.cached_calls import CachedCall
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification.judges.judge import judge_seed
from darkroom.sandbox.errors import UserError
from tests.pipelines.publishing.shipping import PARTITION

STAGES = ["crop/drafts", "crop/runs", "crop/verdicts", "crop/trajectories"]


@pytest.fixture
def made(shipped: Path, workspace: Workspace) -> Workspace:
    return workspace


@pytest.fixture
def trajectory(made: Workspace) -> Trajectory:
    return made.tables.read(TableKey(("crop", "trajectories"), PARTITION), Trajectory)[0]


def only_way(found: Explanation) -> FamilyHistory:
    (way,) = found.histories
    return way


@pytest.mark.parametrize("length", [6, 12, 64])
def test_a_trajectory_is_found_by_the_beginning_of_its_id(made: Workspace, trajectory: Trajectory, length: int) -> None:
    found = explain(made, trajectory.trajectory_id[:length])
    assert (found.subject.kind, found.subject.id) == ("trajectory", trajectory.trajectory_id)


def test_a_sample_is_found_by_its_id_and_by_its_place_with_and_without_the_source(
    made: Workspace, trajectory: Trajectory
) -> None:
    for query in (trajectory.sample_id[:8], "row/0", "small:row/0"):
        found = explain(made, query)
        assert (found.subject.kind, found.subject.id) == ("sample", trajectory.sample_id), query


def test_the_way_has_every_stage_in_order_and_what_each_made(made: Workspace, trajectory: Trajectory) -> None:
    way = only_way(explain(made, trajectory.trajectory_id))
    assert [passage.stage for passage in way.passages] == STAGES
    assert {(passage.partition, passage.outcome) for passage in way.passages} == {(PARTITION, "kept")}
    assert way.row["text"].startswith("<think>")
    assert way.row["rounds"][0]["code"] == trajectory.rounds[0].code
    assert [check["name"] for check in way.row["checks"]] == [check.name for check in trajectory.checks]
    assert way.rejected is None


def test_the_acts_are_the_rows_own_and_are_all_there(made: Workspace, trajectory: Trajectory) -> None:
    acts = only_way(explain(made, trajectory.trajectory_id)).calls
    assert sorted((act.what, act.kind) for act in acts) == [
        ("code 1", "sandbox"),
        ("turn 1", "policy"),
        ("turn 2", "policy"),
    ]
    program = next(act for act in acts if act.kind == "sandbox")
    assert (program.output, program.seconds > 0) == ("ok", True)
    total = made.ledger.totals()
    assert total["sandbox"].calls == 4  # of which only one is this row's


def test_a_judges_votes_are_found_by_their_seeds(made: Workspace, trajectory: Trajectory) -> None:
    for vote in range(2):
        seed = judge_seed("crop_is_tight", trajectory.trajectory_id) + vote
        request = {"identity": {"model": "judge-7b"}, "seed": seed}
        made.ledger.put(f"{vote}" * 64, "policy", request, CachedCall({"text": '{"verdict": true}'}, 1.5, 0.25))
    votes = [act for act in only_way(explain(made, trajectory.trajectory_id)).calls if "vote" in act.what]
    assert [act.what for act in votes] == ["crop_is_tight, vote 1", "crop_is_tight, vote 2"]
    assert {(act.model, act.cost_usd, act.output) for act in votes} == {("judge-7b", 0.25, '{"verdict": true}')}


def test_a_reject_of_the_drafts_has_its_reason_and_evidence(made: Workspace) -> None:
    found = explain(made, "row/1")
    way = only_way(found)
    assert way.trajectory_id == ""
    assert way.rejected is not None
    assert (way.rejected.stage, way.rejected.reason) == ("crop/drafts", "not_applicable")
    assert "box" in way.rejected.evidence
    assert found.sample is not None
    assert found.sample["question"] == "What does sign number 1 say?"


def test_a_row_that_failed_a_check_names_the_check(made: Workspace, trajectory: Trajectory) -> None:
    key = TableKey(("crop", "trajectories"), PARTITION)
    lost = Reject(
        stage="crop/trajectories",
        family="crop",
        reason="check_failed",
        check="answer_matches",
        disposition="rejected",
        evidence="expected S0X, found S9X",
        source="small",
        source_row="row/0",
        sample_id=trajectory.sample_id,
        trajectory_id=trajectory.trajectory_id,
        row=json.dumps(asdict(trajectory)),
    )
    made.tables.write(key, Trajectory, [], [lost], inputs="", facts={})
    rejected = only_way(explain(made, trajectory.trajectory_id)).rejected
    assert rejected is not None
    assert (rejected.check, rejected.evidence) == ("answer_matches", "expected S0X, found S9X")


def test_a_row_that_intake_took_out_is_found_by_its_place(made: Workspace) -> None:
    found = explain(made, "small:row/5")
    assert (found.subject.kind, found.sample, found.histories) == ("source row", None, ())
    assert [passage.reason for passage in found.intake] == ["truncated_image"]


def test_annotations_of_an_image_neither_hide_its_sample_nor_make_it_ambiguous(
    made: Workspace, trajectory: Trajectory
) -> None:
    sample = made.tables.read(TableKey(SAMPLES, PARTITION), Sample)[0]
    image = PoolImage(sample.images[0], "small", "row/0", sample.license)
    rejected = reject(
        Reason.REJECTED_BY_PEOPLE, "wrong box", stage="cross_checks", row={}, source="small", source_row="row/0"
    )
    key = TableKey(("annotation_pool",), "recorded")
    made.tables.write(key, PoolImage, [image], [rejected], inputs="", facts={})
    subject = explain(made, "small:row/0").subject
    assert (subject.kind, subject.id) == ("sample", trajectory.sample_id)


def test_several_rows_are_listed_and_none_is_guessed(made: Workspace, trajectory: Trajectory) -> None:
    key = TableKey(SAMPLES, "other-0000")
    sample = made.tables.read(TableKey(SAMPLES, PARTITION), Sample)[0]
    twin = replace(sample, sample_id=f"{sample.sample_id[:-1]}{'0' if sample.sample_id[-1] != '0' else '1'}")
    made.tables.write(key, Sample, [twin], [], inputs="", facts={})
    with pytest.raises(RowAmbiguous, match="2 rows") as raised:
        explain(made, sample.sample_id[:10])
    assert {subject.id for subject in raised.value.candidates} == {sample.sample_id, twin.sample_id}
    assert explain(made, sample.sample_id).subject.id == sample.sample_id


def test_an_unknown_row_is_told_what_a_name_is(made: Workspace, trajectory: Trajectory) -> None:
    with pytest.raises(UserError, match="trajectory_id"):
        explain(made, "ffffffff")
    with pytest.raises(UserError, match="at least 6 characters"):
        explain(made, trajectory.trajectory_id[:5])


def test_an_empty_workspace_is_told_how_to_begin(workspace: Workspace) -> None:
    with pytest.raises(UserError, match="darkroom demo"):
        explain(workspace, "ffffffff")


def test_an_explanation_is_json(made: Workspace, trajectory: Trajectory) -> None:
    again = json.loads(json.dumps(asdict(explain(made, trajectory.sample_id))))
    assert again["histories"][0]["row"]["answer"] == trajectory.answer
