"""An experiment: the paper's row, arms, comparisons, seeds and measures."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from measurements.ablations.models import Model


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of an arm. A share is printed in percent, its difference in points."""

    label: str
    is_share: bool = True


MEASURES: Mapping[str, Measure] = {
    "right": Measure("right"),
    "executed": Measure("code ran"),
    "unanswered": Measure("no answer"),
    "tool_use": Measure("wrote code"),
    "calls": Measure("code blocks per rollout", is_share=False),
    "faithful": Measure("a crop shows the sign"),
    "right_far": Measure("right, seen from afar"),
    "right_near": Measure("right, seen from near"),
    "tool_use_far": Measure("wrote code, seen from afar"),
    "tool_use_near": Measure("wrote code, seen from near"),
    "calls_one_look": Measure("code blocks where one look is needed", is_share=False),
    "calls_two_looks": Measure("code blocks where two are needed", is_share=False),
    "right_one_look": Measure("right, one look needed"),
    "right_two_looks": Measure("right, two looks needed"),
    "sums_right": Measure("right, sums"),
    "sums_executed": Measure("code ran, sums"),
    "visual_tokens": Measure("visual tokens per question", is_share=False),
    "blank_changes": Measure("right answers that change with a blank crop"),
    "last_calls": Measure("code blocks per rollout, end of training", is_share=False),
    "last_tool_use": Measure("wrote code, end of training"),
    "first_faithful": Measure("a crop shows the sign, start of training"),
    "last_faithful": Measure("a crop shows the sign, end of training"),
    "rolled_right": Measure("right, sampled"),
    "rolled_executable": Measure("code ran, sampled"),
    "rolled_positive_negative": Measure("right rollouts with negative advantage"),
    "accepted": Measure("kept of drafted"),
    "tokens_per_row": Measure("tokens per kept row", is_share=False),
}
"""The names are the keys of a result file. ``evaluations.py`` says how each is counted."""
HELD_OUT = "held_out"


@dataclass(frozen=True, slots=True)
class PaperRow:
    """A table or figure of a paper, and what stands there."""

    paper: str
    where: str
    figures: str


@dataclass(frozen=True, slots=True)
class Arm:
    """One model and how it is evaluated. ``asked``: settings of ``darkroom.train.evaluate`` that differ from the
    defaults; None leaves the evaluation out, where all measures are of the training's own rollouts. ``questions``:
    datasets of ``world.ROWS``; the measures of ``held_out_sums``, where it is not the first, are named ``sums_right``
    and so on."""

    name: str
    says: str
    model: Model
    asked: Mapping[str, Any] | None = field(default_factory=dict)
    questions: tuple[str, ...] = (HELD_OUT,)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The paper's claim that ``arm`` has ``expected`` (more or less) of a measure than ``against``."""

    arm: str
    against: str
    measure: str
    expected: Literal["more", "less"] = "more"


@dataclass(frozen=True, slots=True)
class Experiment:
    """``seeds`` are those of the published result; ``note`` is what a reader must know of the miniature."""

    name: str
    title: str
    row: PaperRow
    arms: tuple[Arm, ...]
    comparisons: tuple[Comparison, ...]
    measures: tuple[str, ...]
    seeds: tuple[int, ...]
    note: str = ""

    def __post_init__(self) -> None:
        names = [arm.name for arm in self.arms]
        unknown = {name for one in self.comparisons for name in (one.arm, one.against)} - set(names)
        unmeasured = {*self.measures, *(one.measure for one in self.comparisons)} - MEASURES.keys()
        if unknown or unmeasured or len(set(names)) < len(names):
            raise ValueError(f"{self.name}: arms {names}; unknown: {sorted(unknown | unmeasured)}")

    def rows(self) -> set[str]:
        """The names of all datasets that are trained on or asked."""
        trained = {name for model in self.models() for name in model.rows}
        return trained.union(*(arm.questions for arm in self.arms if arm.asked is not None))

    def models(self) -> Iterator[Model]:
        """Every model that is trained for it, each after the one it starts from."""
        seen: dict[str, Model] = {}
        for arm in self.arms:
            seen |= {model.name: model for model in arm.model.chain()}
        yield from seen.values()
