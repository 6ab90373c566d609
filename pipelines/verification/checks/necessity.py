"""Need of a row for its image and its tools, measured by asking the question without them.

    scores = await blind_scores(case, policy, Necessity())     # RecordedPolicy: every answer is on the ledger
    checks = necessity_checks(scores, Necessity())             # needs_image, needs_tools

A policy answers ``k`` times with a blank image of the same size (what it gets right there, it gets right without
looking) and ``k`` times with the image that the row's policy saw and no tools. Where ``k`` blind answers leave it open
whether the image is needed, a sequential test asks for more (``pipelines/verification/proportion.py``). A question
without an image is asked without tools only; of a video nothing can be seen without tools, so it is asked blind only.
Seeds depend on nothing but the sample, so all rows of a sample that were shown the same share their answers.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from PIL import Image

from darkroom.pipelines.models.messages import opening_messages
from darkroom.pipelines.models.policies.policy import Completion, CompletionRequest, Policy, reseeded
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.self_consistency import Vote, collect_votes
from darkroom.pipelines.models.tasks import Task, question_text
from darkroom.pipelines.records import Check, ImageRef, Sample, Usage, Votes
from darkroom.pipelines.records.answers import final_answer, matches
from darkroom.pipelines.records.digest import digest, seed_from
from darkroom.pipelines.records.samples import right_answers
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.check import Flaw, decided, record
from darkroom.pipelines.verification.proportion import SequentialTest
from darkroom.pipelines.vision.visibility import visibility_hint

View = Literal["blind", "without_tools"]
VIEWS: tuple[View, ...] = ("blind", "without_tools")
NEEDS_IMAGE, NEEDS_TOOLS = "needs_image", "needs_tools"
VERSIONS = {NEEDS_IMAGE: 2, NEEDS_TOOLS: 1}

_PROMPT = bundled_prompt("necessity")
_GREY = 127
_LOW_OF_HIGH = 0.4
"""As 0.2 of 0.5: a stricter ``max_blind`` takes the lower rate along."""
_EITHER_OR = frozenset({"yes", "no", "true", "false"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Necessity:
    """Settings of the measurement and its bounds. A bound of None, or a share of 1, rejects nothing: it only measures.
    ``max_without_tools``: a row is rejected when a larger share of ``k`` answers is right. ``max_blind``: a question
    that is answered blind at this rate does not need its image, one at ``needed_blind`` does; of the first, at most
    ``false_passes`` pass, of the second at most ``false_rejects`` fail, with ``k`` to ``max_answers`` answers."""

    k: int = 4
    max_blind: float | None = 0.5
    max_without_tools: float | None = 0.75
    needed_blind: float = 0.2
    false_rejects: float = 0.1
    false_passes: float = 0.1
    max_answers: int = 32

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"necessity is measured by at least one answer; found k = {self.k}")
        self.blind_test(0.0)

    def blind_test(self, chance: float) -> SequentialTest | None:
        """The test of a question that is guessed right at the rate ``chance``, by which both rates are raised. None
        where ``max_blind`` cannot be tested (None, 0 or 1). Raises ``ValueError`` for settings that make no test."""
        if self.max_blind is None or not 0 < self.max_blind < 1:
            return None
        high = self.max_blind + chance * (1 - self.max_blind)
        low = max(chance, min(self.needed_blind, _LOW_OF_HIGH * self.max_blind))
        most = max(self.k, self.max_answers)
        return SequentialTest(low, high, self.false_rejects, self.false_passes, first=self.k, most=most)


@dataclass(frozen=True, slots=True)
class BlindScores:
    """Counts of right answers among ``k`` each, blind and without tools; None where that was not asked.
    ``n_blind_asked``: the blind answers, if they are not ``k``; ``chance``: the rate at which the answer is guessed."""

    k: int
    n_blind: int | None
    n_without_tools: int | None
    usage: Usage = Usage()
    n_blind_asked: int | None = None
    chance: float = 0.0


async def blind_scores(case: Case, policy: Policy, limits: Necessity) -> BlindScores:
    """Asks ``policy``. Unparseable answers count as wrong. Raises ``RowError`` (policy_failed) for a failed answer."""
    sample, originals, k = case.sample, case.trajectory.images, limits.k
    images: dict[View, Sequence[ImageRef]] = {}
    if originals or sample.videos:
        greys = [Image.new("L", (image.width, image.height), _GREY) for image in originals]
        images["blind"] = [case.store.add_pixels(grey, made_by="necessity: blank") for grey in greys]
    if originals or not sample.videos:
        images["without_tools"] = originals
    chance = guessing_rate(sample)
    tests = {"blind": limits.blind_test(chance)}
    visibility = visibility_hint(sample, case.store)
    polls = (_votes(policy, sample, view, images[view], k=k, test=tests.get(view), hint=visibility) for view in images)
    polled = await asyncio.gather(*polls)
    votes_by_view = dict(zip(images, polled, strict=True))
    n_right = {view: sum(votes.n_yes for votes in rounds) for view, rounds in votes_by_view.items()}
    n_blind_asked = sum(votes.n for votes in votes_by_view["blind"]) if "blind" in votes_by_view else None
    usage = sum((votes.usage for rounds in polled for votes in rounds), Usage())
    n_blind, n_without_tools = n_right.get("blind"), n_right.get("without_tools")
    return BlindScores(k, n_blind, n_without_tools, usage, n_blind_asked=n_blind_asked, chance=chance)


def guessing_rate(sample: Sample) -> float:
    """Rate at which the answer is guessed without knowledge: one in so many choices; half of yes-or-no questions."""
    if sample.choices:
        return 1 / max(2, len(sample.choices))
    return 0.5 if sample.answer.strip(" .").casefold() in _EITHER_OR else 0.0


def necessity_checks(scores: BlindScores, limits: Necessity) -> tuple[Check, ...]:
    """The checks ``needs_image`` and ``needs_tools``, as far as they were measured; each keeps its share and count."""
    results = {}
    if scores.n_blind is not None:
        n, k = scores.n_blind, scores.n_blind_asked or scores.k
        detail = f"{n} of {k} answers to a blank image are right"
        if (test := limits.blind_test(scores.chance)) is not None:
            holds = not test.decide(n, k)
        else:
            holds = limits.max_blind is None or n / k <= limits.max_blind
        results[NEEDS_IMAGE] = decided(holds, Flaw.ANSWERABLE_BLIND, detail, score=n / k, n_trials=k)
    if scores.n_without_tools is not None:
        n, k, most = scores.n_without_tools, scores.k, limits.max_without_tools
        detail = f"{n} of {k} answers without tools are right"
        holds = most is None or n / k <= most
        results[NEEDS_TOOLS] = decided(holds, Flaw.ANSWERABLE_WITHOUT_TOOLS, detail, score=n / k, n_trials=k)
    return tuple(record(result, name=name, version=VERSIONS[name]) for name, result in results.items())


def error_rates_in_words(limits: Mapping[str, Any]) -> str:
    """The exact error rates of ``needs_image`` by a stage's noted settings; empty where they name no test."""
    if "needed_blind" not in limits:  # noted by a version without the test
        return ""
    test = Necessity(**{field.name: limits[field.name] for field in fields(Necessity)}).blind_test(0.0)
    if test is None:
        return ""
    rejected, passes = test.error_rates
    return (
        f"a sequential test of {test.first} to {test.most} answers: of questions without choices that are answered "
        f"blind {test.high:.0%} of the time {passes:.1%} pass, of those answered {test.low:.0%} of the time "
        f"{rejected:.1%} are rejected"
    )


