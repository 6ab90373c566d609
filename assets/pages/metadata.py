"""Figures and rows on an asset's page: counts, rejects by reason, judges, histograms, the RL mix, thumbnails."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import dagster as dg
from PIL import ImageDraw

from darkroom.pipelines.generation.stage import Shard
from darkroom.pipelines.inspection.charts import histogram, mix
from darkroom.pipelines.inspection.pages import cell, data_url, inline_example, markdown_table, thumbnail
from darkroom.pipelines.publishing.judge_stats import JudgeStats
from darkroom.pipelines.publishing.rendering import text_bars
from darkroom.pipelines.records import ImageRef, Reject, RLRow, Sample, ToolNecessity, Trajectory
from darkroom.pipelines.records.annotation import asked
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.samples import numbered_marks
from darkroom.pipelines.rl import candidates, necessity, pass_rates, suitability
from darkroom.pipelines.rl.facts import Polled, all_votes, grader_counts, polled
from darkroom.pipelines.rl.suitability import agreement_in_words
from darkroom.pipelines.sources.catalog import source_of
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.stage_runs import StageReport, reason_of

_N_GROUPS = 8
_N_REASONS = 100
THUMBNAIL_SIDE = 220
N_PREVIEWED = 4
N_EXAMPLES = 3
Metadata = dict[str, dg.MetadataValue]


def stage_metadata(report: StageReport, *, path: str) -> dict[str, Any]:
    """Counts that the UI plots over time, the cost, and whether the table was reused."""
    return {
        "dagster/row_count": report.n_out,
        "dagster/uri": dg.MetadataValue.path(path),
        "rows_in": report.n_in,
        "rows_out": report.n_out,
        "rejected": report.n_rejected,
        "quarantined": report.n_quarantined,
        "not_applicable": report.n_not_applicable,
        "cost_usd": dg.MetadataValue.float(report.usage.cost_usd),
        "performed_now": report.performed,
        "reused": report.reused,
        "funnel": funnel({"in": report.n_in - report.n_not_applicable, "out": report.n_out}),
    }


def rejects_metadata(*tables: Iterable[Reject]) -> Metadata:
    """Every reason with count, disposition, example and the command that explains it; apart, why rows don't apply."""
    counts: dict[str, Counter[str]] = {"rejects_by_reason": Counter(), "not_applicable_because": Counter()}
    examples: dict[str, Reject] = {}
    for rejected in chain(*tables):
        reason = reason_of(rejected) if rejected.is_applicable else rejected.evidence
        counts["rejects_by_reason" if rejected.is_applicable else "not_applicable_because"][reason] += 1
        examples.setdefault(reason, rejected)
    head, metadata = ("reason", "disposition", "rows", "example", "evidence", "more"), Metadata()
    for name, reasons in counts.items():
        rows = []
        for reason, n_rows in reasons.most_common(_N_REASONS):
            row = examples[reason]
            cells = (row.source_row, row.evidence[:200], explain_command(row))
            rows.append((reason_of(row), row.disposition, n_rows, *cells))
        metadata |= {name: table(head, rows)} if rows else {}
    return metadata


def explain_command(rejected: Reject) -> str:
    """The command that prints the row's whole history; a row's id in its source is text of others, hence quoted."""
    return f"darkroom explain {shlex.quote(f'{rejected.source}:{rejected.source_row}')}"


def judging_metadata(judging: JudgeStats) -> Metadata:
    """The judges with their agreement with people, and how often questions are answered without tools or image."""
    metadata: Metadata = {}
    if judging.judges:
        metadata["judges"] = dg.MetadataValue.table([dg.TableRecord(_judge(judge)) for judge in judging.judges])
    for baseline in judging.necessity:
        metadata[f"{baseline['check']}_share_right"] = dg.MetadataValue.float(round(baseline["share"], 4))
    head = ("asked", "by", "rows", "right", "right at least once", "rejected")
    rows = []
    for row in judging.necessity:
        right = f"{row['n_right']} of {row['n_trials']} answers"
        counts = (row["n_rows"], right, row["n_ever"], row["n_failed"])
        rows.append((row["condition"], judging.answered_by, *counts))
    return metadata | ({"necessity": table(head, rows)} if rows else {})


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> dg.MetadataValue:
    return dg.MetadataValue.table([dg.TableRecord(dict(zip(head, row, strict=True))) for row in rows])


