"""What experts said of trajectories: their verdicts, and the check that comes of them when a dataset is shipped.

A seeded sample of each family is reviewed (``annotation/review.py``); rows that nobody looked at carry no such check.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pipelines.records import Check, Review
from pipelines.shares import Share, share_of
from pipelines.tables import TableKey, Tables

ASSET = ("expert_reviews",)
NAME = "expert_review"


def reviews_key(family: str) -> TableKey:
    """The table of one family's reviews."""
    return TableKey(ASSET, family)


def read_reviews(tables: Tables, family: str) -> list[Review]:
    """The family's reviews; none where nobody has reviewed."""
    key = reviews_key(family)
    return tables.read(key, Review) if tables.exists(key) else []


def review_checks(reviews: Iterable[Review]) -> Mapping[str, Check]:
    """The check of every row that was reviewed: passed when most experts accept it, a draw does not."""
    of_row: dict[str, list[Review]] = defaultdict(list)
    for review in reviews:
        of_row[review.trajectory_id].append(review)
    return {row: _check(found) for row, found in of_row.items()}


def acceptance(reviews: Iterable[Review]) -> Share:
    """How many of the reviewed rows the experts accept."""
    return share_of(check.passed for check in review_checks(reviews).values())


def _check(reviews: Sequence[Review]) -> Check:
    n_accepted = sum(review.accepted for review in reviews)
    reasons = Counter(reason for review in reviews for reason in review.reasons)
    said = [f"{reason} {n}" for reason, n in sorted(reasons.items())]
    comments = [review.comment for review in reviews if review.comment]
    passed = 2 * n_accepted > len(reviews)
    return Check(
        name=NAME,
        passed=passed,
        score=n_accepted / len(reviews),
        detail="; ".join([f"{n_accepted} of {len(reviews)} experts accept it", *said, *comments]),
        reason="" if passed else "expert_rejected",
        n_trials=len(reviews),
    )
