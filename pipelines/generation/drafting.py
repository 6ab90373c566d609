"""Drafts: a sample is prepared, planned where its recipe has a plan, and the opening turn of its rollout written."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from darkroom import sandbox
from darkroom.pipelines.generation.recipes import FACTS_PROMPT, SLOT, Recipe, facts_of_hint
from darkroom.pipelines.generation.rollout import parse_turn, write_turn
from darkroom.pipelines.generation.stage import SAMPLES, Rejection, Shard, Stage, row_error
from darkroom.pipelines.models.messages import Message, opening_messages
from darkroom.pipelines.models.policies import Completion, CompletionRequest, Policy
from darkroom.pipelines.models.policies.recorded import RecordedPolicy
from darkroom.pipelines.models.prompts import Prompt, earlier_versions
from darkroom.pipelines.models.protocols.protocol import render
from darkroom.pipelines.models.tasks import PreparedSample, Task, image_sizes, question_text, video_info
from darkroom.pipelines.records import Draft, Provenance, Sample, Usage, to_row
from darkroom.pipelines.records.digest import digest, seed_from
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.selection.sampling import Candidate, difficulty, ordered
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.stage_runs import code_version
from darkroom.pipelines.vision.visibility import visibility_as_given, visibility_hint

R = TypeVar("R")
T = TypeVar("T")
CONVERSATION_CODE = tuple(
    f"darkroom.pipelines.models.{name}"
    for name in ("messages", "parsing", "policies", "prompts", "protocols", "self_consistency", "tasks")
)
"""What decides a conversation with a policy."""
DRAFT_CODE = (
    *CONVERSATION_CODE,
    __name__,
    "darkroom.pipelines.generation.applicability",
    "darkroom.pipelines.generation.operation_planning",
    "darkroom.pipelines.generation.recipes.__init__",
    "darkroom.pipelines.generation.rollout",
    "darkroom.pipelines.selection.sampling",
    "darkroom.pipelines.verification.grading",
    "darkroom.pipelines.vision",
)
"""What recipes prepare, plan and read with; ``Recipe.digest`` has the recipe's own file and prompts."""


@dataclass(slots=True)
class UsageMeter:
    """Cost of a row and what was written for it so far; a reject keeps both."""

    usage: Usage = Usage()
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeStage(Stage[Sample, T, R]):
    """A stage of a family: ``<family>/<table>``, made from the samples and the family's tables ``above``."""

    recipe: Recipe
    table: ClassVar[str]
    above: ClassVar[Sequence[str]] = ()

    @property
    def family(self) -> str:
        return self.recipe.family

    @property
    def asset(self) -> str:
        return f"{self.family}/{self.table}"

    @property
    def reads(self) -> Sequence[str]:
        return (*SAMPLES, *(f"{self.family}/{table}" for table in self.above))

    @property
    def notes(self) -> Mapping[str, Any]:
        return {}  # provenance stands in every row

    def paid_before(self, row: T) -> Usage:
        paid: Usage = getattr(row, "usage", Usage())
        return paid


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafts(RecipeStage[Sample, Draft]):
    """``writer`` writes the trajectories; ``planner`` the plans, where the recipe has one. Where ``n_most`` drafts are
    enough, only the first of ``pipelines/selection/sampling.py``'s order are made."""

    store: ImageStore
    writer: Policy
    planner: Policy | None = None
    n_most: int | None = None

    table: ClassVar[str] = "drafts"
    kind: ClassVar[type[Draft]] = Draft
    code: ClassVar[Sequence[str]] = DRAFT_CODE
    roles: ClassVar[Sequence[str]] = ("writer", "planner")

    @property
    def settings(self) -> Mapping[str, Any]:
        options = {"options": self.recipe.options()} if self.recipe.options else {}
        return {"recipe": self.recipe.digest, "sandbox": sandbox.sandbox_digest(), "n_most": self.n_most, **options}

    def rows(self, shard: Shard) -> Sequence[tuple[Sample, Sample]]:
        return [(sample, sample) for sample in shard.samples().values()]

    def order(self, rows: Sequence[tuple[Sample, Sample]]) -> Sequence[int]:
        """Balanced over category and difficulty where not all are drafted."""
        if self.n_most is None:
            return range(len(rows))
        places = {sample.sample_id: place for place, (sample, _) in enumerate(rows)}
        candidates = [Candidate(sample.sample_id, sample.category, difficulty(sample)) for sample, _ in rows]
        return [places[sample_id] for sample_id in ordered(candidates)]

    async def measure(self, _origin: Sample, row: Sample) -> Draft | Rejection:
        """The opening turn; a reject keeps what was paid and written."""
        spent = UsageMeter()
        try:
            return await self._draft(row, spent)
        except Exception as error:  # noqa: BLE001  # classified by row_error
            return Rejection(row_error(error), {**to_row(row), "text": spent.text, "usage": to_row(spent.usage)})

    async def _draft(self, sample: Sample, spent: UsageMeter) -> Draft:
        # in threads: what turns, encodes and measures images would keep every other row waiting
        prepared = await asyncio.to_thread(self.recipe.prepared, sample, self.store)
        visibility = await asyncio.to_thread(visibility_hint, sample, self.store)
        plan = await self._plan(sample, prepared, visibility, spent)
        prompt, task = await self._task(sample, prepared, {**prepared.hint, **visibility, **plan})
        completion = await _written(self.writer, task, self.recipe.protocol.stop, spent)
        turn = parse_turn(completion, self.recipe.protocol)
        text = render(self.recipe.protocol, turn, first=True) if completion.reasoning else completion.text
        names, hint = (task.trajectory_id, sample.sample_id, task.family), json.dumps(dict(task.hint), sort_keys=True)
        made_by = provenance(self.writer, prompt.digest, seed=task.seed)
        return Draft(*names, task.images, hint, text, spent.usage, made_by, task.mode)

    async def _task(self, sample: Sample, prepared: PreparedSample, hint: Mapping[str, Any]) -> tuple[Prompt, Task]:
        """The rollout to be made; with an earlier version of the prompt where the ledger has what was written to it."""
        recipe, writer = self.recipe, self.writer
        if isinstance(writer, RecordedPolicy):
            before = {name: fact for name, fact in hint.items() if not name.startswith("told_")}
            for prompt in earlier_versions(recipe.prompt):
                task = task_of(recipe, sample, replace(prepared, hint=before), writer, prompt=prompt)
                if await writer.has_written(_request(task, recipe.protocol.stop)):
                    return prompt, task
        if SLOT in recipe.prompt.slots and prepared.images != sample.images:
            visibility = visibility_as_given(sample, prepared.images, prepared.hint, self.store)
            hint = {**hint, "visibility_as_given": visibility.as_json()}
        return recipe.prompt, task_of(recipe, sample, replace(prepared, hint=hint), writer, prompt=recipe.prompt)

    async def _plan(
        self, sample: Sample, prepared: PreparedSample, visibility: Mapping[str, Any], spent: UsageMeter
    ) -> Mapping[str, Any]:
        if (plan := self.recipe.plan) is None:
            return {}
        question = question_text(sample)
        system, user = plan.prompt.render(question=question, sizes=image_sizes(prepared.images))
        opening = opening_messages(system, prepared.images, user, question=question)
        row, name = digest([sample.sample_id, plan.prompt.digest]), plan.prompt.name
        seed = seed_from(name, sample.sample_id)
        task = Task(row, name, sample, prepared.images, visibility, opening, seed, stage="plan")
        completion = await _written(self.planner or self.writer, task, (), spent, schema=plan.schema)
        if not completion.finished:
            raise RowError(Reason.TRUNCATED_TURN, "the token limit cut the plan off")
        return plan.read(completion.text, sample)


