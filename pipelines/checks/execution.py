"""Checks on what the sandbox gave back."""

from __future__ import annotations

from pipelines.checks.base import Case
from pipelines.records import Check


def executes(case: Case) -> Check:
    """Every program ran to its end."""
    rounds = case.trajectory.rounds
    failed = [(n, turn.observation) for n, turn in enumerate(rounds, 1) if turn.observation.status != "ok"]
    detail = "; ".join(f"round {n}: {seen.status}: {seen.error or ''}".strip() for n, seen in failed)
    if not rounds:
        return Check("executes", False, 0.0, "no program was written")
    return Check("executes", not failed, 1 - len(failed) / len(rounds), detail)


def shows_an_image(case: Case) -> Check:
    """Every round's observation shows at least one image."""
    rounds = case.trajectory.rounds
    blind = [str(n) for n, turn in enumerate(rounds, 1) if not turn.observation.images]
    passed = bool(rounds) and not blind
    return Check("shows_an_image", passed, detail="" if passed else f"no image in round {', '.join(blind) or '1'}")
