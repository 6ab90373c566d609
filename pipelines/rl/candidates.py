"""Samples that may become RL prompts: their answers can be graded, and question and image belong together.

Free checks come first: a grader that cannot tell the sample's answer from corrupted ones, a near-duplicate, a row of a
benchmark. Then a judge votes: does the question belong to these images (Thyme, §4.1), and can it be answered from them
without looking facts up (CodeV, §5.1, which takes OK-VQA out)? All RL stages put their samples to policies, and grade
answers, as this module does. CodeV (§4.3) keeps the dense tool reward for visual search, without a rule for which tasks
these are; ``asks_visual_search`` is ours.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from darkroom.pipelines.generation.drafting import CONVERSATION_CODE
from darkroom.pipelines.generation.stage import Rejection, Shard, Stage
from darkroom.pipelines.models.messages import opening_messages
from darkroom.pipelines.models.policies.policy import Completion, CompletionRequest, Policy
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.self_consistency import Vote, collect_votes
from darkroom.pipelines.models.tasks import Task, image_sizes, question_text
from darkroom.pipelines.records import Grader, RLCandidate, Sample, Usage
from darkroom.pipelines.records.answers import final_answer
from darkroom.pipelines.records.digest import digest, seed_from
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.selection.screening import Screening
from darkroom.pipelines.verification.checks.check import Flaw, by_votes, record
from darkroom.pipelines.verification.grading import grade, grader_of, require_discrimination
from darkroom.pipelines.verification.grading.judged import grade_judged
from darkroom.pipelines.verification.judges.judge import SCHEMA, yes_or_no
from darkroom.pipelines.vision.visibility import SMALL_SHARE

GRADING_CODE = (
    *CONVERSATION_CODE,
    __name__,
    "darkroom.pipelines.verification.grading",
    "darkroom.pipelines.verification.judges",
)
"""What decides how an answer is asked for and graded."""
_MAX_SAID = 200


def turn_of(sample: Sample, stage: str, *, schema: Mapping[str, Any] | None = None) -> CompletionRequest:
    """The sample in the words of the prompt ``stage``; the seed is the first answer's."""
    prompt = bundled_prompt(stage)
    slots = {"question": question_text(sample), "sizes": image_sizes(sample.images)}
    system, user = prompt.render(**{name: slots[name] for name in prompt.slots})
    messages = opening_messages(system, sample.images, user, question=question_text(sample))
    seed = seed_of(stage, sample.sample_id)
    task = Task(digest([stage, sample.sample_id]), stage, sample, sample.images, hint={}, opening=messages, seed=seed)
    return CompletionRequest(messages, (), seed, task, schema=schema)


def seed_of(stage: str, sample_id: str) -> int:
    """The seed of the first answer; those of the others follow it."""
    return seed_from("rl", stage, sample_id)


def graded(sample: Sample, grader: Grader, judge: Policy | None) -> Callable[[Completion], Awaitable[Vote]]:
    """Reads an answer as a ballot: yes where it is the sample's, invalid where it is none."""

    async def read(completion: Completion) -> Vote:
        if (answer := final_answer(completion.text)) is None or not completion.finished:
            return Vote(None, completion.text[-_MAX_SAID:])
        return await ballot_of(answer, sample, grader, judge)

    return read


async def ballot_of(answer: str, sample: Sample, grader: Grader, judge: Policy | None) -> Vote:
    """True if ``answer`` is the sample's answer, by its grader; free text by ``judge``, without one by its words."""
    excerpt = answer[:_MAX_SAID]
    if grader.kind == "judged" and judge is not None:
        judged = await grade_judged(answer, sample, judge)
        return Vote(judged.grade.right, excerpt, judged.votes.usage if judged.votes else Usage())
    return Vote((await asyncio.to_thread(grade, answer, sample, grader)).right, excerpt)


ASSET = "rl_candidates"
BELONGS_TOGETHER, SELF_CONTAINED = "belongs_together", "self_contained"
VERSION = 1
_FLAWS = {BELONGS_TOGETHER: Flaw.MISMATCHED, SELF_CONTAINED: Flaw.NEEDS_KNOWLEDGE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates(Stage[Sample, Sample, RLCandidate]):
    """The selection, with the judge whose ``n_votes`` decide; a majority of yes lets a sample pass."""

    judge: Policy | None
    n_votes: int = 1
    screening: Screening | None = None
    errors: Callable[[], Mapping[str, RowError]] = dict
    """What the screening finds of this shard's samples; asked only where the shard is worked on."""

    asset: ClassVar[str] = ASSET
    kind: ClassVar[type[RLCandidate]] = RLCandidate
    code: ClassVar[Sequence[str]] = (
        *GRADING_CODE,
        __name__,
        "darkroom.pipelines.selection",
        "darkroom.pipelines.verification.checks.check",
        "darkroom.pipelines.vision",
    )
    roles: ClassVar[Sequence[str]] = ("judge",)

    @property
    def settings(self) -> Mapping[str, Any]:
        benchmarks = "" if self.screening is None else self.screening.fingerprint
        return {"n_votes": self.n_votes, "version": VERSION, "benchmarks": benchmarks}

    def rows(self, shard: Shard) -> Sequence[tuple[Sample, Sample]]:
        return [(sample, sample) for sample in shard.samples().values()]

    async def measure(self, sample: Sample, row: Sample) -> RLCandidate | Rejection:
        """The grader, then the votes, as far as none says no."""
        if (error := self.errors().get(sample.sample_id)) is not None:
            raise error
        grader = grader_of(sample)
        await asyncio.to_thread(require_discrimination, sample, grader)
        candidate = RLCandidate(sample.sample_id, grader, (), Usage())
        # a judge is shown images: of a video it could say nothing, and a text is about nothing else
        if self.judge is None or sample.videos or not sample.images:
            return candidate
        for name in (BELONGS_TOGETHER, SELF_CONTAINED):
            turn = turn_of(sample, name, schema=SCHEMA)
            votes = await collect_votes(self.judge, turn, yes_or_no, n_votes=self.n_votes, what=name)
            check = record(by_votes(votes, _FLAWS[name]), name=name, version=VERSION)
            candidate = replace(candidate, checks=(*candidate.checks, check), usage=candidate.usage + votes.usage)
            if not check.passed:
                return Rejection(RowError(Reason.CHECK_FAILED, check.detail), candidate, check.name)
        return candidate


def asks_visual_search(sample: Sample, stated: bool | None = None) -> bool | None:
    """By the known places of its targets, else as its source states; False without an image, None where unknown."""
    if not sample.images:
        return False
    areas = [image.width * image.height for image in sample.images]
    shares = [target.box.area / areas[target.image] for target in sample.truth.boxes if target.image < len(areas)]
    return min(shares) <= SMALL_SHARE if shares else stated
