"""Controls: what becomes of the answer when the pictures that a rollout showed are not what they were.

A rollout is played again on its own turns, which the ledger recalls, up to its first picture. There, and at every later
picture, something else of the same size is shown, and the model goes on from what it sees. A model that looks changes
its answer; one that does not, only decorates it with tools. Nobody of those who report faithfulness has this control.

- ``blank``: a grey picture.
- ``other_region``: another part of the same picture, as far from the crop as there is one.
- ``other_sample``: what a rollout on another question showed.
- ``other_draw``: the same pictures, but what follows is drawn anew. Its share is the noise to compare the others with;
  with temperature 0 there is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from PIL import Image

from pipelines.answers import letter_of, matches
from pipelines.digest import seed_from
from pipelines.execution import Sandboxes
from pipelines.geometry import Box
from pipelines.images import ImageStore
from pipelines.policies import Completion, Identity, Policy, Turn
from pipelines.records import ImageRef, Observation
from pipelines.rollout import Session, rollout
from train.evaluation.intervals import Estimate, wilson
from train.evaluation.pictures import Looker, Seen
from train.evaluation.playing import Contestant, Played, Viewing

Control = Literal["blank", "other_region", "other_sample", "other_draw"]
CONTROLS: tuple[Control, ...] = get_args(Control)
_GREY = (127, 127, 127)


@dataclass(frozen=True, slots=True)
class Controlled:
    """A rollout and what its control answered; ``answer`` None where the control has none."""

    control: Control
    played: Played
    answer: str | None

    @property
    def changed(self) -> bool:
        """Whether there is another answer."""
        return self.answer is not None and not same_answer(self.played, self.answer)


@dataclass(frozen=True, slots=True)
class Effect:
    """What a control came to. ``changed`` is a share of the controls with an answer; so are those of rollouts whose
    answer was right, and wrong. ``n_unanswered`` have none any more."""

    changed: Estimate
    changed_right: Estimate
    changed_wrong: Estimate
    n: int
    n_unanswered: int


class Stage:
    """Plays controls with one contestant; ``pool`` is where pictures of other questions come from."""

    def __init__(
        self, contestant: Contestant, sandboxes: Sandboxes, store: ImageStore, looker: Looker, pool: Sequence[Played]
    ) -> None:
        self._contestant, self._sandboxes, self._store, self._looker = contestant, sandboxes, store, looker
        self._pool = [(one.question.group, seen.image) for one in pool for seen in one.seen]

    async def play(self, one: Played, control: Control) -> Controlled:
        """The control of a rollout that showed at least one picture."""
        first = min(seen.round for seen in one.seen)
        contestant, policy = self._contestant, self._contestant.policy
        if control == "other_draw":
            policy = _Redrawn(policy, first)
        async with self._sandboxes.session(one.images, one.task.sample.videos, seed=one.task.seed) as opened:
            session = Viewing(opened)
            made = await rollout(
                one.task,
                policy=policy,
                protocol=contestant.protocol_of(one.question),
                session=session if control == "other_draw" else _Altered(session, self, one, control),
                max_rounds=contestant.max_rounds,
            )
        return Controlled(control, one, None if made.fault is not None else made.answer)

    async def replaced(self, one: Played, control: Control, shown: ImageRef, code: str) -> ImageRef:
        """What is shown in the place of ``shown``."""
        seen = next((seen for seen in one.seen if seen.image.sha256 == shown.sha256), None)
        if seen is None and control == "other_region":  # the control went another way than the rollout
            seen, *_ = await self._looker.look_at(one.images, code, shown)
        return await asyncio.to_thread(self._drawn, one, control, shown, seen)

    def _drawn(self, one: Played, control: Control, shown: ImageRef, seen: Seen | None) -> ImageRef:
        size = (shown.width, shown.height)
        if control == "other_sample" and (donor := self._donor(one, shown)) is not None:
            pixels = self._store.open(donor).convert("RGB").resize(size)
        elif control != "blank" and seen is not None and seen.change is not None and one.images:
            original = self._store.open(one.images[seen.of]).convert("RGB")
            pixels = original.crop(farthest(seen.change.box, original.width, original.height)).resize(size)
        else:
            pixels = Image.new("RGB", size, _GREY)
        return self._store.add_pixels(pixels, parent=shown.sha256, made_by=f"control: {control}")

    def _donor(self, one: Played, shown: ImageRef) -> ImageRef | None:
        others = [image for group, image in self._pool if group != one.question.group]
        return others[seed_from("control", shown.sha256) % len(others)] if others else None


def farthest(box: Box, width: int, height: int) -> Box:
    """A box of the same size inside ``width`` x ``height`` pixels, with as little of ``box`` in it as can be."""
    wide, high = min(box.width, width), min(box.height, height)
    corners = [(x, y) for x in (0, width - wide) for y in (0, height - high)]
    boxes = [Box(x, y, x + wide, y + high) for x, y in corners]
    return min(boxes, key=lambda found: (found.intersection(box).area, -_distance(found, box)))


def same_answer(one: Played, answer: str) -> bool:
    """Whether two answers to a question say the same, right or wrong."""
    choices, before = one.question.sample.choices, one.rollout.answer
    if not choices:
        return matches(answer, before)
    letters = letter_of(answer, choices), letter_of(before, choices)
    return letters[0] == letters[1] if any(letters) else matches(answer, before)


def effect(controlled: Sequence[Controlled]) -> Effect:
    """What the controls of one kind came to."""
    answered = [one for one in controlled if one.answer is not None]
    right = [one for one in answered if one.played.score.right]
    wrong = [one for one in answered if not one.played.score.right]
    return Effect(
        changed=_changed(answered),
        changed_right=_changed(right),
        changed_wrong=_changed(wrong),
        n=len(controlled),
        n_unanswered=len(controlled) - len(answered),
    )


def eligible(played: Sequence[Played]) -> list[Played]:
    """Rollouts that showed a picture and gave an answer: the others have nothing to be changed."""
    return [one for one in played if one.seen and one.rollout.fault is None]


@dataclass(frozen=True, slots=True)
class _Altered:
    """A session whose pictures are replaced."""

    session: Session
    stage: Stage
    one: Played
    control: Control

    async def run(self, code: str) -> Observation:
        seen = await self.session.run(code)
        images = [await self.stage.replaced(self.one, self.control, image, code) for image in seen.images]
        return replace(seen, images=tuple(images))


@dataclass(frozen=True, slots=True)
class _Redrawn:
    """A policy that draws anew once a picture has been seen."""

    policy: Policy
    first: int

    @property
    def identity(self) -> Identity:
        return self.policy.identity

    @property
    def concurrency(self) -> int:
        return self.policy.concurrency

    async def check(self) -> None:
        await self.policy.check()

    async def write(self, turn: Turn) -> Completion:
        again = len(turn.rounds) > self.first
        return await self.policy.write(replace(turn, seed=seed_from("again", turn.seed)) if again else turn)

    async def close(self) -> None:
        await self.policy.close()


def _changed(answered: Sequence[Controlled]) -> Estimate:
    return wilson(sum(one.changed for one in answered), len(answered))


def _distance(one: Box, other: Box) -> float:
    return abs(one.x1 + one.x2 - other.x1 - other.x2) + abs(one.y1 + one.y2 - other.y1 - other.y2)
