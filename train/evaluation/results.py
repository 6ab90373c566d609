"""The figures of an evaluation, as ``report.json``, tables and charts have them; faithfulness among them.

Faithfulness (CodeV, §3 and appendix 8): a rollout is faithful when any crop of it shows the target. CodeV divides in
two ways: its text (§3, §5.3, appendix 8) and figure 2 by the rollouts with a right answer (``given_correct``), line 13
of its algorithm 1 and its table 5 by all rollouts (``over_all``). Both are reported under these names.

The decision comes from a judge with only the question and the image, or from the truth's boxes where there are any.
CodeV's "crop" may be the whole image, which always shows the target; as a control each figure is repeated for parts of
at most ``whole_share`` of the image (``parts_only``).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from darkroom.pipelines.records import ImageRef
from darkroom.pipelines.vision.visibility import VisionModel
from darkroom.train.evaluation import metrics
from darkroom.train.evaluation.counterfactuals import CONTROLS, Counterfactual, effect
from darkroom.train.evaluation.metrics import Estimate, wilson
from darkroom.train.evaluation.observed_images import ObservedImage
from darkroom.train.evaluation.own_figures import own_figures
from darkroom.train.evaluation.rollouts import ScoredRollout
from darkroom.train.evaluation.settings import COVER

ShowsTarget = Callable[[str, ImageRef], Awaitable[bool]]
"""Arguments: the question, the image. True if the image shows anything that the question is about."""


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """``faithful``, ``unfaithful`` and ``no_image`` are proportions of all rollouts, 1 in sum (CodeV, figure 5)."""

    given_correct: Estimate
    """Faithful among right answers: CodeV's text and figure 2."""
    over_all: Estimate
    """Faithful and right, of all: CodeV's algorithm 1 and table 5."""
    faithful: float
    unfaithful: float
    no_image: float

    def as_json(self) -> dict[str, Any]:
        """Convert for ``report.json``, whose keys stay those of earlier reports."""
        return {"no_picture" if name == "no_image" else name: value for name, value in asdict(self).items()}


async def shown_to(judge: ShowsTarget, rollouts: Sequence[ScoredRollout]) -> dict[tuple[str, str], bool]:
    """The judge's verdict by question and image; each pair is judged once."""
    shown = [(scored.question.sample.question, observed.image) for scored in rollouts for observed in scored.seen]
    pairs = {(question, image.sha256): image for question, image in shown}
    verdicts = await asyncio.gather(*(judge(question, image) for (question, _), image in pairs.items()))
    return dict(zip(pairs, verdicts, strict=True))


def shows_a_target(scored: ScoredRollout, observed: ObservedImage, *, cover: float = COVER) -> bool:
    """True if an image shows at least ``cover`` of any of the truth's boxes, measured on pixels."""
    if (change := observed.change) is None:
        return False
    targets = [target.box for target in scored.question.sample.truth.boxes if target.image == observed.of]
    return any(change.box.intersection(box).area >= cover * box.area for box in targets)


def faithfulness(
    rollouts: Sequence[ScoredRollout],
    shows: Callable[[ScoredRollout, ObservedImage], bool],
    *,
    whole_share: float | None = None,
) -> Faithfulness:
    """Faithfulness by ``shows``. With ``whole_share`` only located parts of at most that proportion count as crops."""
    faithful = [
        scored
        for scored in rollouts
        if any(shows(scored, crop) for crop in scored.seen if whole_share is None or crop.is_part(whole_share))
    ]
    n, n_right = len(rollouts), sum(scored.score.right for scored in rollouts)
    both, n_without = sum(scored.score.right for scored in faithful), sum(not scored.seen for scored in rollouts)
    counts = (len(faithful), n - len(faithful) - n_without, n_without)
    return Faithfulness(wilson(both, n_right), wilson(both, n), *(count / max(n, 1) for count in counts))


def with_boxes(rollouts: Iterable[ScoredRollout]) -> list[ScoredRollout]:
    """Rollouts with truth boxes."""
    return [scored for scored in rollouts if scored.question.sample.truth.boxes]


Verdicts = Mapping[tuple[str, str], bool]
"""The judge's verdict by question and image."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Rollouts, controls and the judge's verdicts; None without a judge."""

    rollouts: Sequence[ScoredRollout]
    controlled: Sequence[Counterfactual]
    verdicts: Verdicts | None
    vision: VisionModel
    cover: float
    whole_share: float

    @property
    def counted(self) -> list[ScoredRollout]:
        """Rollouts without an infrastructure failure."""
        return [scored for scored in self.rollouts if not scored.failed]

    @property
    def failed(self) -> list[ScoredRollout]:
        """Rollouts lost to an endpoint or sandbox failure; the next run retries them."""
        return [scored for scored in self.rollouts if scored.failed]

    def by_boxes(self, scored: ScoredRollout, observed: ObservedImage) -> bool:
        """True if an image shows a target, by truth boxes."""
        return shows_a_target(scored, observed, cover=self.cover)

    def by_judge(self, scored: ScoredRollout, observed: ObservedImage) -> bool:
        """True if it does, by the judge."""
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
    """Compute every figure of some rollouts."""
    return {
        "accuracy": asdict(metrics.accuracy(rollouts)),
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
            "as_codev": faithfulness(counted, shows).as_json(),
            "parts_only": faithfulness(counted, shows, whole_share=findings.whole_share).as_json(),
        }
        for who, (counted, shows) in deciders.items()
        if counted
    }


def _controls(findings: Findings, rollouts: Sequence[ScoredRollout]) -> dict[str, Any]:
    ids = {scored.task.trajectory_id for scored in rollouts}
    own = [counterfactual for counterfactual in findings.controlled if counterfactual.scored.task.trajectory_id in ids]
    kinds = {control: [one_run for one_run in own if one_run.control == control] for control in CONTROLS}
    return {control: asdict(effect(several)) for control, several in kinds.items() if several}
