"""The cards of shipped datasets: written from facts, never by hand, with the front matter of the Hugging Face hub."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pipelines.generation.funnel import Funnel
from pipelines.generation.recipes import Recipe
from pipelines.publishing.judge_stats import JudgeStats
from pipelines.publishing.release_facts import ReleaseFacts
from pipelines.publishing.replay import Replay
from pipelines.publishing.templates import render
from pipelines.publishing.text_charts import text_bars
from pipelines.records import CheckedLabel, Provenance, RLRow, Sample, Trajectory
from pipelines.records.stand_ins import Annotators, asked, measured_on
from pipelines.rl import labels, pass_rates, suitability
from pipelines.rl.facts import all_votes, polled, shards_with, stage_facts
from pipelines.storage.stage import StageReport
from pipelines.storage.workspace import Workspace
from pipelines.verification.proportion import Proportion


def sft_card(
    recipe: Recipe,
    trajectories: Sequence[Trajectory],
    samples: Mapping[str, Sample],
    report: StageReport,
    *,
    n_by_split: Mapping[str, int],
    funnel: Funnel,
    benchmarks: Sequence[str],
    replayed: Replay | None,
    judging: JudgeStats,
    reviewed: Proportion,
    languages: Mapping[str, str],
    release: ReleaseFacts | None = None,
    ablation: str = "",
) -> str:
    """The card of one family's trajectories.

    ``replayed`` None: not measured. ``languages``: by source. ``release``: of a family of released trajectories.
    ``ablation``: which rows there are that did not pass every check.
    """
    from pipelines.publishing.cards.front_matter import front_matter  # `datasets` takes a second
    from pipelines.publishing.features import TRAJECTORIES

    title, tags = f"Darkroom SFT: {recipe.family}", [recipe.family, recipe.protocol.name]
    used = [samples[trajectory.sample_id] for trajectory in trajectories]
    provenances = [trajectory.provenance for trajectory in trajectories]
    return render(
        "cards/sft_card.md.jinja",
        front_matter=front_matter(title, used, TRAJECTORIES, n_rows=len(trajectories), tags=tags, languages=languages),
        asked=asked,
        labelled_by=_labelled_by,
        recipe=recipe,
        n_rows=len(trajectories),
        n_images=sum(len(trajectory.shown_images) for trajectory in trajectories),
        n_videos=len({video.sha256 for sample in used for video in sample.videos}),
        checks=recipe.checks,
        writers=Counter(_writer(provenance) for provenance in provenances),
        sources=Counter(sample.source for sample in used),
        license_counts=Counter(sample.license or "not stated" for sample in used),
        categories=Counter(sample.category or "none" for sample in used),
        rounds=Counter(len(trajectory.rounds) for trajectory in trajectories),
        report=report,
        n_by_split=n_by_split,
        benchmarks=benchmarks,
        replayed=replayed,
        funnel=funnel,
        mean_scores=_mean_scores(trajectories),
        judging=judging,
        reviewed=reviewed,
        release=release,
        ablation=ablation,
        interval=_interval,
        example=_example(trajectories[0], samples),
    )


def rl_card(
    workspace: Workspace,
    partitions: Sequence[str],
    rows: Sequence[RLRow],
    report: StageReport,
    *,
    n_by_split: Mapping[str, int],
    benchmarks: Sequence[str],
    agreement: str,
    annotators: Annotators,
    from_drafts: Collection[str],
    languages: Mapping[str, str],
) -> str:
    """The card of all RL rows. ``agreement``: of votes with people, in words; ``languages``: by source.

    ``from_drafts``: the samples of the ``annotators`` that began as a policy's draft, by id.
    """
    from pipelines.publishing.cards.front_matter import front_matter  # `datasets` takes a second
    from pipelines.publishing.features import PROMPTS

    title, samples, tags = "Darkroom RL prompts", [row.sample for row in rows], ["reinforcement-learning"]
    return render(
        "cards/rl_card.md.jinja",
        front_matter=front_matter(title, samples, PROMPTS, n_rows=len(rows), tags=tags, languages=languages),
        asked=asked,
        measured_on=measured_on,
        origins=_origins(workspace, partitions, rows, annotators, from_drafts),
        rows=rows,
        report=report,
        n_by_split=n_by_split,
        benchmarks=benchmarks,
        counts={
            "origin": Counter(row.origin for row in rows),
            "source": Counter(row.sample.source for row in rows),
            "category": Counter(row.sample.category or "none" for row in rows),
            "difficulty": Counter(row.difficulty for row in rows),
            "grader": Counter(row.grader.kind for row in rows),
            "licence": Counter(row.sample.license or "not stated" for row in rows),
        },
        stages=stage_facts(workspace, partitions),
        solved=polled(all_votes(workspace, partitions, pass_rates.ASSET)),
        voted=polled(all_votes(workspace, partitions, suitability.VOTES)),
        agreement=agreement,
        bars=lambda counts: text_bars({f"{n:>3} ": n_rows for n, n_rows in counts.items()}),
        necessity_models={row.necessity.forced.judge for row in rows if row.necessity is not None},
        priors=[row.necessity.prior for row in rows if row.necessity is not None],
    )


def _origins(
    workspace: Workspace,
    partitions: Sequence[str],
    rows: Sequence[RLRow],
    annotators: Annotators,
    from_drafts: Collection[str],
) -> list[tuple[str, str, int]]:
    """What the rows say, who it is from, and of how many rows."""
    checked = {
        label.sample_id: "a person" if label.verified_by else asked(label.votes.judge)
        for shard in shards_with(workspace, partitions, labels.ASSET)
        for label in workspace.tables.read(shard.key(labels.ASSET), CheckedLabel)
    }

    def author(row: RLRow) -> str:
        if row.origin != "annotated":
            return row.sample.source
        return f"{annotators}, from a model's draft" if row.sample.sample_id in from_drafts else annotators

    facts: dict[str, list[str | None]] = {
        "question and answer": [author(row) for row in rows],
        "label compared with answers of": [
            f"{annotators}, in a second round" if row.origin == "annotated" else checked.get(row.sample.sample_id)
            for row in rows
        ],
        "pass rate, difficulty": [measured_on([row.pass_rate.votes.judge]) if row.pass_rate else None for row in rows],
        "tool necessity": [measured_on([row.necessity.forced.judge]) if row.necessity else None for row in rows],
        "visual suitability": [asked(row.suitability.judge) if row.suitability else None for row in rows],
    }
    counted = {what: Counter(who or "nobody: not measured" for who in origins) for what, origins in facts.items()}
    return [(what, who, n) for what, counts in counted.items() for who, n in sorted(counts.items())]


def _writer(provenance: Provenance) -> str:
    name = asked(provenance.policy)
    return name if name != provenance.policy else f"{provenance.policy} ({provenance.model})"


def _labelled_by(calibration: Mapping[str, Any]) -> str:
    name = calibration["labelled"]
    people = "the makers of Darkroom" if name.startswith("bundled") else ", ".join(calibration["reviewers"])
    return f"labelled by {people or 'people who are not named'}, {name}"


def _mean_scores(trajectories: Sequence[Trajectory]) -> Mapping[str, float]:
    """Of every check that counts votes or measures something."""
    scores: dict[str, list[float]] = {}
    for check in (check for trajectory in trajectories for check in trajectory.checks):
        if check.score is not None:
            scores.setdefault(check.name, []).append(check.score)
    return {name: sum(values) / len(values) for name, values in sorted(scores.items())}


def _interval(estimate: Mapping[str, float | None]) -> str:
    """``0.950 (0.890 to 1.000)``; a dash for what is not defined."""
    value, low, high = ("–" if estimate[part] is None else f"{estimate[part]:.3f}" for part in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def _example(trajectory: Trajectory, samples: Mapping[str, Sample]) -> str:
    row = {
        "question": samples[trajectory.sample_id].question,
        "rounds": [{"thought": turn.thought, "code": turn.code} for turn in trajectory.rounds[:1]],
        "final_thought": trajectory.final_thought,
        "answer": trajectory.answer,
    }
    return json.dumps(row, indent=2, ensure_ascii=False)
