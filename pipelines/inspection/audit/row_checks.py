"""Checks and counts of rows, done again: trajectories by their family's recipe, prompts by their grader and votes. A
check that a recipe gains is audited from then on. Rows of a family that is not known here (another trainer's export, a
release) take the checks of every family, and those for leaks and errors."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from darkroom.pipelines.generation.released import all_recipes
from darkroom.pipelines.inspection.audit.findings import AuditFinding, shortened
from darkroom.pipelines.inspection.audit.row_records import KnownTruth, NotKnown, Row, sample_of
from darkroom.pipelines.publishing.dataset_reader import SAMPLE
from darkroom.pipelines.records import Check, Grader, ImageRef, PassRate, Truth, TruthBox, Votes, from_row, to_row
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.records.rl import majority, shipped_grader
from darkroom.pipelines.rl import pass_rates, suitability
from darkroom.pipelines.rl.rows import difficulty_of
from darkroom.pipelines.verification import checks
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.grading import grade, require_discrimination

MAX_SCORE_CHANGE, SMALLEST_CHANGE = 0.02, 0.001
"""As a share of a score, and at least: what rounding, and another version of a library, may change."""
_EXACT = 1e-9
_SAMPLE = (*SAMPLE, "answer")
"""Columns of a prompt that its sample's fields fill as they are."""


@cache
def checks_of(family: str) -> tuple[checks.MeasuredCheck, ...]:
    """Measured checks for rows of a family; of judged ones only the votes are counted."""
    recipes = all_recipes()
    if family in recipes:
        return tuple(check for check in recipes[family].checks if isinstance(check, checks.MeasuredCheck))
    return (checks.no_round_is_broken, checks.hint_stays_hidden, checks.solution_stays_hidden, *checks.EVERY_FAMILY)


def remeasure(case: Case, row: Row, dataset: str) -> Iterator[tuple[str, AuditFinding | None, str]]:
    """Measure every check again: its name, the finding if there is one, and what is missing to measure it."""
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
    """Explain why the verdict is a finding; empty if it is none."""
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


def stored_failures(row: Row, dataset: str) -> Iterator[AuditFinding]:
    """Checks that a shipped row itself says it failed."""
    for check in row["checks"]:
        if not check["passed"]:
            reason = f"{check['name']} says no: {shortened(check['detail'])}"
            yield AuditFinding("stored verdict", dataset, row["trajectory_id"], reason)


def stated_counts(row: Row, dataset: str) -> Iterator[AuditFinding]:
    """Scores of votes that are no share of that many votes."""
    for check in row["checks"]:
        name, n, score = check["name"], check["n_trials"], check["score"]
        if n and (score is None or abs(score * n - round(score * n)) > 1e-6 or not 0 <= score <= 1):
            yield AuditFinding("votes", dataset, row["trajectory_id"], f"{name}: {score} is no share of {n} votes")


def recount(row: Row, truth: KnownTruth | None, dataset: str) -> Iterator[AuditFinding]:
    """Compare a prompt's votes and rates with each other and with the workspace's votes."""
    findings = [*_rates(row), *_suitability(row)]
    if truth is not None:
        findings += _ballots(row, truth)
    return (AuditFinding("votes", dataset, row["sample_id"], reason) for reason in findings)


def regrade(row: Row, truth: KnownTruth | None, dataset: str) -> Iterator[AuditFinding]:
    """Grade the answer by its own grader and the grader by corrupted answers; find boxes outside of their image."""
    sample = sample_of(
        row,
        images=tuple(from_row(ImageRef, ref) for ref in row["image_refs"]),
        answer=row["answer"],
        truth=Truth(boxes=tuple(from_row(TruthBox, box) for box in row["boxes"])),
    )
    known = truth.sample(row["sample_id"]) if truth else None
    if known is not None and (columns := [name for name in _SAMPLE if to_row(getattr(known, name)) != row[name]]):
        reason = f"{', '.join(columns)} of the workspace's sample differ"
        yield AuditFinding("other sample", dataset, row["sample_id"], reason)
    grader = from_row(Grader, shipped_grader(row))
    verdict = grade(sample.answer, sample, grader)
    if grader.kind != "judged" and not verdict.right:
        reason = f"the row's own answer is refused: {shortened(verdict.detail)}"
        yield AuditFinding("grader", dataset, row["sample_id"], reason)
    try:
        require_discrimination(sample, grader)
    except RowError as error:
        yield AuditFinding("grader", dataset, row["sample_id"], shortened(error.evidence))
    for box in sample.truth.boxes:
        image = row["image_refs"][box.image] if box.image < len(row["image_refs"]) else None
        if image is None or not box.box.fits(image["width"], image["height"]):
            yield AuditFinding("boxes", dataset, row["sample_id"], f"the box of {box.label!r} is outside of its image")


def _rates(row: Row) -> Iterator[str]:
    rate, n_right, n = row["pass_rate"], row["n_right"], row["n_answers"]
    if rate is None:
        if row["difficulty"] != "unknown":
            yield f"difficulty {row['difficulty']} without a pass rate"
        return
    if not n or abs(rate - n_right / n) > _EXACT:
        yield f"pass_rate {rate:g} is not {n_right} of {n}"
        return
    votes = Votes("", (True,) * n_right + (False,) * (n - n_right), n)
    expected = difficulty_of(PassRate(row["sample_id"], votes, bool(row["never_solved"])))
    if row["difficulty"] != expected or bool(row["never_solved"]) != (n_right == 0):
        yield f"difficulty {row['difficulty']}, never_solved {row['never_solved']}; {n_right} of {n} is {expected}"


def _suitability(row: Row) -> Iterator[str]:
    forced, forbidden, prior = row["accuracy_forced"], row["accuracy_forbidden"], row["necessity_prior"]
    if prior is not None and abs(prior - (forced - forbidden)) > _EXACT:
        yield f"necessity_prior {prior:g} is not {forced:g} less {forbidden:g}"
    if row["suitability_majority"] is None:
        return
    most = majority(row["suitability_yes"], row["suitability_no"])
    if row["suitability_majority"] != most or (most != "tie" and row["suitable"] != (most == "yes")):
        counts = f"{row['suitability_yes']} yes, {row['suitability_no']} no"
        yield f"suitable {row['suitable']}, majority {row['suitability_majority']}; the votes are {counts}"


def _ballots(row: Row, truth: KnownTruth) -> Iterator[str]:
    """Compare the row's figures with the votes in the workspace's tables."""
    stated: Mapping[str, tuple[Any, str]] = {
        pass_rates.ASSET: (row["pass_rate"], "share"),
        suitability.VOTES: (row["suitability_yes"], "yes"),
        "forced": (row["accuracy_forced"], "share"),
        "forbidden": (row["accuracy_forbidden"], "share"),
    }
    for asset, (figure, what) in stated.items():
        votes = truth.votes(asset, row["sample_id"]) if figure is not None else None
        if votes is None:
            continue
        counted = votes["yes"] if what == "yes" else votes["yes"] / max(votes["n"], 1)
        if abs(counted - figure) > _EXACT:
            yield f"{asset}: the row says {figure:g}, the ballots {votes['yes']} of {votes['n']}"
