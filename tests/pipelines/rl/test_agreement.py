"""The suitability votes against people's words."""

from __future__ import annotations

import pytest

from pipelines.judges.calibration import CalibrationFault
from pipelines.records import SuitabilityReview, SuitabilityVotes, Votes
from pipelines.rl.agreement import agreement, agreement_in_words, labels_of, reviews_key
from pipelines.rl.suitability import VOTES


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
    with pytest.raises(CalibrationFault, match="0 labels say nothing"):
        agreement([shard], ["questions"])
    assert agreement_in_words([shard], ["questions"]).startswith("not measured (")
