"""The cards of shipped datasets: written from facts, never by hand, with the front matter of the Hugging Face hub."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from pipelines.generation.funnel import Funnel
from pipelines.generation.recipes import Recipe
from pipelines.publishing.judge_stats import JudgeStats
from pipelines.publishing.replay import Replay
from pipelines.publishing.templates import render
from pipelines.publishing.text_charts import text_bars
from pipelines.records import RLRow, Sample, Trajectory
from pipelines.rl import pass_rates, suitability
from pipelines.rl.facts import all_votes, polled, stage_facts
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
) -> str:
    """The card of one family's trajectories. ``replayed`` None: not measured."""
    used = [samples[trajectory.sample_id] for trajectory in trajectories]
    provenances = [trajectory.provenance for trajectory in trajectories]
    return _render(
        "cards/sft_card.md.jinja",
        title=f"Darkroom SFT: {recipe.family}",
        licenses={sample.license for sample in used},
        tags=[recipe.family, recipe.protocol.name],
        recipe=recipe,
        n_rows=len(trajectories),
        n_images=sum(len(trajectory.shown_images) for trajectory in trajectories),
        n_videos=len({video.sha256 for sample in used for video in sample.videos}),
        checks=recipe.checks,
        policies=Counter(f"{provenance.policy} ({provenance.model})" for provenance in provenances),
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
        interval=_interval,
        example=_example(trajectories[0], samples) if trajectories else "{}",
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
) -> str:
    """The card of all RL rows. ``agreement``: of votes with people, in words."""
    return _render(
        "cards/rl_card.md.jinja",
        title="Darkroom RL prompts",
        licenses={part for row in rows for part in row.sample.license.split(" AND ")},
        tags=["reinforcement-learning"],
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
        priors=[row.necessity.prior for row in rows if row.necessity is not None],
    )


def _render(template: str, *, title: str, licenses: Iterable[str], tags: Sequence[str], **facts: Any) -> str:
    # no `configs` here: with them, `load_dataset(folder)` answers from its cache after the folder was made anew
    front_matter = {
        "pretty_name": title,
        "license": "other",
        "license_name": " AND ".join(sorted(filter(None, licenses))) or "not stated",
        "task_categories": ["visual-question-answering"],
        "tags": ["darkroom", "thinking-with-images", *tags],
    }
    return render(template, front_matter=yaml.safe_dump(front_matter, sort_keys=False).strip(), **facts)


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
