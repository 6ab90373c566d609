"""Figures on an asset's page: counts, rejects by reason, judges, histograms of votes and pass rates, the RL mix."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

import dagster as dg

from darkroom.pipelines.generation.stage import Shard
from darkroom.pipelines.inspection.charts import histogram, mix
from darkroom.pipelines.inspection.pages import data_url
from darkroom.pipelines.publishing.judge_stats import JudgeStats
from darkroom.pipelines.publishing.rendering import text_bars
from darkroom.pipelines.records import Reject, RLRow, ToolNecessity
from darkroom.pipelines.records.origin_labels import asked
from darkroom.pipelines.rl import candidates, necessity, pass_rates, suitability
from darkroom.pipelines.rl.facts import Polled, all_votes, grader_counts, polled
from darkroom.pipelines.rl.suitability import agreement_in_words
from darkroom.pipelines.sources.catalog import source_of
from darkroom.pipelines.storage.stage_runs import StageReport, reason_of

_N_GROUPS, _N_REASONS = 8, 100
Metadata = dict[str, dg.MetadataValue]


def stage_metadata(report: StageReport, *, path: str) -> Metadata:
    """Counts that the UI plots over time, the cost, and whether the table was reused."""
    return {
        "dagster/row_count": dg.MetadataValue.int(report.n_out),
        "dagster/uri": dg.MetadataValue.path(path),
        "rows_in": dg.MetadataValue.int(report.n_in),
        "rows_out": dg.MetadataValue.int(report.n_out),
        "rejected": dg.MetadataValue.int(report.n_rejected),
        "quarantined": dg.MetadataValue.int(report.n_quarantined),
        "not_applicable": dg.MetadataValue.int(report.n_not_applicable),
        "cost_usd": dg.MetadataValue.float(report.usage.cost_usd),
        "performed_now": dg.MetadataValue.int(report.performed),
        "reused": dg.MetadataValue.bool(report.reused),
        "funnel": funnel({"in": report.n_in - report.n_not_applicable, "out": report.n_out}),
    }


def rejects_metadata(*tables: Iterable[Reject]) -> Metadata:
    """Every reason with its count, its disposition, one example, and the command that explains it; apart from them, why
    rows are not applicable."""
    counts: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    examples: dict[str, Reject] = {}
    for rejected in chain(*tables):
        reason = reason_of(rejected) if rejected.is_applicable else rejected.evidence
        counts[rejected.is_applicable][reason] += 1
        examples.setdefault(reason, rejected)
    tables_by_name = {"rejects_by_reason": counts[True], "not_applicable_because": counts[False]}
    return {
        name: dg.MetadataValue.table([_group(examples[reason], n) for reason, n in reasons.most_common(_N_REASONS)])
        for name, reasons in tables_by_name.items()
        if reasons
    }


def _group(example: Reject, n_rows: int) -> dg.TableRecord:
    return dg.TableRecord(
        {
            "reason": reason_of(example),
            "disposition": example.disposition,
            "rows": n_rows,
            "example": example.source_row,
            "evidence": example.evidence[:200],
            "more": explain_command(example),
        }
    )


def explain_command(rejected: Reject) -> str:
    """The command that prints the row's whole history; a row's id in its source is text of others, hence quoted."""
    return f"darkroom explain {shlex.quote(f'{rejected.source}:{rejected.source_row}')}"


def judging_metadata(judging: JudgeStats) -> Metadata:
    """The judges with their agreement with people, and how often questions are answered without tools or image."""
    metadata: Metadata = {}
    if judging.judges:
        metadata["judges"] = dg.MetadataValue.table([dg.TableRecord(_judge(judge)) for judge in judging.judges])
    for baseline in judging.necessity:
        metadata[f"{baseline.check}_share_right"] = dg.MetadataValue.float(round(baseline.share, 4))
    records = [
        dg.TableRecord(
            {
                "asked": baseline.condition,
                "by": judging.answered_by,
                "rows": baseline.n_rows,
                "right": f"{baseline.n_right} of {baseline.n_trials} answers",
                "right at least once": baseline.n_ever,
                "rejected": baseline.n_failed,
            }
        )
        for baseline in judging.necessity
    ]
    return metadata | ({"necessity": dg.MetadataValue.table(records)} if records else {})


def rl_stage_metadata(shard: Shard, asset: str) -> Metadata:
    """The models that an RL stage called, and its figures with a plot."""
    notes = shard.workspace.tables.facts(shard.key(asset)).get("notes", {})
    models = {f"asked_{role}": dg.MetadataValue.text(model) for role, model in notes.get("models", {}).items()}
    figures = _RL_FIGURES.get(asset)
    return models | (figures(shard, notes.get("settings", {})) if figures else {})


def rl_dataset_metadata(rows: Iterable[RLRow]) -> Metadata:
    """The RL rows that ship by category, difficulty, grader and source."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("category", "difficulty", "grader", "source")}
    for row in rows:
        counts["category"][row.sample.category or "none"] += 1
        counts["difficulty"][row.difficulty] += 1
        counts["grader"][row.grader.kind] += 1
        counts["source"][row.sample.source] += 1
    groups = {name: _largest(of_rows) for name, of_rows in counts.items()}
    metadata = {f"by_{name}": bars(largest) for name, largest in groups.items()}
    if n_rows := counts["source"].total():
        metadata["plot_mix"] = plot(mix(groups, title=f"{n_rows:,} RL rows"))
    return metadata


