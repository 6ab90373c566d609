"""Labels: confirmed by answers, disputed for a person, settled by one."""

from __future__ import annotations

import json

import pytest

from darkroom.pipelines.records import CheckedLabel, Verification
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.rl.candidates import turn_of
from darkroom.pipelines.rl.labels import ASSET, CheckedLabels, disputed, read_verifications
from darkroom.pipelines.storage.tables import TableKey
from tests.pipelines.rl.shards import N_PROBLEMS, N_SIGNS, answering, source_row
from tests.pipelines.scripted import Scripted


def wrong_about(row: str):
    return answering(lambda turn: source_row(turn) != row, name="judge")


def rejects(shard):
    return shard.workspace.tables.read_rejects(shard.key(ASSET))


def word(sample_id: str, verdict: str) -> Verification:
    return Verification(sample_id, verdict, "the sign says other", "eve@example.com", "2026-01-01T00:00:00+00:00", 9.0)


def test_a_label_that_most_answers_confirm_stands(checked):
    rows = checked.workspace.tables.read(checked.key(ASSET), CheckedLabel)
    assert len(rows) == N_SIGNS + N_PROBLEMS
    assert {(row.votes.n_yes, row.votes.n, row.verified_by) for row in rows} == {(4, 4, "")}


def test_a_disputed_label_waits_for_a_person_with_what_was_answered(candidates):
    candidates.materialize(CheckedLabels(judge=wrong_about("sign/2")))
    (out,) = rejects(candidates)
    assert (out.source_row, out.reason, out.disposition) == ("sign/2", Reason.LABEL_DISPUTED, "quarantined")
    assert "the label is 'S2X'; 0 of 4 answers are: nothing" in out.evidence
    assert json.loads(out.row)["votes"]["ballots"] == [False] * 4
    assert disputed(candidates.workspace.tables, candidates.key(ASSET)) == {out.sample_id: out.evidence}


@pytest.mark.parametrize(
    ("verdict", "reason"), [("match", None), ("mismatch", Reason.WRONG_LABEL), ("unsure", Reason.LABEL_DISPUTED)]
)
def test_what_a_person_says_stands_and_nothing_is_asked_again(candidates, verdict, reason):
    candidates.materialize(CheckedLabels(judge=wrong_about("sign/2")))
    (out,) = rejects(candidates)
    key = TableKey(("verifications",), "questions")
    tables = candidates.workspace.tables
    tables.write(key, Verification, [word(out.sample_id, verdict)], [], inputs="", facts={"n_retryable": 0})
    said = read_verifications(tables, ["questions", "others"])
    again = wrong_about("sign/2")
    report = candidates.materialize(CheckedLabels(judge=again, said=said))
    assert (report.reused, again.turns) == (False, [])
    assert [one.reason for one in rejects(candidates)] == ([reason] if reason else [])
    if not reason:
        (row,) = (row for row in tables.read(candidates.key(ASSET), CheckedLabel) if row.verified_by)
        assert (row.sample_id, row.verified_by) == (out.sample_id, "eve@example.com")


def test_a_wrong_label_is_out_even_if_every_answer_confirms_it(checked):
    sample = next(iter(checked.samples().values()))
    said = {sample.sample_id: word(sample.sample_id, "mismatch")}
    checked.materialize(CheckedLabels(judge=answering(lambda turn: True, name="judge"), said=said))
    assert [one.reason for one in rejects(checked)] == [Reason.WRONG_LABEL]


@pytest.mark.parametrize(
    ("answers", "stands", "n_asked"),
    [
        (["S0X", "S0X", "S0X", "no"], True, 3),
        (["S0X", "", "S0X", "no"], False, 4),
        (["no", "", "S0X", "S0X"], False, 2),
        (["S0X", "no", "S0X", "S0X"], True, 4),
        (["no", "no", "S0X", "S0X"], False, 2),
    ],
)
def test_an_early_stop_changes_no_verdict(candidates, answers, stands, n_asked):
    first = {sample.source_row: turn_of(sample, "relabel").seed for sample in candidates.samples().values()}

    def said(turn) -> str:
        if source_row(turn) != "sign/0":
            return f"<answer>{turn.task.sample.answer}</answer>"
        answer = answers[turn.seed - first["sign/0"]]
        return f"<answer>{answer}</answer>" if answer else "I cannot tell."

    for stop_early in (False, True):
        judge = Scripted(said, name=f"judge {stop_early}")
        candidates.materialize(CheckedLabels(judge=judge, stop_early=stop_early))
        assert ("sign/0" in {one.source_row for one in rejects(candidates)}) is not stands
        assert sum(source_row(turn) == "sign/0" for turn in judge.turns) == (n_asked if stop_early else 4)
