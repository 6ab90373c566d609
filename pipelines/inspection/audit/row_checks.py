"""The checks of a row's family, done again; and the counts that a row states of itself.

Which checks: those of the family's recipe, so a check that a recipe gains is audited from then on. Rows of a family
that is not known here (another trainer's export, a release) take those of every family, and those for leaks and errors.
"""

from collections.abc import Iterator, Mapping
from functools import cache

from darkroom.pipelines.generation.released import all_recipes
from darkroom.pipelines.inspection.audit.findings import AuditFinding, shortened
from darkroom.pipelines.inspection.audit.row_images import NotKnown, Row
from darkroom.pipelines.records import Check
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks import (
    EVERY_FAMILY,
    MeasuredCheck,
    hint_stays_hidden,
    no_round_is_broken,
    solution_stays_hidden,
)

MAX_SCORE_CHANGE, SMALLEST_CHANGE = 0.02, 0.001
"""As a share of a score, and at least: what rounding, and another version of a library, may change."""


@cache
def checks_of(family: str) -> tuple[MeasuredCheck, ...]:
    """The measured checks for rows of a family. Judged ones have votes, which are only counted."""
    recipes = all_recipes()
    if family in recipes:
        return tuple(check for check in recipes[family].checks if isinstance(check, MeasuredCheck))
    return (no_round_is_broken, hint_stays_hidden, solution_stays_hidden, *EVERY_FAMILY)


def remeasure(case: Case, row: Row, dataset: str) -> Iterator[tuple[str, AuditFinding | None, str]]:
    """For each check: its name, the finding if there is one, and why it could not be measured if so."""
    stored = {check["name"]: check for check in row["checks"]}
    for check in checks_of(case.trajectory.family):
        try:
            verdict = check(case)
        except NotKnown as missing:
            yield check.name, None, str(missing)
            continue
        reason = _contradiction(verdict, stored.get(check.name))
        kind = f"check: {check.name}"
        yield check.name, AuditFinding(kind, dataset, row["trajectory_id"], shortened(reason)) if reason else None, ""


def _contradiction(now: Check, stored: Mapping[str, object] | None) -> str:
    """Why the verdict is a finding; empty where it is none."""
    if not now.passed:
        return f"{now.reason}: {now.detail}"
    if stored is None or stored["version"] != now.version:
        return ""  # the row was checked by another version, or before there was this check: it passes now
    score = stored["score"]
    if not isinstance(score, int | float) or now.score is None:
        return ""
    if abs(now.score - score) > max(MAX_SCORE_CHANGE * abs(score), SMALLEST_CHANGE):
        return f"the row says {score:g}, measured again {now.score:g}"
    return ""


def stated_counts(row: Row, dataset: str) -> Iterator[AuditFinding]:
    """Shares of votes that are no shares of so many, and checks of a shipped row that say no."""
    for check in row["checks"]:
        name, n, score = check["name"], check["n_trials"], check["score"]
        if not check["passed"]:
            yield AuditFinding(
                "stored verdict", dataset, row["trajectory_id"], f"{name} says no: {shortened(check['detail'])}"
            )
        if n and (score is None or abs(score * n - round(score * n)) > 1e-6 or not 0 <= score <= 1):
            yield AuditFinding("votes", dataset, row["trajectory_id"], f"{name}: {score} is no share of {n} votes")