def answer_seed(view: View, sample_id: str) -> int:
    """The seed of the first answer; those of the others follow it."""
    return seed_from("necessity", view, sample_id)


async def _votes(
    policy: Policy,
    sample: Sample,
    view: View,
    images: Sequence[ImageRef],
    *,
    k: int,
    test: SequentialTest | None,
    hint: Mapping[str, Any],
) -> list[Votes]:
    """A ballot says yes where the answer is right. ``k`` of them, then by ``test`` as many as it takes."""
    system, user = _PROMPT.render(question=question_text(sample))
    messages = opening_messages(system, images, user, question=question_text(sample))
    row = digest(["necessity", view, sample.sample_id])
    seed = answer_seed(view, sample.sample_id)
    task = Task(row, "necessity", sample, tuple(images), hint=hint, opening=messages, seed=seed, stage="unaided")
    turn = CompletionRequest(messages, (), seed, task)

    def right(completion: Completion) -> Vote:
        answer = final_answer(completion.text) or completion.text
        return Vote(any(matches(answer, expected, sample.choices) for expected in right_answers(sample)))

    rounds: list[Votes] = []
    n_more = k
    while n_more:
        n = sum(len(votes.ballots) for votes in rounds)
        rounds.append(await collect_votes(policy, reseeded(turn, n), right, n_votes=n_more, what=f"necessity, {view}"))
        n_more = test.n_more(sum(votes.n_yes for votes in rounds), n + n_more) if test is not None else 0
    return rounds
