"""Whether a row needs its image, and needs its tools: the question is asked without them.

    scores = await blind_scores(case, policy, k=4)     # RecordedPolicy: every answer is on the ledger
    checks = verdicts(scores, Necessity())             # needs_image, needs_tools

A policy answers ``k`` times with a blank image of the same size (what it gets right there, it gets right without
looking) and ``k`` times with the image that the row's policy saw and no tools. A question without an image is asked
without tools only; of a video nothing can be seen without tools, so it is asked blind only. Seeds depend on nothing but
the sample, so all rows of a sample that were shown the same share their answers.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from PIL import Image

from pipelines.models.messages import opening_messages
from pipelines.models.policies.base import Completion, CompletionRequest, Policy
from pipelines.models.prompts import bundled_prompt
from pipelines.models.self_consistency import Vote, collect_votes
from pipelines.models.tasks import Task, question_text
from pipelines.records import Check, ImageRef, Sample, Usage, Votes
from pipelines.records.answers import final_answer, matches
from pipelines.records.digest import digest, seed_from
from pipelines.storage.images import ImageStore
from pipelines.verification.case import Case
from pipelines.verification.checks.base import CheckResult, Flaw, decided, record

View = Literal["blind", "without_tools"]
VIEWS: tuple[View, ...] = ("blind", "without_tools")
NEEDS_IMAGE, NEEDS_TOOLS = "needs_image", "needs_tools"
VERSION = 1
DESCRIPTIONS = {
    NEEDS_IMAGE: "The question is not answered with a blank image; the score is the share of answers that were right.",
    NEEDS_TOOLS: "The question is not answered without tools; the score is the share of answers that were right.",
}

_PROMPT = bundled_prompt("necessity")
_GREY = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class Necessity:
    """How it is measured, and what is too much: a row is rejected when a larger share of ``k`` answers is right.

    A bound of None rejects nothing: the share is measured and stored.
    """

    k: int = 4
    max_blind: float | None = 0.5
    max_without_tools: float | None = 0.75

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"necessity is measured by at least one answer; found k = {self.k}")


@dataclass(frozen=True, slots=True)
class BlindScores:
    """Of ``k`` answers each, how many were right blind and without tools; None where that was not asked."""

    k: int
    n_blind: int | None
    n_without_tools: int | None
    usage: Usage = Usage()


async def blind_scores(case: Case, policy: Policy, *, k: int = 4) -> BlindScores:
    """Asks ``policy`` up to 2 ``k`` times. Unparseable answers count as wrong.

    Raises ``RowError`` (policy_failed) when an answer cannot be had.
    """
    sample, originals = case.sample, case.trajectory.images
    images: dict[View, Sequence[ImageRef]] = {}
    if originals or sample.videos:
        images["blind"] = [_blank(image, case.store) for image in originals]
    if originals or not sample.videos:
        images["without_tools"] = originals
    polled = await asyncio.gather(*(_votes(sample, policy, view, images[view], k) for view in images))
    votes = dict(zip(images, polled, strict=True))
    n_right = {view: poll_votes.n_yes for view, poll_votes in votes.items()}
    usage = sum((poll_votes.usage for poll_votes in polled), Usage())
    return BlindScores(k, n_right.get("blind"), n_right.get("without_tools"), usage)


def necessity_checks(scores: BlindScores, limits: Necessity) -> tuple[Check, ...]:
    """The checks ``needs_image`` and ``needs_tools``, as far as they were measured; each keeps its share and count."""
    measured = [
        (NEEDS_IMAGE, scores.n_blind, limits.max_blind, Flaw.ANSWERABLE_BLIND, "to a blank image"),
        (NEEDS_TOOLS, scores.n_without_tools, limits.max_without_tools, Flaw.ANSWERABLE_WITHOUT_TOOLS, "without tools"),
    ]
    return tuple(
        record(_verdict(n, scores.k, most, flaw, how), name=name, version=VERSION)
        for name, n, most, flaw, how in measured
        if n is not None
    )


def _verdict(n_right: int, k: int, most: float | None, flaw: Flaw, how: str) -> CheckResult:
    share, detail = n_right / k, f"{n_right} of {k} answers {how} are right"
    return decided(most is None or share <= most, flaw, detail, score=share, n_trials=k)


def answer_seed(view: View, sample_id: str) -> int:
    """The seed of the first answer; those of the others follow it."""
    return seed_from("necessity", view, sample_id)


def _blank(image: ImageRef, store: ImageStore) -> ImageRef:
    return store.add_pixels(Image.new("L", (image.width, image.height), _GREY), made_by="necessity: blank")


async def _votes(sample: Sample, policy: Policy, view: View, images: Sequence[ImageRef], k: int) -> Votes:
    """A ballot says yes where the answer is right."""
    system, user = _PROMPT.render(question=question_text(sample))
    messages = opening_messages(system, images, user)
    row, seed = digest(["necessity", view, sample.sample_id]), answer_seed(view, sample.sample_id)
    task = Task(row, "necessity", sample, tuple(images), {}, messages, seed, stage="unaided")
    turn = CompletionRequest(messages, (), seed, task)

    def right(completion: Completion) -> Vote:
        return Vote(matches(final_answer(completion.text) or completion.text, sample.answer, sample.choices))

    return await collect_votes(policy, turn, right, n_votes=k, what=f"necessity, {view}")
