"""Code as models write it, and calls that leave something behind: what is meant happens, or a message says how to."""

import pytest

from darkroom.sandbox import SandboxPool
from tests.matrices import first_quickly
from tests.sandbox.programs import read_programs, run_programs, table

pytestmark = pytest.mark.e2e


HUNDREDS = ["models_fourth", "models_fifth", "models_seen", "models_held_out", "models_fresh", "models_third"]


@pytest.mark.parametrize("name", first_quickly(HUNDREDS, n_quick=2))
def test_at_least_95_of_100_programs_do_what_their_author_meant(pool: SandboxPool, name: str) -> None:
    verdicts = run_programs(read_programs(name), pool)
    assert len(verdicts) == 100
    assert sum(verdict.passed for verdict in verdicts) >= 95, table(verdicts)


def test_errors_name_their_remedy_and_wrapped_calls_run(pool: SandboxPool) -> None:
    verdicts = run_programs(read_programs("models_kinds"), pool)
    assert {verdict.case["id"]: verdict.failures for verdict in verdicts if not verdict.passed} == {}


def test_what_a_call_leaves_behind_decides_no_later_one(pool: SandboxPool) -> None:
    verdicts = run_programs(read_programs("between_calls"), pool)
    assert {verdict.case["id"]: verdict.failures for verdict in verdicts if not verdict.passed} == {}


@pytest.mark.parametrize("name", [*HUNDREDS, "models_kinds", "between_calls"])
def test_every_program_has_an_expectation_for_each_of_its_rounds(name: str) -> None:
    cases = read_programs(name)
    assert len({case["id"] for case in cases}) == len(cases)
    assert [case["id"] for case in cases if len(case["rounds"]) != len(case["expect"])] == []
