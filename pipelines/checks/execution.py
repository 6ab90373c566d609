"""Checks on what the sandbox gave back."""

from __future__ import annotations

from pipelines.cases import Case
from pipelines.checks.base import Flaw, Verdict, check, failed, passed


@check()
def executes(case: Case) -> Verdict:
    """Every program ran to its end."""
    rounds = case.trajectory.rounds
    ended = [(n, turn.observation) for n, turn in enumerate(rounds, 1) if turn.observation.status != "ok"]
    if not rounds:
        return failed(Flaw.NO_PROGRAM, "no program was written", score=0.0)
    if ended:
        detail = "; ".join(f"round {n}: {seen.status}: {seen.error or ''}".strip() for n, seen in ended)
        return failed(Flaw.PROGRAM_FAILED, detail, score=1 - len(ended) / len(rounds))
    return passed(score=1.0)


@check()
def shows_an_image(case: Case) -> Verdict:
    """Every round's observation shows at least one image."""
    rounds = case.trajectory.rounds
    blind = [str(n) for n, turn in enumerate(rounds, 1) if not turn.observation.images]
    if rounds and not blind:
        return passed()
    return failed(Flaw.NO_IMAGE, f"no image in round {', '.join(blind) or '1'}")


@check()
def no_program(case: Case) -> Verdict:
    """No program was written; ``score`` is the number of programs."""
    n = len(case.trajectory.rounds)
    return failed(Flaw.HAS_PROGRAM, f"{n} programs in a row that needs none", score=n) if n else passed(score=0.0)
