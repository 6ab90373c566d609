"""Which samples become candidates, and why the others do not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from darkroom.pipelines.generation.stage import Shard
from darkroom.pipelines.records import Reject, RLCandidate, Truth
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.rl.candidates import ASSET, BELONGS_TOGETHER, SELF_CONTAINED, Candidates
from darkroom.pipelines.selection.screening import Screening
from darkroom.pipelines.sources import SourceRow
from tests.conftest import signed
from tests.pipelines.rl.shards import N_PROBLEMS, N_SIGNS, Questions, judging, source_row, taken_in


def rows(shard: Shard) -> list[RLCandidate]:
    return shard.workspace.tables.read(shard.key(ASSET), RLCandidate)


def rejects(shard: Shard) -> list[Reject]:
    return shard.workspace.tables.read_rejects(shard.key(ASSET))


def test_every_candidate_has_a_grader_and_the_votes_on_its_image(candidates):
    kinds = {row.sample_id: row for row in rows(candidates)}
    assert len(kinds) == N_SIGNS + N_PROBLEMS
    for sample in candidates.samples().values():
        names = [check.name for check in kinds[sample.sample_id].checks]
        assert names == ([BELONGS_TOGETHER, SELF_CONTAINED] if sample.images else [])
        assert kinds[sample.sample_id].grader.kind == ("text" if sample.images else "number")


@pytest.mark.parametrize("question", [BELONGS_TOGETHER, SELF_CONTAINED])
def test_a_no_of_the_judge_takes_a_row_out_with_its_votes(shard, question):
    judge = judging(lambda turn: not (source_row(turn) == "sign/1" and turn.task.family == question))
    shard.materialize(Candidates(judge=judge, n_votes=3))
    (out,) = rejects(shard)
    assert (out.source_row, out.reason, out.check) == ("sign/1", "check_failed", question)
    failed = json.loads(out.row)["checks"][-1]
    assert (failed["score"], failed["n_trials"], failed["passed"]) == (0.0, 3, False)


def test_a_row_whose_grader_cannot_tell_is_out_before_anything_is_paid(workspace):
    boxes = Truth(details='{"grader": {"kind": "box", "tolerance": 0.5}}')
    row = SourceRow("nowhere", (signed(9, "S9X", (40, 60, 88, 84)),), "Where?", "to the left", truth=boxes)
    shard = taken_in(workspace, Questions(extra=(row,)))
    judge = judging(lambda turn: True)
    shard.materialize(Candidates(judge=judge))
    (out,) = rejects(shard)
    assert (out.source_row, out.reason) == ("nowhere", Reason.GRADER_CANNOT_TELL)
    assert all(source_row(turn) != "nowhere" for turn in judge.turns)


def test_near_duplicates_are_out_before_anything_is_paid(workspace):
    first = next(iter(Questions().rows(0)))
    twin = replace(first, row="twin", question=first.question + " ", truth=Truth(count=1))
    shard = taken_in(workspace, Questions(extra=(twin,)))
    errors = Screening(workspace).screen_samples("t", list(shard.samples().values()))
    judge = judging(lambda turn: True)
    shard.materialize(Candidates(judge=judge, screening=Screening(workspace), errors=lambda: errors))
    (out,) = rejects(shard)
    assert (out.source_row, out.reason) == ("twin", Reason.NEAR_DUPLICATE)
    assert "twin" not in map(source_row, judge.turns)


def test_the_same_again_asks_nobody(shard):
    first, second = judging(lambda turn: True), judging(lambda turn: True)
    shard.materialize(Candidates(judge=first))
    assert shard.materialize(Candidates(judge=second)).reused
    assert len(first.turns) == 2 * N_SIGNS
    report = shard.materialize(Candidates(judge=second, n_votes=3))
    assert (report.performed, len(second.turns)) == (4 * N_SIGNS, 4 * N_SIGNS)
