"""Counterfactual controls: does the answer change when the images in a rollout's observations are replaced?

A control replays the rollout's own turns from the ledger up to its first image. That image and all later ones are
replaced by others of the same size, and the model continues from there. A model that looks changes its answer; one
that does not only decorates it with tools. Published faithfulness figures lack this control.

``other_region`` is a part of the same image as far from the crop as possible, ``other_sample`` an image of a rollout on
another question. ``other_draw`` keeps the images and samples later turns again: the noise to compare with.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from PIL import Image

from darkroom.pipelines.generation.rollout import CodeSession, rollout
from darkroom.pipelines.generation.sandbox_sessions import Sandboxes
from darkroom.pipelines.models.policies import Completion, CompletionRequest, Policy
from darkroom.pipelines.records import ImageRef, Observation
from darkroom.pipelines.records.answers import matches
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.train.evaluation.metrics import Estimate, wilson
from darkroom.train.evaluation.observed_images import ImageTracer, ObservedImage
from darkroom.train.evaluation.rollouts import EvaluatedPolicy, ScoredRollout, ViewableSession, names_of

Control = Literal["blank", "other_region", "other_sample", "other_draw"]
CONTROLS: tuple[Control, ...] = get_args(Control)
_GREY = (127, 127, 127)


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """A rollout and the answer of its control; None where the control has no answer."""

    control: Control
    scored: ScoredRollout
    answer: str | None

    @property
    def changed(self) -> bool:
        return self.answer is not None and not same_answer(self.scored, self.answer)


@dataclass(frozen=True, slots=True)
class Effect:
    """Proportions of controls that change the answer: of all with an answer, of right and of wrong rollouts."""

    changed: Estimate
    changed_right: Estimate
    changed_wrong: Estimate
    n: int
    n_unanswered: int


class CounterfactualRunner:
    """Runs controls for one policy; ``pool`` supplies images of other questions."""

    def __init__(
        self, evaluated: EvaluatedPolicy, store: ImageStore, ledger: Ledger, pool: Sequence[ScoredRollout]
    ) -> None:
        self._evaluated, self._store = evaluated, store
        self._sandboxes, self._tracer = Sandboxes(store, ledger), ImageTracer(store, ledger)
        self._pool = [(scored.question.group, observed.image) for scored in pool for observed in scored.seen]

    async def run(self, scored: ScoredRollout, control: Control) -> Counterfactual:
        """Run the control of a rollout with at least one image in its observations."""
        first = min(observed.round for observed in scored.seen)
        evaluated, redraws = self._evaluated, control == "other_draw"
        sample, names = scored.task.sample, names_of(scored.task, evaluated)
        async with self._sandboxes.session(scored.images, sample.videos, seed=scored.task.seed, names=names) as opened:
            session = ViewableSession(opened)
            outcome = await rollout(
                scored.task,
                policy=_ResampledPolicy(evaluated.policy, first) if redraws else evaluated.policy,
                protocol=evaluated.protocol_of(scored.question),
                session=session if redraws else _AlteredSession(session, self, scored, control),
                max_rounds=evaluated.max_rounds,
            )
        return Counterfactual(control, scored, None if outcome.error is not None else outcome.answer)

    async def replaced(self, scored: ScoredRollout, control: Control, image: ImageRef, code: str) -> ImageRef:
        observed = next((observed for observed in scored.seen if observed.image.sha256 == image.sha256), None)
        if observed is None and control == "other_region":  # the control took other steps than the rollout
            observed, *_ = await self._tracer.trace_image(scored.images, code, image)
        return await asyncio.to_thread(self._make, scored, control, image, observed)

    def _make(
        self, scored: ScoredRollout, control: Control, image: ImageRef, observed: ObservedImage | None
    ) -> ImageRef:
        size = (image.width, image.height)
        donors = [donor for group, donor in self._pool if group != scored.question.group]
        if control == "other_sample" and donors:
            donor = donors[seed_from("control", image.sha256) % len(donors)]
            pixels = self._store.open(donor).convert("RGB").resize(size)
        elif control != "blank" and observed is not None and observed.change is not None and scored.images:
            original = self._store.open(scored.images[observed.of]).convert("RGB")
            pixels = original.crop(farthest(observed.change.box, original.width, original.height)).resize(size)
        else:
            pixels = Image.new("RGB", size, _GREY)
        return self._store.add_pixels(pixels, parent=image.sha256, made_by=f"control: {control}")


def farthest(box: Box, width: int, height: int) -> Box:
    """A box of the same size inside ``width`` x ``height`` pixels that overlaps ``box`` least."""
    wide, high = min(box.width, width), min(box.height, height)
    corners = [(x, y) for x in (0, width - wide) for y in (0, height - high)]
    boxes = [Box(x, y, x + wide, y + high) for x, y in corners]

    def nearness(corner: Box) -> tuple[int, int]:
        distance = abs(corner.x1 + corner.x2 - box.x1 - box.x2) + abs(corner.y1 + corner.y2 - box.y1 - box.y2)
        return corner.intersection(box).area, -distance

    return min(boxes, key=nearness)


def same_answer(scored: ScoredRollout, answer: str) -> bool:
    """True if two answers to a question agree, right or wrong."""
    before = scored.rollout.answer
    return matches(answer, before, scored.question.sample.choices) or matches(answer, before)


def effect(controlled: Sequence[Counterfactual]) -> Effect:
    answered = [one_run for one_run in controlled if one_run.answer is not None]
    right = [one_run for one_run in answered if one_run.scored.score.right]
    wrong = [one_run for one_run in answered if not one_run.scored.score.right]
    counts = [(sum(one_run.changed for one_run in runs), len(runs)) for runs in (answered, right, wrong)]
    everything, of_right, of_wrong = (wilson(*count) for count in counts)
    return Effect(everything, of_right, of_wrong, len(controlled), len(controlled) - len(answered))


def eligible(rollouts: Sequence[ScoredRollout]) -> list[ScoredRollout]:
    """Select the rollouts with an observed image and an answer; the others have nothing to change."""
    return [scored for scored in rollouts if scored.seen and scored.rollout.error is None]


@dataclass(frozen=True, slots=True)
class _AlteredSession:
    session: CodeSession
    stage: CounterfactualRunner
    scored: ScoredRollout
    control: Control

    async def run(self, code: str) -> Observation:
        observation = await self.session.run(code)
        images = [await self.stage.replaced(self.scored, self.control, image, code) for image in observation.images]
        return replace(observation, images=tuple(images))


@dataclass(frozen=True, slots=True)
class _ResampledPolicy:
    """A policy that samples with new seeds after the first observed image."""

    policy: Policy
    first: int

    async def write(self, turn: CompletionRequest) -> Completion:
        again = len(turn.rounds) > self.first
        return await self.policy.write(replace(turn, seed=seed_from("again", turn.seed)) if again else turn)
