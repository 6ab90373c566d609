"""Rows of the RL dataset, counted and graded again: votes, rates, difficulty, and whether the grader can tell."""

from collections.abc import Iterator, Mapping
from typing import Any

from darkroom.pipelines.inspection.audit.findings import AuditFinding, shortened
from darkroom.pipelines.inspection.audit.known_truth import KnownTruth
from darkroom.pipelines.inspection.audit.row_images import Row, sample_of
from darkroom.pipelines.records import Grader, ImageRef, PassRate, Truth, TruthBox, Votes, from_row
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.records.rl import majority
from darkroom.pipelines.rl import pass_rates, suitability
from darkroom.pipelines.rl.rows import difficulty_of
from darkroom.pipelines.verification.grading import grade, require_discrimination

_EXACT = 1e-9


def recount(row: Row, truth: KnownTruth | None, dataset: str) -> Iterator[AuditFinding]:
    """What the row says of votes and rates, against itself and against the workspace's ballots."""
    findings = [*_rates(row), *_suitability(row)]
    if truth is not None:
        findings += _ballots(row, truth)
    return (AuditFinding("votes", dataset, row["sample_id"], reason) for reason in findings)


def regrade(row: Row, truth: KnownTruth | None, dataset: str) -> Iterator[AuditFinding]:
    """The answer by its own grader, the grader on corrupted answers, and boxes outside of their image."""
    sample = truth.sample(row["sample_id"]) if truth else None
    sample = sample or sample_of(
        row,
        images=tuple(from_row(ImageRef, ref) for ref in row["image_refs"]),
        answer=row["answer"],
        truth=Truth(boxes=tuple(from_row(TruthBox, box) for box in row["boxes"])),
    )
    grader = from_row(Grader, row["grader"])
    verdict = grade(sample.answer, sample, grader)
    if grader.kind != "judged" and not verdict.right:
        yield AuditFinding(
            "grader", dataset, row["sample_id"], f"the row's own answer is refused: {shortened(verdict.detail)}"
        )
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
    """The row's figures against the ballots in the workspace's tables."""
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
