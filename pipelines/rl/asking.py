"""How a sample is put to a policy in an RL stage, and how an answer to it is graded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pipelines.answers import final_answer
from pipelines.digest import digest, seed_from
from pipelines.grading import grade
from pipelines.grading.judged import grade_judged
from pipelines.messages import Picture, message
from pipelines.policies.base import Completion, Policy, Turn
from pipelines.prompts import bundled_prompt
from pipelines.records import Grader, Sample, Usage
from pipelines.tasks import Task, image_sizes, question_text
from pipelines.voting import Ballot

_MAX_SAID = 200


def turn_of(sample: Sample, stage: str, *, schema: Mapping[str, Any] | None = None) -> Turn:
    """The sample in the words of the prompt ``stage``; the seed is the first answer's."""
    prompt = bundled_prompt(stage)
    slots = {"question": question_text(sample), "sizes": image_sizes(sample.images)}
    system, user = prompt.render(**{name: slots[name] for name in prompt.slots})
    messages = (message("system", system), message("user", *map(Picture, sample.images), user))
    seed = seed_of(stage, sample.sample_id)
    task = Task(digest([stage, sample.sample_id]), stage, sample, sample.images, {}, messages, seed)
    return Turn(messages, (), seed, task, schema=schema)


def seed_of(stage: str, sample_id: str) -> int:
    """The seed of the first answer; those of the others follow it."""
    return seed_from("rl", stage, sample_id)


def graded(sample: Sample, grader: Grader, judge: Policy | None) -> Callable[[Completion], Awaitable[Ballot]]:
    """Reads an answer as a ballot: yes where it is the sample's, invalid where it is none."""

    async def read(said: Completion) -> Ballot:
        given = final_answer(said.text)
        if given is None or not said.finished:
            return Ballot(None, said.text[-_MAX_SAID:])
        return await ballot_of(given, sample, grader, judge)

    return read


async def ballot_of(given: str, sample: Sample, grader: Grader, judge: Policy | None) -> Ballot:
    """Whether ``given`` is the sample's answer, by its grader; free text by ``judge``, without one by its words."""
    said = given[:_MAX_SAID]
    if grader.kind == "judged" and judge is not None:
        judged = await grade_judged(given, sample, judge)
        return Ballot(judged.grade.right, said, judged.votes.usage if judged.votes else Usage())
    return Ballot((await asyncio.to_thread(grade, given, sample, grader)).right, said)
