"""The figures of an evaluation, all in one place: what ``report.json`` holds and the tables and charts show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pipelines.visual_tokens import Vision
from train.evaluation import metrics
from train.evaluation.controls import CONTROLS, Controlled, effect
from train.evaluation.faithfulness import faithfulness, shows_a_target, with_boxes
from train.evaluation.pictures import Seen
from train.evaluation.playing import Played

Words = Mapping[tuple[str, str], bool]
"""The judge's word by question and picture."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What was played, and what was found out about it. ``words`` None: no judge was asked."""

    played: Sequence[Played]
    controlled: Sequence[Controlled]
    words: Words | None
    vision: Vision
    cover: float
    whole_share: float

    @property
    def counted(self) -> list[Played]:
        """The rollouts that say something about the policy."""
        return [one for one in self.played if not one.failed]

    @property
    def failed(self) -> list[Played]:
        """Those that an endpoint or the sandbox failed to give; another run tries them again."""
        return [one for one in self.played if one.failed]

    def by_boxes(self, one: Played, seen: Seen) -> bool:
        """Whether a picture shows a target, by the truth."""
        return shows_a_target(one, seen, cover=self.cover)

    def by_judge(self, one: Played, seen: Seen) -> bool:
        """Whether it does by the judge's word."""
        return bool(self.words) and (self.words or {})[one.question.sample.question, seen.image.sha256]


def results(found: Findings) -> dict[str, Any]:
    """Everything as JSON: for all rollouts, and for each benchmark with its categories and cycles."""
    played = found.counted
    categories, cycles = metrics.by_category(played), metrics.by_cycle(played)
    benchmarks = {
        name: {
            **section(found, [one for one in played if one.question.benchmark == name]),
            "categories": {key: asdict(value) for key, value in categories[name].items()},
            "cycles": {key: asdict(value) for key, value in cycles.get(name, {}).items()},
        }
        for name in metrics.by_benchmark(played)
    }
    return {"all": section(found, played), "benchmarks": benchmarks}


def section(found: Findings, played: Sequence[Played]) -> dict[str, Any]:
    """Every figure of some rollouts."""
    return {
        "accuracy": asdict(metrics.accuracy(played)),
        "code": asdict(metrics.code(played)),
        "tool_calls": [asdict(bucket) for bucket in metrics.by_tool_calls(played)],
        "tools": {str(tool): count for tool, count in metrics.tools(played).items()},
        "visual_tokens": {name: asdict(spread) for name, spread in metrics.tokens_seen(played, found.vision).items()},
        "lengths": {name: asdict(spread) for name, spread in metrics.lengths(played).items()},
        "broken": metrics.broken(played),
        "faithfulness": _faithfulness(found, played),
        "controls": _controls(found, played),
    }


def _faithfulness(found: Findings, played: Sequence[Played]) -> dict[str, Any]:
    """By each who can tell: as CodeV counts, and of parts only."""
    told: dict[str, Any] = {}
    if known := with_boxes(played):
        told["boxes"] = {
            "n": len(known),
            "as_codev": asdict(faithfulness(known, found.by_boxes)),
            "parts_only": asdict(faithfulness(known, found.by_boxes, whole_share=found.whole_share)),
        }
    if found.words is not None and played:
        told["judge"] = {
            "n": len(played),
            "as_codev": asdict(faithfulness(played, found.by_judge)),
            "parts_only": asdict(faithfulness(played, found.by_judge, whole_share=found.whole_share)),
        }
    return told


def _controls(found: Findings, played: Sequence[Played]) -> dict[str, Any]:
    ids = {one.task.trajectory_id for one in played}
    mine = [one for one in found.controlled if one.played.task.trajectory_id in ids]
    kinds = {control: [one for one in mine if one.control == control] for control in CONTROLS}
    return {control: asdict(effect(several)) for control, several in kinds.items() if several}