def funnel(counts: Mapping[str, int]) -> dg.MetadataValue:
    """Rows left after each step, as bars with proportions."""
    padded = {f"{name:<14}": n_rows for name, n_rows in counts.items()}
    return dg.MetadataValue.md(text_bars(padded, width=30, shares=True))


def bars(counts: Mapping[Any, int]) -> dg.MetadataValue:
    """A histogram in text, short enough to appear on the page itself."""
    return dg.MetadataValue.md(text_bars({f"{str(name)[:22]:<22}": n_rows for name, n_rows in counts.items()}))


def plot(png: bytes, name: str = "") -> dg.MetadataValue:
    """A plot as a data URL, which needs no file server."""
    return dg.MetadataValue.md(f"![{name}]({data_url(png)})")


def _judge(judge: Mapping[str, Any]) -> dict[str, str | int]:
    frozen = judge["calibration"]
    facts: dict[str, str | int] = {"check": judge["check"], "judge": asked(judge["judge"]), "votes": judge["n_votes"]}
    if frozen is None:
        return facts | {"calibration": "not calibrated", "labels": 0, "precision": "", "recall": "", "kappa": ""}
    numbers = frozen["calibration"]
    values = {name: numbers[name]["value"] for name in ("precision", "recall", "kappa")}
    figures = {name: "" if value is None else f"{value:.3f}" for name, value in values.items()}
    return facts | {"calibration": frozen["labelled"], "labels": numbers["n_labels"]} | figures


def _largest(counts: Counter[str]) -> dict[str, int]:
    """The largest groups by name, the others together."""
    groups = dict(counts.most_common(_N_GROUPS))
    n_others = counts.total() - sum(groups.values())
    return groups | ({"others": n_others} if n_others else {})


def _graders(shard: Shard, settings: Mapping[str, Any]) -> Metadata:
    return {"graders": bars(dict(grader_counts(shard.workspace, [shard.partition]).most_common()))}


def _pass_rates(shard: Shard, settings: Mapping[str, Any]) -> Metadata:
    poll, n_answers, max_rate = _poll(shard, pass_rates.ASSET), settings["n_answers"], settings["max_rate"]
    histogram_png = histogram(
        poll.by_yes,
        top=n_answers,
        title=f"Rows by right answers of {n_answers}",
        marked=[n_right for n_right in range(n_answers + 1) if n_right / n_answers > max_rate],
        note=f"orange: rejected, above {max_rate:.0%}",
    )
    return {
        "pass_rates": bars(poll.by_yes),
        "plot_pass_rates": plot(histogram_png),
        "answers_saved": dg.MetadataValue.int(poll.n_saved),
        "answers_invalid": dg.MetadataValue.int(poll.n_invalid),
    }


def _suitability(shard: Shard, settings: Mapping[str, Any]) -> Metadata:
    poll, n_votes = _poll(shard, suitability.VOTES), settings["n_votes"]
    histogram_png = histogram(
        poll.by_yes,
        top=n_votes,
        title=f"Problems by votes for a drawing, of {n_votes}",
        marked=[n_votes // 2] if n_votes % 2 == 0 else [],
        note="orange: a tie, where every vote is valid",
    )
    return {
        "votes": bars(poll.by_yes),
        "plot_votes": plot(histogram_png),
        "mean_agreement": dg.MetadataValue.float(round(poll.mean_agreement, 4)),
        "ties": dg.MetadataValue.int(poll.n_tied),
        "votes_saved": dg.MetadataValue.int(poll.n_saved),
        "votes_invalid": dg.MetadataValue.int(poll.n_invalid),
    }


def _poll(shard: Shard, asset: str) -> Polled:
    return polled(all_votes(shard.workspace, [shard.partition], asset))


def _labels(shard: Shard, settings: Mapping[str, Any]) -> Metadata:
    votes = all_votes(shard.workspace, [shard.partition], suitability.VOTES)
    agreement = agreement_in_words([shard], [source_of(shard.partition)])
    return {
        "majorities": bars(Counter(poll.majority for poll in votes)),
        "agreement_with_people": dg.MetadataValue.text(agreement),
    }


def _necessity(shard: Shard, settings: Mapping[str, Any]) -> Metadata:
    rows = shard.workspace.tables.read(shard.key(necessity.ASSET), ToolNecessity)
    gains = Counter("tools help" if row.prior > 0 else "no difference" if row.prior == 0 else "harm" for row in rows)
    accuracies = {
        name: sum(getattr(row, name).share for row in rows) / len(rows) if rows else 0.0
        for name in ("forced", "forbidden")
    }
    return {
        "prior": bars(dict(gains.most_common())),
        **{f"accuracy_{name}": dg.MetadataValue.float(round(share, 4)) for name, share in accuracies.items()},
    }


_RL_FIGURES: Mapping[str, Callable[[Shard, Mapping[str, Any]], Metadata]] = {
    candidates.ASSET: _graders,
    pass_rates.ASSET: _pass_rates,
    necessity.ASSET: _necessity,
    suitability.VOTES: _suitability,
    suitability.LABELS: _labels,
}
