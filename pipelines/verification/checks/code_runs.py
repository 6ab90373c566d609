"""Checks on what the sandbox returned: status, images and printed text of each round."""

from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.base import CheckResult, Flaw, check, failed, passed


@check()
def executes(case: Case) -> CheckResult:
    """Every program ran to its end."""
    if not case.trajectory.rounds:
        return failed(Flaw.NO_PROGRAM, "no program was written", score=0.0)
    return _all_ran(case, Flaw.PROGRAM_FAILED) or passed(score=1.0)


@check()
def shows_an_image(case: Case) -> CheckResult:
    """Every round's observation shows at least one image."""
    rounds = case.trajectory.rounds
    blind = [str(n) for n, turn in enumerate(rounds, 1) if not turn.observation.images]
    if rounds and not blind:
        return passed()
    return failed(Flaw.NO_IMAGE, f"no image in round {', '.join(blind) or '1'}")


@check()
def no_program(case: Case) -> CheckResult:
    """No program was written; ``score`` is the number of programs."""
    n = len(case.trajectory.rounds)
    return failed(Flaw.HAS_PROGRAM, f"{n} programs in a row that needs none", score=n) if n else passed(score=0.0)


MIN_TOOL_TURNS = 2
"""What PyVision-RL's SFT data have at least (§3.4)."""


@check()
def has_tool_turns(case: Case) -> CheckResult:
    """At least ``MIN_TOOL_TURNS`` rounds printed or showed something; ``score`` is how many did."""
    n_turns = sum(bool(turn.observation.images or turn.observation.text.strip()) for turn in case.trajectory.rounds)
    detail = f"{n_turns} of {len(case.trajectory.rounds)} rounds printed or showed something"
    if n_turns >= MIN_TOOL_TURNS:
        return passed(detail, score=float(n_turns))
    return failed(Flaw.TOO_FEW_ROUNDS, f"{detail}, expected {MIN_TOOL_TURNS}", score=float(n_turns))


@check()
def no_round_is_broken(case: Case) -> CheckResult:
    """Every round's program ran to its end, where there is a round; ``score`` is the share that did."""
    return _all_ran(case, Flaw.BROKEN_ROUND) or passed(f"{len(case.trajectory.rounds)} rounds", score=1.0)


def _all_ran(case: Case, flaw: Flaw) -> CheckResult | None:
    """The failure of the rounds that did not run to their end; None where all did."""
    rounds = case.trajectory.rounds
    broken = [(n, turn.observation) for n, turn in enumerate(rounds, 1) if turn.observation.status != "ok"]
    if not broken:
        return None
    errors = (f"round {n}: {observation.status}: {observation.error or ''}".strip() for n, observation in broken)
    return failed(flaw, "; ".join(errors), score=1 - len(broken) / len(rounds))
