"""Checks on how a policy talked with the runtime (PyVision-RL §3.3, §3.4)."""

from __future__ import annotations

from pipelines.cases import Case
from pipelines.checks.base import Flaw, Verdict, check, failed, passed

MIN_TOOL_TURNS = 2
"""What PyVision-RL's SFT data have at least (§3.4)."""


@check()
def has_tool_turns(case: Case) -> Verdict:
    """At least ``MIN_TOOL_TURNS`` rounds printed or showed something; ``score`` is how many did."""
    n_turns = sum(bool(turn.observation.images or turn.observation.text.strip()) for turn in case.trajectory.rounds)
    detail = f"{n_turns} of {len(case.trajectory.rounds)} rounds printed or showed something"
    if n_turns >= MIN_TOOL_TURNS:
        return passed(detail, score=float(n_turns))
    return failed(Flaw.TOO_FEW_ROUNDS, f"{detail}, expected {MIN_TOOL_TURNS}", score=float(n_turns))


@check()
def no_round_is_broken(case: Case) -> Verdict:
    """Every round's program ran to its end, where there is a round; ``score`` is the share that did."""
    rounds = case.trajectory.rounds
    broken = [(n, turn.observation) for n, turn in enumerate(rounds, 1) if turn.observation.status != "ok"]
    if broken:
        detail = "; ".join(f"round {n}: {seen.status}: {seen.error or ''}".strip() for n, seen in broken)
        return failed(Flaw.BROKEN_ROUND, detail, score=1 - len(broken) / len(rounds))
    return passed(f"{len(rounds)} rounds", score=1.0)
