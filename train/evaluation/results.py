"""The figures of an evaluation, as ``report.json``, tables and charts have them; faithfulness among them.

Faithfulness (CodeV, §3 and appendix 8): a rollout is faithful when any crop of it shows the target, as a judge decides
with only the question and the image, or the truth's boxes. CodeV's "crop" may be the whole image, which always does:
each figure is repeated for parts of at most ``whole_share`` of the image (``parts_only``).

A benchmark may report figures of its own; with k rollouts a question each is the mean over k runs. ``category_heads``:
by what precedes the category's ``/`` (MME-RealWorld); ``category_parts``: by each part (MM-Vet: ``ocr_math`` is two).
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from statistics import fmean
from typing import Any

from darkroom.pipelines.records import ImageRef
from darkroom.pipelines.records.samples import details_of
from darkroom.pipelines.storage.row_files import by_key
from darkroom.pipelines.vision.visibility import VisionModel
from darkroom.train.evaluation import metrics
from darkroom.train.evaluation.counterfactuals import CONTROLS, Counterfactual, effect
from darkroom.train.evaluation.metrics import Estimate, group_by, wilson
from darkroom.train.evaluation.observed_images import ObservedImage
from darkroom.train.evaluation.rollouts import ScoredRollout
from darkroom.train.evaluation.settings import COVER

ShowsTarget = Callable[[str, ImageRef], Awaitable[bool]]
"""Arguments: the question, the image. True if the image shows anything that the question is about."""
Shows = Callable[[ScoredRollout, ObservedImage], bool]


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """``faithful``, ``unfaithful`` and ``no_picture`` are proportions of all rollouts, 1 in sum (CodeV, figure 5)."""

    given_correct: Estimate
    """Faithful among right answers: CodeV's text and figure 2."""
    over_all: Estimate
    """Faithful and right, of all: CodeV's algorithm 1 and table 5."""
    faithful: float
    unfaithful: float
    no_picture: float


async def shown_to(judge: ShowsTarget, rollouts: Sequence[ScoredRollout]) -> dict[tuple[str, str], bool]:
    """The judge's verdict by question and image; each pair is judged once."""
    images = [(scored.question.sample.question, observed.image) for scored in rollouts for observed in scored.seen]
    pairs = {(question, image.sha256): image for question, image in images}
    verdicts = await asyncio.gather(*(judge(question, image) for (question, _), image in pairs.items()))
    return dict(zip(pairs, verdicts, strict=True))


def shows_a_target(scored: ScoredRollout, observed: ObservedImage, *, cover: float = COVER) -> bool:
    """True if an image shows at least ``cover`` of any of the truth's boxes, measured on pixels."""
    if (change := observed.change) is None:
        return False
    targets = [target.box for target in scored.question.sample.truth.boxes if target.image == observed.of]
    return any(change.box.intersection(box).area >= cover * box.area for box in targets)


def faithfulness(rollouts: Sequence[ScoredRollout], shows: Shows, *, whole_share: float | None = None) -> Faithfulness:
    """Faithfulness by ``shows``. With ``whole_share`` only located parts of at most that proportion count as crops."""

    def is_faithful(scored: ScoredRollout) -> bool:
        crops = (crop for crop in scored.seen if whole_share is None or crop.is_part(whole_share))
        return any(shows(scored, crop) for crop in crops)

    faithful = [scored for scored in rollouts if is_faithful(scored)]
    n, n_faithful, n_without = len(rollouts), len(faithful), sum(not scored.seen for scored in rollouts)
    n_both = sum(scored.score.right for scored in faithful)
    return Faithfulness(
        given_correct=wilson(n_both, sum(scored.score.right for scored in rollouts)),
        over_all=wilson(n_both, n),
        faithful=n_faithful / max(n, 1),
        unfaithful=(n - n_faithful - n_without) / max(n, 1),
        no_picture=n_without / max(n, 1),
    )


def with_boxes(rollouts: Iterable[ScoredRollout]) -> list[ScoredRollout]:
    return [scored for scored in rollouts if scored.question.sample.truth.boxes]


@dataclass(frozen=True, slots=True)
class Findings:
    """Rollouts, controls and the judge's verdicts by question and image; None without a judge."""

    rollouts: Sequence[ScoredRollout]
    controlled: Sequence[Counterfactual]
    verdicts: Mapping[tuple[str, str], bool] | None
    vision: VisionModel
    cover: float
    whole_share: float
    unasked: Sequence[str] = ()
    """The reasons of questions that could not be asked."""

    @property
    def counted(self) -> list[ScoredRollout]:
        return [scored for scored in self.rollouts if not scored.failed]

    @property
    def failed(self) -> list[ScoredRollout]:
        return [scored for scored in self.rollouts if scored.failed]

    def by_boxes(self, scored: ScoredRollout, observed: ObservedImage) -> bool:
        return shows_a_target(scored, observed, cover=self.cover)

    def by_judge(self, scored: ScoredRollout, observed: ObservedImage) -> bool:
        return bool(self.verdicts) and (self.verdicts or {})[scored.question.sample.question, observed.image.sha256]


