"""Votes of a judge as a verdict."""

from __future__ import annotations

from pipelines.checks.base import Flaw, Verdict, failed, passed
from pipelines.records import Votes


def by_votes(votes: Votes, flaw: Flaw) -> Verdict:
    """Passed when the judge says yes, by its calibration or by majority; ``score`` is the share of yes votes."""
    if votes.says_yes:
        return passed(str(votes), score=votes.share, n_trials=votes.n)
    return failed(flaw, str(votes), score=votes.share, n_trials=votes.n)
