"""Votes of a judge as a verdict."""

from __future__ import annotations

from pipelines.checks.base import Flaw, Verdict, failed, passed
from pipelines.judges import Votes


def by_majority(votes: Votes, flaw: Flaw) -> Verdict:
    """Passed when more than half of all votes say yes, the invalid ones counted; ``score`` is their share."""
    if 2 * votes.n_yes > votes.n:
        return passed(str(votes), score=votes.share)
    return failed(flaw, str(votes), score=votes.share)