async def _written(
    policy: Policy, task: Task, stop: tuple[str, ...], spent: UsageMeter, *, schema: Mapping[str, Any] | None = None
) -> Completion:
    completion = await write_turn(policy, _request(task, stop, schema))
    spent.usage += completion.usage
    spent.text = completion.text if completion.text.strip() else completion.reasoning
    return completion


def _request(task: Task, stop: tuple[str, ...], schema: Mapping[str, Any] | None = None) -> CompletionRequest:
    return CompletionRequest(task.opening, stop, seed_from(task.seed, 0), task, schema=schema)


def task_of(recipe: Recipe, sample: Sample, prepared: PreparedSample, writer: Policy, *, prompt: Prompt) -> Task:
    """The rollout of a prepared sample; the same sample, ``prompt`` and policy give the same task."""
    seed = seed_from(recipe.family, sample.sample_id)
    others = [recipe.plan.prompt.digest] if recipe.plan else []
    others += [FACTS_PROMPT.digest] if SLOT in prompt.slots else []
    determinants = [sample.sample_id, recipe.family, writer.identity.as_json(), prompt.digest, seed, *others]
    row, opening = digest(determinants), opening_of(recipe, sample, prepared, prompt)
    return Task(row, recipe.family, sample, prepared.images, prepared.hint, opening, seed, prepared.mode)


def opening_of(recipe: Recipe, sample: Sample, prepared: PreparedSample, prompt: Prompt) -> tuple[Message, ...]:
    """The messages before the first turn: ``prompt`` about the sample, and its images."""
    question, images = question_text(sample), prepared.images
    if not recipe.has_hints:
        return recipe.protocol.opening(question, images, sample.videos, mode=prepared.mode)
    slots = {"question": question, "sizes": image_sizes(images), **prepared.hint}
    slots |= {"videos": video_info(sample.videos), SLOT: facts_of_hint(prepared.hint)}
    system, user = prompt.render(**{name: slots[name] for name in prompt.slots & slots.keys()})
    return opening_messages(system, images, user, question=question)


def provenance(writer: Policy, prompt_digest: str, *, seed: int) -> Provenance:
    """All that determines what ``writer`` makes of a sample."""
    identity = writer.identity.as_json()
    identity["sampling"] = json.dumps(identity["sampling"], sort_keys=True)
    code = {"sandbox_digest": sandbox.sandbox_digest(), "code_version": code_version()}
    return Provenance(**identity, **code, prompt_digest=prompt_digest, seed=seed)
