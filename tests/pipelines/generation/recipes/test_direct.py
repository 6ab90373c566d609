"""Direct: what can be answered at once is, in one turn without code."""

from __future__ import annotations

import json

import pytest

from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.models.protocols import Thyme
from tests.pipelines.scripted import Scripted, run_all

NONE = json.dumps({"issue": "fine as it is", "operation": -1})
ANSWER = "<think>It says A1B.</think>\n<answer>A1B</answer>"
CODE = "<think>Let me look.\n<code>\n```python\nprint(1)\n```\n</code>"


def plan_or(text: str):
    return lambda turn: NONE if turn.task.stage == "plan" else text


def test_the_oracle_answers_what_needs_no_work_in_one_turn(flawed, kept) -> None:
    family: Family = flawed("direct")
    run_all(family)
    assert list(kept(family)) == ["plain"]
    row = kept(family)["plain"]
    assert (row.rounds, row.answer, row.passed) == ((), "A1B", True)


def test_samples_that_need_work_are_not_applicable_and_the_issue_is_named(flawed, rejects) -> None:
    family = flawed("direct")
    run_all(family)
    found = rejects(family)
    assert {row.reason for row in found.values()} == {"not_applicable"}
    assert found["turned"].evidence.startswith("decided 1 (direction): The image is not the right way up.")
    assert found["both"].evidence.startswith("decided 4 (combined)")


def test_a_program_in_a_direct_row_is_rejected_before_it_is_executed(flawed, workspace) -> None:
    reports = run_all(flawed("direct"), Scripted(plan_or(CODE)))
    assert reports["runs"].reasons == {"too_many_rounds": 5}
    assert "sandbox" not in workspace.ledger.totals()


def test_a_wrong_answer_is_rejected(flawed) -> None:
    reports = run_all(flawed("direct"), Scripted(plan_or(ANSWER.replace("A1B", "X9Z"))))
    assert reports["trajectories"].reasons == {"check_failed: answer_matches": 5}


@pytest.mark.parametrize("decision", ["", "I would crop it.", '{"operation": 7}', '{"operation": 4}', "{" * 50])
def test_a_decision_that_is_none_is_a_malformed_turn(flawed, rejects, decision) -> None:
    family = flawed("direct")
    run_all(family, Scripted(lambda turn: decision))
    assert {row.reason for row in rejects(family).values()} == {"malformed_turn"}


def test_the_decision_of_a_sample_is_paid_for_once_by_both_families(flawed, workspace) -> None:
    first, second = Scripted(plan_or(ANSWER)), Scripted(plan_or(ANSWER))
    flawed("direct").draft(first)
    n_acts = workspace.ledger.totals()["policy"].calls
    report = flawed("real_world").draft(second)
    assert [turn.task.stage for turn in first.turns].count("plan") == 5
    assert second.turns == []
    assert workspace.ledger.totals()["policy"].calls == n_acts
    assert report.reasons == {"not_applicable": 5}


def test_the_drafted_turn_reads_no_decision(flawed) -> None:
    policy = Scripted(plan_or(ANSWER))
    flawed("direct").draft(policy)
    written = [turn for turn in policy.turns if turn.task.stage == "rollout"]
    assert not any("fine as it is" in str(turn.messages) for turn in written)
    assert Thyme().parse(ANSWER).code is None


def test_the_decision_is_asked_for_by_its_schema_and_the_turn_is_not(flawed) -> None:
    policy = Scripted(plan_or(ANSWER))
    flawed("direct").draft(policy)
    asked = {stage: [turn.schema for turn in policy.turns if turn.task.stage == stage] for stage in ("plan", "rollout")}
    assert all(schema["properties"].keys() == {"issue", "operation", "primary"} for schema in asked["plan"])
    assert asked["rollout"] == [None] * 5
