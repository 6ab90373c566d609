"""Figures that a benchmark reports besides accuracy: over rows that belong together, or over parts of its categories.

| name | figures |
| --- | --- |
| hallusionbench | aAcc, fAcc (figures with all questions right), qAcc (questions right on all figures), their mean |
| wemath | IK, IG, CM, RM of its problems, strict and loose, and the score CM + IG / 2 |
| vsi_bench | mean over eight tasks; the three levels of relative direction are one |
| category_mean | mean over categories, whatever their sizes |
| category_heads | score by what stands before the ``/`` of the category (MME-RealWorld: Perception, Reasoning) |
| category_parts | score by each part of the category (MM-Vet's capabilities: ``ocr_math`` counts for both) |

With k rollouts a question, each figure is the mean over the k runs.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from darkroom.pipelines.records.samples import details_of
from darkroom.train.evaluation.metrics import group_by
from darkroom.train.evaluation.rollouts import ScoredRollout

DIRECTION = "object_rel_direction"
"""VSI-Bench's task in three levels, named ``object_rel_direction_easy`` and so on."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A value 0..1 over ``n`` questions, groups or categories."""

    value: float
    n: int


Rule = Callable[[Sequence[ScoredRollout]], Mapping[str, Figure]]


def own_figures(rollouts: Sequence[ScoredRollout]) -> dict[str, Figure]:
    """The figures of one benchmark's rollouts; none where its file names none."""
    rule = RULES.get(rollouts[0].question.figures) if rollouts else None
    if rule is None:
        return {}
    runs = [rule(run) for run in group_by(rollouts, lambda scored: scored.number).values()]
    names = dict.fromkeys(name for run in runs for name in run)
    figures = {name: [run[name] for run in runs if name in run] for name in names}
    return {name: Figure(fmean(figure.value for figure in several), several[0].n) for name, several in figures.items()}


def hallusionbench(rollouts: Sequence[ScoredRollout]) -> dict[str, Figure]:
    """aAcc, fAcc, qAcc (Guan et al., arXiv 2310.14566, §4.2) and their mean, which Thyme's table 4 calls overall."""
    about = [(details_of(scored.question.sample), scored.score.right) for scored in rollouts]

    def all_right(column: str) -> Figure:
        groups: dict[tuple[Any, ...], list[bool]] = defaultdict(list)
        for row, right in about:
            groups[row["category"], row["subcategory"], row["set_id"], row[column]].append(right)
        return _mean(map(all, groups.values()))

    accuracy = _mean(right for _, right in about)
    figures = {"aAcc": accuracy, "fAcc": all_right("figure_id"), "qAcc": all_right("question_id")}
    return {**figures, "overall": Figure(fmean(figure.value for figure in figures.values()), len(about))}


def wemath(rollouts: Sequence[ScoredRollout]) -> dict[str, Figure]:
    """Figures of problems with all their steps (Qiao et al., arXiv 2407.01284, §2.3 and the authors' evaluation).

    IK: problem and a step wrong. IG: the problem wrong, all steps right. CM: problem and steps right (loose: one step).
    RM: the rest of the right problems, as a share of these. The score is CM + IG / 2.
    """
    problems: dict[Any, dict[str, bool]] = defaultdict(dict)
    for scored in rollouts:
        row = details_of(scored.question.sample)
        problems[row["ID"]][str(row["key"])] = scored.score.right
    whole = [  # the problem and its steps, of those with two or three that are all there
        (keys[f"{n}steps_multi"], [keys[f"{n}steps_{step}"] for step in range(1, n + 1)])
        for keys in problems.values()
        for n in (2, 3)
        if keys.keys() == {f"{n}steps_{part}" for part in ("multi", *range(1, n + 1))}
    ]
    n = len(whole)
    if not n:
        return {}
    wrong = [steps for right, steps in whole if not right]
    n_ig = sum(all(steps) for steps in wrong)
    right = [steps for is_right, steps in whole if is_right]
    figures = {"IK": Figure((len(wrong) - n_ig) / n, n), "IG": Figure(n_ig / n, n)}
    for name, mastered in (("strict", all), ("loose", any)):
        n_cm = sum(mastered(steps) for steps in right)
        figures[f"CM {name}"] = Figure(n_cm / n, n)
        figures[f"RM {name}"] = Figure((len(right) - n_cm) / len(right) if right else 0.0, len(right))
        figures[f"score {name}"] = Figure((n_cm + n_ig / 2) / n, n)
    return figures


def vsi_bench(rollouts: Sequence[ScoredRollout]) -> dict[str, Figure]:
    """The mean over tasks (VSI-Bench, table 1), and relative direction as the mean of its levels."""
    tasks = _means(rollouts)
    levels = [tasks.pop(name) for name in sorted(tasks) if name.startswith(DIRECTION)]
    if not levels:
        return {"mean over tasks": _mean(tasks.values())}
    direction = _mean(levels)
    return {"mean over tasks": _mean([*tasks.values(), direction.value]), DIRECTION: direction}


def category_mean(rollouts: Sequence[ScoredRollout]) -> dict[str, Figure]:
    """The mean over categories."""
    return {"mean over categories": _mean(_means(rollouts).values())}


def category_heads(rollouts: Sequence[ScoredRollout]) -> dict[str, Figure]:
    """The mean score by the first part of the category."""
    return _by_parts(rollouts, lambda category: category.split("/")[:1])


def category_parts(rollouts: Sequence[ScoredRollout]) -> dict[str, Figure]:
    """The mean score by each part of the category."""
    return _by_parts(rollouts, lambda category: re.split(r"[_,\s]+", category))


_RULES = (category_heads, category_mean, category_parts, hallusionbench, vsi_bench, wemath)
RULES: Mapping[str, Rule] = {rule.__name__: rule for rule in _RULES}


def _by_parts(rollouts: Sequence[ScoredRollout], parts: Callable[[str], Iterable[str]]) -> dict[str, Figure]:
    values: dict[str, list[float]] = defaultdict(list)
    for scored in rollouts:
        for part in filter(None, parts(scored.question.sample.category)):
            values[part].append(scored.score.value)
    return {name: _mean(several) for name, several in sorted(values.items())}


def _means(rollouts: Sequence[ScoredRollout]) -> dict[str, float]:
    groups = group_by(rollouts, lambda scored: scored.question.sample.category)
    return {name: fmean(scored.score.value for scored in group) for name, group in groups.items()}


def _mean(values: Iterable[float]) -> Figure:
    several = list(values)
    return Figure(fmean(several) if several else 0.0, len(several))
