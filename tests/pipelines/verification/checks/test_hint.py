"""Thoughts, comments and names that leak a hint are all found; those that do not are left alone."""

import json
from pathlib import Path

import pytest

from pipelines.verification.checks import hint_stays_hidden
from pipelines.verification.checks.hint import spelled

CASES = json.loads((Path(__file__).parent / "cases" / "hints.json").read_text())
LEAKS, CLEAN = CASES["leaks"], CASES["clean"]


def _said(case: dict) -> dict:
    return {name: value for name, value in case.items() if name not in ("kind", "flaw")}


def test_there_are_enough_of_both():
    assert len(LEAKS) >= 60
    assert len(CLEAN) >= 60


@pytest.mark.parametrize("case", LEAKS, ids=lambda case: case["kind"])
def test_a_leak_is_found_for_its_reason(make_case, case):
    found = hint_stays_hidden(make_case(**_said(case)))
    assert (found.passed, found.reason) == (False, case["flaw"]), (case, found.detail)


@pytest.mark.parametrize("case", CLEAN, ids=lambda case: case["kind"])
def test_what_does_not_leak_is_no_alarm(make_case, case):
    found = hint_stays_hidden(make_case(**_said(case)))
    assert found.passed, (case, found.detail)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (10, "ten"),
        (47, "forty-seven"),
        (180, "one hundred eighty"),
        (2013, "two thousand thirteen"),
        (300, "three hundred"),
    ],
)
def test_numbers_are_spelled_as_people_write_them(number, words):
    assert spelled(number) == words


@pytest.mark.parametrize("number", [3, 12.5, 10_000, -20])
def test_what_nobody_writes_out_is_not_spelled(number):
    assert spelled(number) is None
