"""How a policy talked with the runtime."""

from __future__ import annotations

import pytest

from darkroom.pipelines.records import Observation, Round
from darkroom.pipelines.verification.checks import Flaw, has_tool_turns, no_round_is_broken

PRINTED = Round("", "print(7)", Observation("ok", "7\n"))
SILENT = Round("", "x = 7", Observation("ok", " \n"))


def broken(status):
    return Round("", "", Observation(status, "", error="NameError: x"))


def test_two_rounds_that_print_or_show_are_enough(make_case):
    shown = make_case().trajectory.rounds[0]
    found = has_tool_turns(make_case(rounds=(shown, PRINTED)))
    assert (found.passed, found.score, found.reason) == (True, 2.0, "")


@pytest.mark.parametrize("rounds", [(), (PRINTED,), (PRINTED, SILENT), (SILENT, SILENT)])
def test_fewer_are_too_few(make_case, rounds):
    found = has_tool_turns(make_case(rounds=rounds))
    assert (found.passed, found.reason) == (False, Flaw.TOO_FEW_ROUNDS)


@pytest.mark.parametrize("rounds", [(), (PRINTED,), (PRINTED, SILENT)])
def test_rounds_that_ran_to_their_end_are_sound(make_case, rounds):
    assert no_round_is_broken(make_case(rounds=rounds)).passed


@pytest.mark.parametrize("status", ["error", "blocked", "timeout", "memory", "killed", "protocol"])
def test_one_that_did_not_is_broken(make_case, status):
    found = no_round_is_broken(make_case(rounds=(PRINTED, broken(status))))
    assert (found.passed, found.reason, found.score) == (False, Flaw.BROKEN_ROUND, 0.5)
    assert found.detail == f"round 2: {status}: NameError: x"