def results(findings: Findings) -> dict[str, Any]:
    """Compute everything as JSON: for all rollouts, and for each benchmark with its categories and cycles."""
    rollouts = findings.counted
    categories, cycles = metrics.by_category(rollouts), metrics.by_cycle(rollouts)
    of_benchmark = {name: [scored for scored in rollouts if scored.question.benchmark == name] for name in categories}
    benchmarks = {
        name: {
            **section(findings, of_benchmark[name]),
            "categories": _as_json(parts),
            "cycles": _as_json(cycles.get(name, {})),
            "own": _as_json(own_figures(of_benchmark[name])),
        }
        for name, parts in categories.items()
    }
    return {"all": section(findings, rollouts), "benchmarks": benchmarks}


def _as_json(figures: Mapping[str, Any]) -> dict[str, Any]:
    return {name: asdict(value) for name, value in figures.items()}


def section(findings: Findings, rollouts: Sequence[ScoredRollout]) -> dict[str, Any]:
    return {
        "accuracy": asdict(metrics.accuracy(rollouts)),
        "n_naming_a_region": metrics.n_naming_a_region(rollouts),
        "code": asdict(metrics.code(rollouts)),
        "tool_calls": [asdict(bucket) for bucket in metrics.by_tool_calls(rollouts)],
        "tools": {str(tool): count for tool, count in metrics.tools(rollouts).items()},
        "visual_tokens": _as_json(metrics.tokens_seen(rollouts, findings.vision)),
        "lengths": _as_json(metrics.lengths(rollouts)),
        "broken": metrics.broken(rollouts),
        "faithfulness": _faithfulness(findings, rollouts),
        "controls": _controls(findings, rollouts),
    }


def _faithfulness(findings: Findings, rollouts: Sequence[ScoredRollout]) -> dict[str, Any]:
    deciders = {
        "boxes": (with_boxes(rollouts), findings.by_boxes),
        "judge": (rollouts if findings.verdicts is not None else (), findings.by_judge),
    }
    return {
        who: {
            "n": len(counted),
            "as_codev": asdict(faithfulness(counted, shows)),
            "parts_only": asdict(faithfulness(counted, shows, whole_share=findings.whole_share)),
        }
        for who, (counted, shows) in deciders.items()
        if counted
    }


def _controls(findings: Findings, rollouts: Sequence[ScoredRollout]) -> dict[str, Any]:
    ids = {scored.task.trajectory_id for scored in rollouts}
    own = [counterfactual for counterfactual in findings.controlled if counterfactual.scored.task.trajectory_id in ids]
    kinds = {control: [one_run for one_run in own if one_run.control == control] for control in CONTROLS}
    return {control: asdict(effect(several)) for control, several in kinds.items() if several}


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
        key = itemgetter("category", "subcategory", "set_id", column)
        return _mean(map(all, by_key((key(row), right) for row, right in about).values()))

    accuracy = _mean(right for _, right in about)
    figures = {"aAcc": accuracy, "fAcc": all_right("figure_id"), "qAcc": all_right("question_id")}
    return {**figures, "overall": Figure(fmean(figure.value for figure in figures.values()), len(about))}


def wemath(rollouts: Sequence[ScoredRollout]) -> dict[str, Figure]:
    """Figures of problems with all their steps (Qiao et al., arXiv 2407.01284, §2.3 and the authors' evaluation). IK:
    problem and a step wrong. IG: the problem wrong, all steps right. CM: problem and steps right (loose: one step). RM:
    the rest of the right problems, as a share of these."""
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


RULES: Mapping[str, Rule] = {
    "category_heads": lambda rollouts: _by_parts(rollouts, lambda category: category.split("/")[:1]),
    "category_mean": lambda rollouts: {"mean over categories": _mean(_means(rollouts).values())},
    "category_parts": lambda rollouts: _by_parts(rollouts, lambda category: re.split(r"[_,\s]+", category)),
    "hallusionbench": hallusionbench,
    "vsi_bench": vsi_bench,
    "wemath": wemath,
}


def _by_parts(rollouts: Sequence[ScoredRollout], parts: Callable[[str], Iterable[str]]) -> dict[str, Figure]:
    pairs = ((part, scored.score.value) for scored in rollouts for part in parts(scored.question.sample.category))
    values = by_key((part, value) for part, value in pairs if part)
    return {name: _mean(several) for name, several in sorted(values.items())}


def _means(rollouts: Sequence[ScoredRollout]) -> dict[str, float]:
    groups = group_by(rollouts, lambda scored: scored.question.sample.category)
    return {name: fmean(scored.score.value for scored in group) for name, group in groups.items()}


def _mean(values: Iterable[float]) -> Figure:
    several = list(values)
    return Figure(fmean(several) if several else 0.0, len(several))
