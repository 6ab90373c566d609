"""Whether a row needs its image, and needs its tools: the question is asked without them.

    scores = await blind_scores(sample, policy, store, k=4)     # RecordedPolicy: every answer is on the ledger
    checks = necessity({sample.sample_id: scores})              # needs_image, needs_tools

A policy answers ``k`` times with a blank image of the same size (what it gets right there, it gets right without
looking) and ``k`` times with the image and no tools. Seeds depend on nothing but the sample, so all rows of a sample
share their answers.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PIL import Image

from pipelines.answers import matches
from pipelines.cases import Case
from pipelines.checks.base import Flaw, MeasuredCheck, Verdict, failed, passed
from pipelines.digest import digest, seed_from
from pipelines.images import ImageStore
from pipelines.messages import Picture, message
from pipelines.policies.base import Completion, Policy, PolicyFault, Turn
from pipelines.prompts import bundled_prompt
from pipelines.records import ImageRef, Sample, Usage
from pipelines.rejects import Reason, RowFault
from pipelines.tasks import Task, question_text

MAX_BLIND = 0.5
"""A row is answerable blind when more than this share of the answers to a blank image is right."""

MAX_WITHOUT_TOOLS = 0.75
"""A row is answerable without tools when more than this share of the answers without them is right."""

_PROMPT = bundled_prompt("necessity")
_GREY = 127
_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class BlindScores:
    """Of ``k`` answers each, how many were right with a blank image and with the image but without tools."""

    k: int
    n_blind: int
    n_without_tools: int
    usage: Usage = Usage()

    @property
    def blind(self) -> float:
        """The share that was right with a blank image."""
        return self.n_blind / self.k

    @property
    def without_tools(self) -> float:
        """The share that was right with the image but without tools."""
        return self.n_without_tools / self.k


async def blind_scores(sample: Sample, policy: Policy, store: ImageStore, *, k: int = 4) -> BlindScores:
    """Asks ``policy`` 2 ``k`` times. An answer that is none counts as wrong.

    Raises ``ValueError`` for ``k`` < 1, ``RowFault``: not_applicable without an image, policy_failed when an answer
    cannot be had.
    """
    if k < 1:
        raise ValueError(f"necessity is measured by at least one answer; found k = {k}")
    if not sample.images:
        raise RowFault(Reason.NOT_APPLICABLE, "the sample has no image that could be blank")
    blank = [_blank(image, store) for image in sample.images]
    blind, seeing = await asyncio.gather(
        _answers(sample, policy, "blind", blank, k), _answers(sample, policy, "without_tools", sample.images, k)
    )
    return BlindScores(
        k=k,
        n_blind=_n_right(blind, sample),
        n_without_tools=_n_right(seeing, sample),
        usage=sum((said.usage for said in (*blind, *seeing)), Usage()),
    )


def necessity(scores: Mapping[str, BlindScores]) -> tuple[MeasuredCheck, MeasuredCheck]:
    """Checks that read the scores of a row's sample: ``needs_image`` and ``needs_tools``; each keeps its own.

    A sample without scores is a fault (``KeyError``): its row is quarantined, not passed.
    """

    def needs_image(case: Case) -> Verdict:
        found = scores[case.sample.sample_id]
        detail = f"{found.n_blind} of {found.k} answers to a blank image are right"
        if found.blind > MAX_BLIND:
            return failed(Flaw.ANSWERABLE_BLIND, detail, score=found.blind)
        return passed(detail, score=found.blind)

    def needs_tools(case: Case) -> Verdict:
        found = scores[case.sample.sample_id]
        detail = f"{found.n_without_tools} of {found.k} answers without tools are right"
        if found.without_tools > MAX_WITHOUT_TOOLS:
            return failed(Flaw.ANSWERABLE_WITHOUT_TOOLS, detail, score=found.without_tools)
        return passed(detail, score=found.without_tools)

    return (
        MeasuredCheck("needs_image", 1, needs_image, "The question cannot be answered with a blank image."),
        MeasuredCheck("needs_tools", 1, needs_tools, "The question cannot be answered without tools."),
    )


def _blank(image: ImageRef, store: ImageStore) -> ImageRef:
    return store.add_pixels(Image.new("L", (image.width, image.height), _GREY), made_by="necessity: blank")


async def _answers(
    sample: Sample, policy: Policy, view: str, images: Sequence[ImageRef], k: int
) -> tuple[Completion, ...]:
    system, user = _PROMPT.render(question=question_text(sample))
    messages = (message("system", system), message("user", *map(Picture, images), user))

    async def one(n: int) -> Completion:
        seed = seed_from("necessity", view, sample.sample_id, n)
        row = digest(["necessity", view, sample.sample_id])
        try:
            return await policy.write(
                Turn(messages, (), seed, Task(row, "necessity", sample, tuple(images), {}, messages, seed))
            )
        except PolicyFault as fault:
            raise RowFault(Reason.POLICY_FAILED, f"necessity, {view}: {fault}") from fault

    return tuple(await asyncio.gather(*map(one, range(k))))


def _n_right(answers: Sequence[Completion], sample: Sample) -> int:
    return sum(matches(_answer(said.text), sample.answer, sample.choices) for said in answers)


def _answer(text: str) -> str:
    """What the last ``<answer>`` holds; without one, all that was said."""
    found = _ANSWER.findall(text)
    return (found[-1] if found else text).strip()