def texts(facts: Mapping[str, str]) -> Metadata:
    return {name: dg.MetadataValue.text(text) for name, text in facts.items()}


def rl_stage_metadata(shard: Shard, asset: str) -> Metadata:
    notes = shard.workspace.tables.facts(shard.key(asset)).get("notes", {})
    models = texts({f"asked_{role}": asked(model) for role, model in notes.get("models", {}).items()})
    figures = _RL_FIGURES.get(asset)
    return models | (figures(shard, notes.get("settings", {})) if figures else {})


def rl_dataset_metadata(rows: Iterable[RLRow]) -> Metadata:
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("category", "difficulty", "grader", "source")}
    for row in rows:
        counts["category"][row.sample.category or "none"] += 1
        counts["difficulty"][row.difficulty] += 1
        counts["grader"][row.grader.kind] += 1
        counts["source"][row.sample.source] += 1
    groups: dict[str, dict[str, int]] = {}
    for name, of_rows in counts.items():  # the largest by name, the others together
        groups[name] = dict(of_rows.most_common(_N_GROUPS))
        if n_others := of_rows.total() - sum(groups[name].values()):
            groups[name]["others"] = n_others
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


def _pass_rates(shard: Shard, settings: Mapping[str, Any]) -> Metadata:
    poll, n_answers, max_rate = _poll(shard, pass_rates.ASSET), settings["n_answers"], settings["max_rate"]
    above = [n_right for n_right in range(n_answers + 1) if n_right / n_answers > max_rate]
    title, note = f"Rows by right answers of {n_answers}", f"orange: rejected, above {max_rate:.0%}"
    return {
        "pass_rates": bars(poll.by_yes),
        "plot_pass_rates": plot(histogram(poll.by_yes, top=n_answers, title=title, marked=above, note=note)),
        "answers_saved": dg.MetadataValue.int(poll.n_saved),
        "answers_invalid": dg.MetadataValue.int(poll.n_invalid),
    }


