"""The card of a shipped dataset: written from facts, never by hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import jinja2
import yaml

from pipelines.funnel import Funnel
from pipelines.judging import Judging
from pipelines.recipes.base import Recipe
from pipelines.records import Sample, Trajectory
from pipelines.replay import Replay
from pipelines.shares import Share
from pipelines.stages import Report

CARD_TEMPLATE = Path(__file__).with_name("card.md.jinja").read_text()
_ENVIRONMENT = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, autoescape=False)


def write_card(
    recipe: Recipe,
    trajectories: Sequence[Trajectory],
    samples: Mapping[str, Sample],
    report: Report,
    *,
    n_by_split: Mapping[str, int],
    funnel: Funnel,
    benchmarks: Sequence[str],
    replayed: Replay | None,
    judging: Judging,
    reviewed: Share,
) -> str:
    """The card's text, with the front matter that the Hugging Face hub reads."""
    used = [samples[trajectory.sample_id] for trajectory in trajectories]
    return _ENVIRONMENT.from_string(CARD_TEMPLATE).render(
        front_matter=yaml.safe_dump(_front_matter(recipe, used), sort_keys=False).strip(),
        recipe=recipe,
        n_rows=len(trajectories),
        n_images=sum(len(trajectory.shown_images) for trajectory in trajectories),
        n_videos=len({video.sha256 for sample in used for video in sample.videos}),
        checks=recipe.checks,
        policies=Counter(f"{made.provenance.policy} ({made.provenance.model})" for made in trajectories),
        sources=Counter(sample.source for sample in used),
        licenses=Counter(sample.license or "not stated" for sample in used),
        categories=Counter(sample.category or "none" for sample in used),
        rounds=Counter(len(made.rounds) for made in trajectories),
        report=report,
        n_by_split=n_by_split,
        benchmarks=benchmarks,
        replayed=replayed,
        funnel=funnel,
        mean_scores=_mean_scores(trajectories),
        judging=judging,
        reviewed=reviewed,
        interval=_interval,
        example=_example(trajectories, samples),
    )


def _mean_scores(trajectories: Sequence[Trajectory]) -> Mapping[str, float]:
    """Of every check that counts votes or measures something."""
    scores: dict[str, list[float]] = {}
    for made in trajectories:
        for check in made.checks:
            if check.score is not None:
                scores.setdefault(check.name, []).append(check.score)
    return {name: sum(values) / len(values) for name, values in sorted(scores.items())}


def _interval(found: Mapping[str, float | None]) -> str:
    """``0.950 (0.890 to 1.000)``; a dash for what is not defined."""
    value, low, high = ("–" if found[part] is None else f"{found[part]:.3f}" for part in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def _front_matter(recipe: Recipe, used: Sequence[Sample]) -> dict[str, object]:
    # no `configs` here: with them, `load_dataset(folder)` answers from its cache after the folder was made anew
    licenses = sorted({sample.license for sample in used if sample.license})
    return {
        "pretty_name": f"Darkroom SFT: {recipe.family}",
        "license": "other",
        "license_name": " AND ".join(licenses) or "not stated",
        "task_categories": ["visual-question-answering"],
        "tags": ["darkroom", "thinking-with-images", recipe.family, recipe.protocol.name],
    }


def _example(trajectories: Sequence[Trajectory], samples: Mapping[str, Sample]) -> str:
    if not trajectories:
        return "{}"
    first = trajectories[0]
    turn = first.rounds[0] if first.rounds else None
    row = {
        "question": samples[first.sample_id].question,
        "rounds": [{"thought": turn.thought, "code": turn.code}] if turn else [],
        "final_thought": first.final_thought,
        "answer": first.answer,
    }
    return json.dumps(row, indent=2, ensure_ascii=False)
