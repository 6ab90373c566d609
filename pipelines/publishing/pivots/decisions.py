"""The decisions of trajectories, and whether they reach their goal, as measured on what their actions showed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from darkroom.pipelines.generation.stage import row_error
from darkroom.pipelines.publishing.audit.known_truth import KnownTruth
from darkroom.pipelines.records import Check, Sample, Trajectory, to_row
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.pivots import Action, Goal, Pivot, RejectedAction
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.step_rewards import code_goal, judge_action


@dataclass(frozen=True, slots=True)
class TrajectoryStep:
    """What a trajectory does after ``step`` of its rounds: the next one, or its answer."""

    trajectory: Trajectory
    step: int

    @property
    def is_answer(self) -> bool:
        return self.step == len(self.trajectory.rounds)

    @property
    def action(self) -> Action:
        row = self.trajectory
        if self.is_answer:
            return Action(row.final_thought, "", row.answer)
        return Action(row.rounds[self.step].thought, row.rounds[self.step].code, "")

    @property
    def taken(self) -> Trajectory:
        """The trajectory up to the action, and what it led to."""
        if self.is_answer:
            return self.trajectory
        return replace(self.trajectory, rounds=self.trajectory.rounds[: self.step + 1], final_thought="", answer="")

    @property
    def prefix(self) -> str:
        """Digest of all that a policy sees before it."""
        row = self.trajectory
        images = [image.sha256 for image in row.images]
        return digest([row.sample_id, row.protocol, row.mode, images, to_row(row.rounds[: self.step])])


def decisions(trajectory: Trajectory) -> Iterator[TrajectoryStep]:
    return (TrajectoryStep(trajectory, step) for step in range(len(trajectory.rounds) + 1))


@dataclass(frozen=True, slots=True)
class NoPivot:
    """Why a decision is no pivot."""

    error: RowError
    check: str = ""


@dataclass(frozen=True, slots=True)
class Measure:
    """A decision and the others after its prefix as a pivot."""

    truth: KnownTruth

    def __call__(self, row: tuple[TrajectoryStep, Sequence[TrajectoryStep]]) -> tuple[TrajectoryStep, Pivot | NoPivot]:
        decision, others = row
        try:
            return decision, self._pivot(decision, others)
        except Exception as error:  # noqa: BLE001  # classified by row_error
            return decision, NoPivot(row_error(error))

    def _pivot(self, decision: TrajectoryStep, others: Sequence[TrajectoryStep]) -> Pivot | NoPivot:
        sample, goal = self.truth.sample(decision.trajectory.sample_id), self._goal(decision)
        if sample is None or goal is None:
            return NoPivot(RowError(Reason.NOT_APPLICABLE, "nothing that is known decides its goal"))
        check = self._judged(decision, goal)
        if not check.passed:
            return NoPivot(RowError(Reason.CHECK_FAILED, check.detail), goal)
        flaws = ((step, self._flaw(step, decision, goal)) for step in others)
        rejected = tuple(_rejected(step, flaw) for step, flaw in flaws if flaw)
        return _pivot(decision, goal, check.detail, sample, self._hint(decision), rejected)

    def _goal(self, decision: TrajectoryStep) -> Goal | None:
        row = decision.trajectory
        sample = self.truth.sample(row.sample_id)
        if sample is None or sample.videos or not row.images:
            return None
        return "answer" if decision.is_answer else code_goal(sample, row.images, self._hint(decision))

    def _flaw(self, step: TrajectoryStep, decision: TrajectoryStep, goal: Goal) -> str:
        """Why another action does not reach the goal; empty where it does, reaches one of its own, or none is known."""
        check, own = judge_action(self._case(step, decision), goal, is_answer=step.is_answer), self._goal(step)
        is_reached = own is None or (own != goal and self._judged(step, own).passed)
        return "" if check.passed or is_reached else check.reason

    def _judged(self, decision: TrajectoryStep, goal: Goal) -> Check:
        return judge_action(self._case(decision, decision), goal, is_answer=decision.is_answer)

    def _case(self, decision: TrajectoryStep, hinted: TrajectoryStep) -> Case:
        """What a decision came to, with what is known of the images of ``hinted``, which are the same."""
        sample = self.truth.sample(decision.trajectory.sample_id)
        assert sample is not None  # a decision without one has no goal
        return Case(sample, decision.taken, self._hint(hinted), self.truth.workspace.images)

    def _hint(self, decision: TrajectoryStep) -> Mapping[str, Any]:
        row = decision.trajectory
        return self.truth.hint(row.family, row.trajectory_id) or {}


def _pivot(
    decision: TrajectoryStep,
    goal: Goal,
    evidence: str,
    sample: Sample,
    hint: Mapping[str, Any],
    rejected: tuple[RejectedAction, ...],
) -> Pivot:
    row = decision.trajectory
    return Pivot(
        pivot_id=digest([decision.prefix, goal]),
        trajectory_id=row.trajectory_id,
        sample_id=row.sample_id,
        family=row.family,
        protocol=row.protocol,
        mode=row.mode,
        images=row.images,
        rounds=row.rounds[: decision.step],
        action=decision.action,
        goal=goal,
        evidence=evidence,
        boxes=sample.truth.boxes,
        angle=float(hint["angle"]) if "angle" in hint else None,
        reference=None if row.images[:1] == sample.images[:1] else sample.images[0],
        gold=sample.answer,
        rejected=rejected,
        provenance=row.provenance,
    )


def _rejected(step: TrajectoryStep, flaw: str) -> RejectedAction:
    return RejectedAction(step.action, flaw, step.trajectory.family, step.trajectory.trajectory_id)