def _suitability(shard: Shard, settings: Mapping[str, Any]) -> Metadata:
    poll, n_votes = _poll(shard, suitability.VOTES), settings["n_votes"]
    tie = [n_votes // 2] if n_votes % 2 == 0 else []
    title, note = f"Problems by votes for a drawing, of {n_votes}", "orange: a tie, where every vote is valid"
    return {
        "votes": bars(poll.by_yes),
        "plot_votes": plot(histogram(poll.by_yes, top=n_votes, title=title, marked=tie, note=note)),
        "mean_agreement": dg.MetadataValue.float(round(poll.mean_agreement, 4)),
        "ties": dg.MetadataValue.int(poll.n_tied),
        "votes_saved": dg.MetadataValue.int(poll.n_saved),
        "votes_invalid": dg.MetadataValue.int(poll.n_invalid),
    }


def _poll(shard: Shard, asset: str) -> Polled:
    return polled(all_votes(shard.workspace, [shard.partition], asset))


def _graders(shard: Shard, settings: Mapping[str, Any]) -> Metadata:
    return {"graders": bars(dict(grader_counts(shard.workspace, [shard.partition]).most_common()))}


def _labels(shard: Shard, settings: Mapping[str, Any]) -> Metadata:
    votes = all_votes(shard.workspace, [shard.partition], suitability.VOTES)
    agreement = agreement_in_words([shard], [source_of(shard.partition)])
    majorities = bars(Counter(poll.majority for poll in votes))
    return {"majorities": majorities, "agreement_with_people": dg.MetadataValue.text(agreement)}


def _necessity(shard: Shard, settings: Mapping[str, Any]) -> Metadata:
    rows = shard.workspace.tables.read(shard.key(necessity.ASSET), ToolNecessity)
    gains = Counter("tools help" if row.prior > 0 else "no difference" if row.prior == 0 else "harm" for row in rows)
    metadata = {"prior": bars(dict(gains.most_common()))}
    for name in ("forced", "forbidden"):
        accuracy = sum(getattr(row, name).share for row in rows) / max(len(rows), 1)
        metadata[f"accuracy_{name}"] = dg.MetadataValue.float(round(accuracy, 4))
    return metadata


_RL_FIGURES: Mapping[str, Callable[[Shard, Mapping[str, Any]], Metadata]] = {
    candidates.ASSET: _graders,
    pass_rates.ASSET: _pass_rates,
    necessity.ASSET: _necessity,
    suitability.VOTES: _suitability,
    suitability.LABELS: _labels,
}


def samples_pages(samples: Iterable[Sample], store: ImageStore) -> Metadata:
    """The first samples with images: a few small examples for the asset's page, and a preview with their boxes."""
    first = list(islice((sample for sample in samples if sample.images), max(N_EXAMPLES, N_PREVIEWED)))
    captions = (f"{numbered_marks([sample.question])[0]} → **{sample.answer}**" for sample in first)
    examples = _examples(zip((sample.images[0] for sample in first), captions, strict=True), store)
    rows = []
    for sample in first[:N_PREVIEWED]:
        image = _thumbnail(sample.images[0], store, [box.box for box in sample.truth.boxes if box.image == 0])
        rows.append((image, cell(sample.question), cell(sample.answer), sample.source_row))
    return {**examples, "preview": dg.MetadataValue.md(markdown_table(("image", "question", "answer", "row"), rows))}


def trajectories_examples(
    trajectories: Sequence[Trajectory], questions: Mapping[str, str], store: ImageStore
) -> dict[str, dg.MetadataValue]:
    """The last images of a few trajectories, small enough for the asset's page itself."""
    rows = (row for row in trajectories if row.shown_images)
    captioned = ((row.shown_images[-1], f"{questions.get(row.sample_id, '')} → **{row.answer}**") for row in rows)
    return _examples(captioned, store)


def trajectories_preview(
    trajectories: Iterable[Trajectory], questions: Mapping[str, str], store: ImageStore
) -> dg.MetadataValue:
    """The first trajectories: image, question, the last program's thought and observation, or the only one, answer."""
    rows = []
    for row in islice(trajectories, N_PREVIEWED):
        image, last = _thumbnail(row.images[0], store) if row.images else "", row.rounds[-1:]
        observed = " ".join(_thumbnail(image, store) for turn in last for image in turn.observation.images[:2])
        thought = last[0].thought if last else row.final_thought
        said = (cell(text) for text in (questions.get(row.sample_id, ""), thought))
        rows.append((image, *said, observed, cell(row.answer)))
    return dg.MetadataValue.md(markdown_table(("image", "question", "thought", "observation", "answer"), rows))


def _thumbnail(ref: ImageRef, store: ImageStore, boxes: Iterable[Box] = ()) -> str:
    image = store.open(ref).convert("RGB")
    line = 2 * max(1, round(max(image.size) / THUMBNAIL_SIDE))
    for box in boxes:
        ImageDraw.Draw(image).rectangle(box.grown(line), outline=(255, 0, 90), width=line)
    return thumbnail(image, THUMBNAIL_SIDE, quality=80)


def _examples(captioned: Iterable[tuple[ImageRef, str]], store: ImageStore) -> dict[str, dg.MetadataValue]:
    examples: dict[str, dg.MetadataValue] = {}
    for n, (ref, text) in enumerate(islice(captioned, N_EXAMPLES), 1):
        examples[f"example_{n}"] = dg.MetadataValue.md(inline_example(store.open(ref), cell(text)[:200]))
    return examples
