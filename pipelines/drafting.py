"""Drafting: a sample is prepared, planned where its recipe has a plan, and the opening turn of its rollout written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sandbox
from pipelines.digest import digest, seed_from
from pipelines.images import ImageStore
from pipelines.messages import Message, Picture, message
from pipelines.policies import Completion, Policy, Turn
from pipelines.recipes.base import Plan, Recipe
from pipelines.records import Draft, ImageRef, Provenance, Sample, Usage
from pipelines.rollout import parse_turn, write_turn
from pipelines.stages import code_version
from pipelines.tasks import Prepared, Task, image_sizes, question_text, video_info


class Spent:
    """What a row has been paid for and has shown so far; a reject keeps it."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.text = ""


@dataclass(frozen=True, slots=True)
class Drafter:
    """``writer`` writes the trajectories; ``planner`` the plans, where the recipe has one."""

    recipe: Recipe
    store: ImageStore
    writer: Policy
    planner: Policy | None = None

    async def draft(self, sample: Sample, spent: Spent) -> Draft:
        """The opening turn. Raises what the recipe, the policy or the protocol raises; ``spent`` is kept up to date."""
        prepared = self.recipe.prepare(sample, self.store)
        plan = await self._plan(sample, prepared, spent)
        task = task_of(self.recipe, sample, prepared.images, {**prepared.hint, **plan}, prepared.mode, self.writer)
        completion = await self._written(self.writer, task, self.recipe.protocol.stop, spent)
        parse_turn(completion, self.recipe.protocol)
        return Draft(
            trajectory_id=task.trajectory_id,
            sample_id=sample.sample_id,
            family=self.recipe.family,
            images=task.images,
            hint=json.dumps(dict(task.hint), sort_keys=True),
            text=completion.text,
            usage=spent.usage,
            provenance=provenance(self.recipe, self.writer, seed=task.seed),
            mode=task.mode,
        )

    async def _plan(self, sample: Sample, prepared: Prepared, spent: Spent) -> Mapping[str, Any]:
        plan = self.recipe.plan
        if plan is None:
            return {}
        policy = self.planner or self.writer
        task = _plan_task(plan, sample, prepared.images)
        completion = await self._written(policy, task, (), spent, schema=plan.schema)
        return plan.read(completion.text, sample)

    async def _written(
        self,
        policy: Policy,
        task: Task,
        stop: tuple[str, ...],
        spent: Spent,
        *,
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        turn = Turn(task.opening, stop, seed_from(task.seed, 0), task, schema=schema)
        completion = await write_turn(policy, turn)
        spent.usage += completion.usage
        spent.text = completion.text
        return completion


def task_of(
    recipe: Recipe, sample: Sample, images: Sequence[ImageRef], hint: Mapping[str, Any], mode: str, writer: Policy
) -> Task:
    """The rollout to be made of a prepared sample; the same sample and policy give the same task."""
    seed = seed_from(recipe.family, sample.sample_id)
    plan = [recipe.plan.prompt.digest] if recipe.plan else []
    determinants = [sample.sample_id, recipe.family, writer.identity.as_json(), recipe.prompt.digest, seed, *plan]
    return Task(
        trajectory_id=digest(determinants),
        family=recipe.family,
        sample=sample,
        images=tuple(images),
        hint=hint,
        opening=_opening(recipe, sample, tuple(images), hint),
        seed=seed,
        mode=mode,
    )


def _opening(
    recipe: Recipe, sample: Sample, images: tuple[ImageRef, ...], hint: Mapping[str, Any]
) -> tuple[Message, ...]:
    slots = {"question": question_text(sample), "sizes": image_sizes(images), **hint}
    slots["videos"] = video_info(sample.videos)
    return _messages(
        images, *recipe.prompt.render(**{name: slots[name] for name in recipe.prompt.slots & slots.keys()})
    )


def _plan_task(plan: Plan, sample: Sample, images: tuple[ImageRef, ...]) -> Task:
    system, user = plan.prompt.render(question=question_text(sample), sizes=image_sizes(images))
    return Task(
        trajectory_id=digest([sample.sample_id, plan.prompt.digest]),
        family=plan.prompt.name,
        sample=sample,
        images=images,
        hint={},
        opening=_messages(images, system, user),
        seed=seed_from(plan.prompt.name, sample.sample_id),
        stage="plan",
    )


def _messages(images: tuple[ImageRef, ...], system: str, user: str) -> tuple[Message, ...]:
    return (message("system", system), message("user", *map(Picture, images), user))


def provenance(recipe: Recipe, writer: Policy, *, seed: int) -> Provenance:
    """All that determines what ``writer`` makes of a recipe's sample."""
    identity = writer.identity
    return Provenance(
        policy=identity.policy,
        model=identity.model,
        revision=identity.revision,
        sampling=json.dumps(dict(identity.sampling), sort_keys=True),
        prompt_digest=recipe.prompt.digest,
        sandbox_digest=sandbox.sandbox_digest(),
        seed=seed,
        code_version=code_version(),
    )
