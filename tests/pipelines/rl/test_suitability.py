"""Suitability: eight votes on problems in words, ties as a value of their own, stops that change no label."""

from __future__ import annotations

import json

import pytest

from darkroom.pipelines.records import SuitabilityLabel, SuitabilityReview, SuitabilityVotes, Votes
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.rl.candidates import turn_of
from darkroom.pipelines.rl.suitability import (
    LABELS,
    VOTES,
    Suitability,
    SuitabilityLabels,
    agreement,
    agreement_in_words,
    labels_of,
    reviews_key,
)
from darkroom.pipelines.verification.judges.calibration import CalibrationError
from tests.pipelines.rl.shards import N_PROBLEMS, judging, source_row
from tests.pipelines.scripted import Scripted

N_YES = {"sum/0": 8, "sum/1": 4, "sum/2": 5, "sum/3": 0}


def place(turn) -> int:
    return turn.seed - turn_of(turn.task.sample, "suitability").seed


@pytest.fixture
def judge():
    return judging(lambda turn: place(turn) < N_YES[source_row(turn)])


def by_row(shard, asset, kind):
    samples = shard.samples()
    return {samples[row.sample_id].source_row: row for row in shard.workspace.tables.read(shard.key(asset), kind)}


def test_only_problems_in_words_are_asked_about_and_every_vote_is_kept(candidates, judge):
    report = candidates.materialize(Suitability(judge=judge))
    assert (report.n_in, report.n_out, report.performed) == (N_PROBLEMS, N_PROBLEMS, 8 * N_PROBLEMS)
    votes = by_row(candidates, VOTES, SuitabilityVotes)
    assert {name: row.votes.n_yes for name, row in votes.items()} == N_YES
    assert votes["sum/2"].votes.ballots == (True,) * 5 + (False,) * 3
    assert votes["sum/2"].votes.reasons[0] == "so it is"
    assert votes["sum/2"].votes.usage.cost_usd == 4.0


@pytest.mark.parametrize(("tie", "suitable"), [("yes", True), ("no", False), ("reject", None)])
def test_a_tie_is_what_the_settings_say_and_stays_a_tie(candidates, judge, tie, suitable):
    candidates.materialize(Suitability(judge=judge))
    candidates.materialize(SuitabilityLabels(tie=tie))
    labels = by_row(candidates, LABELS, SuitabilityLabel)
    assert {name: labels[name].suitable for name in ("sum/0", "sum/2", "sum/3")} == {
        "sum/0": True,
        "sum/2": True,
        "sum/3": False,
    }
    if suitable is None:
        (out,) = candidates.workspace.tables.read_rejects(candidates.key(LABELS))
        assert (out.source_row, out.reason) == ("sum/1", Reason.TIED)
        assert json.loads(out.row)["votes"]["ballots"].count(True) == 4
    else:
        assert (labels["sum/1"].majority, labels["sum/1"].suitable) == ("tie", suitable)


def test_an_early_stop_spares_votes_and_changes_no_majority(candidates, judge):
    candidates.materialize(Suitability(judge=judge, stop_early=True))
    votes = by_row(candidates, VOTES, SuitabilityVotes)
    assert {name: (row.votes.n, row.votes.majority) for name, row in votes.items()} == {
        "sum/0": (5, "yes"),
        "sum/1": (8, "tie"),
        "sum/2": (5, "yes"),
        "sum/3": (5, "no"),
    }
    assert len(judge.turns) == 23


def test_what_nobody_votes_on_is_set_aside(candidates):
    candidates.materialize(Suitability(judge=Scripted(lambda turn: "Hard to say.")))
    rejects = candidates.workspace.tables.read_rejects(candidates.key(VOTES))
    assert {(one.reason, one.disposition) for one in rejects} == {(Reason.NO_VOTE, "quarantined")}
    assert len(rejects) == N_PROBLEMS


def review(sample_id: str, verdict: str, reviewer: str = "ann") -> SuitabilityReview:
    return SuitabilityReview(sample_id, verdict, "", reviewer, "2026-01-01T00:00:00+00:00", None)


def kept(shard, key, kind, rows) -> None:
    shard.workspace.tables.write(key, kind, rows, [], inputs="", facts={"n_retryable": 0})


def voted(shard, n_yes: list[int]) -> None:
    votes = [Votes("judge", (True,) * n + (False,) * (8 - n), 8) for n in n_yes]
    rows = [SuitabilityVotes(f"p{number}", one) for number, one in enumerate(votes)]
    kept(shard, shard.key(VOTES), SuitabilityVotes, rows)


def test_a_judge_that_says_what_people_say_agrees_beyond_chance(shard):
    voted(shard, [8, 1] * 15)
    said = [review(f"p{number}", "no" if number % 2 else "yes") for number in range(30)]
    said[0] = review("p0", "no")
    kept(shard, reviews_key("questions"), SuitabilityReview, said)
    found = agreement([shard], ["questions", "others"])
    assert (found.n_labels, found.n_good) == (30, 14)
    assert 0.85 < found.kappa.value < 0.95
    assert agreement_in_words([shard], ["questions"]).startswith(f"Cohen's kappa {found.kappa.value:.3f} (")


def test_of_several_people_most_decide_and_the_divided_say_nothing(shard):
    said = [
        *(review("a", verdict, who) for who, verdict in (("ann", "yes"), ("bob", "yes"), ("cy", "no"))),
        *(review("b", verdict, who) for who, verdict in (("ann", "yes"), ("bob", "no"))),
        *(review("c", verdict, who) for who, verdict in (("ann", "no"), ("bob", "unsure"))),
        review("d", "unsure"),
    ]
    kept(shard, reviews_key("questions"), SuitabilityReview, said)
    assert labels_of(shard.workspace.tables, ["questions"]) == {"a": True, "c": False}


def test_too_few_labels_are_no_measurement(shard):
    voted(shard, [8, 0])
    with pytest.raises(CalibrationError, match="0 labels say nothing"):
        agreement([shard], ["questions"])
    assert agreement_in_words([shard], ["questions"]).startswith("not measured (")
