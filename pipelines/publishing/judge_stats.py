"""Statistics of a family's judging, for its card and pages: judges, necessity, and experts' reviews of a seeded sample
(``annotation/queues/table_queues.py``); other rows carry no review check."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darkroom.pipelines.records import Check, Review
from darkroom.pipelines.records.annotation import asked, measured_on, writer_in_words
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.sources.catalog import source_of
from darkroom.pipelines.storage.row_files import by_key
from darkroom.pipelines.storage.tables import TableKey, Tables
from darkroom.pipelines.verification.checks.necessity import NEEDS_IMAGE, NEEDS_TOOLS, error_rates_in_words
from darkroom.pipelines.verification.proportion import Proportion, proportion_of

REVIEWS = ("expert_reviews",)
ANNOTATIONS = ("accepted_annotations",)
"""People's accepted records: a table and a source."""
REVIEW_CHECK = "expert_review"
_HOW = {NEEDS_IMAGE: "with a blank image", NEEDS_TOOLS: "without tools"}


@dataclass(frozen=True, slots=True)
class JudgeStats:
    """``judges``: each with its check, votes and calibration (``generation/verdicts.py``). ``necessity``: each
    condition without aid over all rows that were measured so, ``n_ever`` of them with a right answer; by which ``rule``
    rows are rejected."""

    judges: Sequence[Mapping[str, Any]]
    necessity: Sequence[Mapping[str, Any]]
    answered_by: str
    """Who answered without aid, in words."""


def judge_stats_of(tables: Tables, family: str, partitions: Sequence[str]) -> JudgeStats:
    """Over those partitions that have verdicts, with the judges of all of them."""
    notes = _notes(tables, family, partitions)
    judges = {digest(judge): judge for note in notes.values() for judge in note.get("judges", ())}
    limits = [note["necessity"] for note in notes.values() if "necessity" in note]
    models = {limit["model"] for limit in limits}
    checks = (check for key in notes for (row,) in tables.columns(key, "checks") for check in row)
    return JudgeStats(list(judges.values()), necessity_stats(checks, limits[-1] if limits else {}), measured_on(models))


def origins_of(tables: Tables, key: TableKey, partitions: Sequence[str]) -> Mapping[str, str]:
    """Who wrote a table's rows, and who judged and annotated those of its family in ``partitions``, if any."""
    rows = tables.columns(key, "family", "provenance") if tables.exists(key) else ()
    families, written = set[str](), Counter[str]()
    for family, provenance in rows:
        families.add(family)
        written[writer_in_words(provenance["policy"], provenance["model"])] += 1
    notes = (note for family in families for note in _notes(tables, family, partitions).values())
    judged = dict.fromkeys(asked(judge["judge"]) for note in notes for judge in note.get("judges", ()))
    accepted = tables.keys(ANNOTATIONS) if any(source_of(name) == ANNOTATIONS[0] for name in partitions) else ()
    annotated = dict.fromkeys(tables.facts(key).get("notes", {}).get("annotators", "people") for key in accepted)
    origins = {"written_by": ", ".join(who for who, _ in written.most_common()), "judged_by": ", ".join(judged)}
    origins |= {"annotated_by": ", ".join(annotated) if written else ""}
    return {what: who for what, who in origins.items() if who}


def judge_stats_fingerprint(tables: Tables, family: str, partitions: Sequence[str]) -> str:
    """Changes whenever ``judge_stats_of`` may."""
    return digest([[tables.fingerprint(key), note] for key, note in _notes(tables, family, partitions).items()])


def necessity_stats(checks: Iterable[Mapping[str, Any]], limits: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The outcome of necessity among the ``checks`` of rows; empty where it was not measured."""
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for check in checks:
        if check["name"] in _HOW:
            score, n_trials = check["score"] or 0, check["n_trials"]
            outcome = {"n_right": round(score * n_trials), "n_ever": int(bool(score))}
            sums[check["name"]].update(n_rows=1, n_trials=n_trials, n_failed=int(not check["passed"]), **outcome)
    shares = {
        name: {"share": n["n_right"] / max(n["n_trials"], 1), "rule": _rule(name, limits)} for name, n in sums.items()
    }
    return [{"check": name, "condition": _HOW[name], **sums[name], **shares[name]} for name in _HOW if name in sums]


def _rule(name: str, limits: Mapping[str, Any]) -> str:
    most = limits.get("max_blind" if name == NEEDS_IMAGE else "max_without_tools")
    if most is None:
        return "measured only"
    in_words = error_rates_in_words(limits) if name == NEEDS_IMAGE else ""
    return in_words or f"beyond a share of {most:g}"


def reviews_key(family: str) -> TableKey:
    return TableKey(REVIEWS, family)


def read_reviews(tables: Tables, family: str) -> list[Review]:
    """The family's reviews; empty without any."""
    key = reviews_key(family)
    return tables.read(key, Review) if tables.exists(key) else []


def review_checks(reviews: Iterable[Review]) -> Mapping[str, Check]:
    """The check of every reviewed row: passed when most experts accept it; a tie fails."""
    of_row = by_key((review.trajectory_id, review) for review in reviews)
    return {row: _review_check(row_reviews) for row, row_reviews in of_row.items()}


def acceptance(reviews: Iterable[Review]) -> Proportion:
    """Share of the reviewed rows that the experts accept."""
    return proportion_of(check.passed for check in review_checks(reviews).values())


def _review_check(reviews: Sequence[Review]) -> Check:
    n, n_accepted = len(reviews), sum(review.accepted for review in reviews)
    reasons = Counter(reason for review in reviews for reason in review.reasons)
    reason_counts = [f"{reason} {count}" for reason, count in sorted(reasons.items())]
    comments = [review.comment for review in reviews if review.comment]
    detail = "; ".join([f"{n_accepted} of {n} experts accept it", *reason_counts, *comments])
    passed = 2 * n_accepted > n
    reason = "" if passed else "expert_rejected"
    return Check(REVIEW_CHECK, passed, score=n_accepted / n, detail=detail, reason=reason, n_trials=n)


def _notes(tables: Tables, family: str, partitions: Sequence[str]) -> dict[TableKey, Mapping[str, Any]]:
    keys = tables.existing(TableKey((family, "verdicts"), partition) for partition in partitions)
    return {key: tables.facts(key).get("notes", {}) for key in keys}
