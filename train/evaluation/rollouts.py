"""The evaluated policy (an endpoint, a checkpoint folder, or the oracle of a family), its rollouts and their scores: by
rule, by a judge for free text, or as the benchmark counts. Turns and executions are on the ledger."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path

from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.generation.rollout import CodeSession, Rollout, rollout
from darkroom.pipelines.generation.sandbox_sessions import Sandboxes
from darkroom.pipelines.models.messages import viewable
from darkroom.pipelines.models.paper_prompts import PaperPrompt
from darkroom.pipelines.models.policies import Endpoint, OpenAIPolicy, Policy, oracle_policy, oracles
from darkroom.pipelines.models.protocols import PROTOCOLS, Protocol
from darkroom.pipelines.models.tasks import PreparedSample, Task, image_names, question_text
from darkroom.pipelines.records import ImageRef, Observation, Sample, VideoRef
from darkroom.pipelines.records.digest import digest, seed_from
from darkroom.pipelines.records.reject_reasons import RETRYABLE, Reason, RowError
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.grading import Grade, grade
from darkroom.pipelines.verification.grading.judged import grade_judged
from darkroom.pipelines.vision.frames import sampled_frames
from darkroom.pipelines.vision.visibility import QWEN2_5_VL, QWEN3_VL, VisionModel
from darkroom.sandbox.errors import raised_as
from darkroom.train.evaluation.observed_images import ObservedImage
from darkroom.train.evaluation.questions import Question
from darkroom.train.evaluation.scorings import MAX_CHARS, SCORINGS, Scorer, official
from darkroom.train.evaluation.settings import EvaluationSettings
from darkroom.train.rl.judging.judge_config import JudgeSettings, NamedJudge
from darkroom.train.rl.judging.judges import answer_share
from darkroom.train.runs import TrainError
from darkroom.train.runs.options import chosen_wording


@dataclass(frozen=True, slots=True)
class Score:
    """The verdict on an answer: ``right``, its ``value`` 0..1 as the benchmark counts it, and why, for a person. Where
    the benchmark gives a proportion, only a whole one is right; by ANLS, one above its threshold."""

    right: bool
    value: float
    detail: str


async def score(rollout: Rollout, question: Question, judge: Policy | None = None) -> Score:
    """Score a rollout; one without an answer is wrong. ``judge`` reads free text, which else must be spelled the same.
    Raises ``RowError`` (policy_failed) when the judge gives no vote."""
    if rollout.error is not None:
        return Score(False, 0.0, str(rollout.error))
    scorer: Scorer | None = partial(official, rules=question.official) if question.official else None
    scorer = scorer or SCORINGS.get(question.scoring)
    if scorer and (own := await asyncio.to_thread(_scored, scorer, rollout, question)):
        return own
    if question.scoring == "share" and judge is not None:
        opinion = await answer_share(rollout.answer, question.sample, judge)
        return Score(opinion.score == 1, opinion.score, f"{rollout.answer[:120]!r}: {opinion.score:.2f} by the judge")
    if question.grader is not None and question.grader.kind == "judged" and judge is not None:
        grade_record = (await grade_judged(rollout.answer, question.sample, judge)).grade
    else:
        grade_record = await asyncio.to_thread(_graded, rollout.answer, question)
    return Score(grade_record.right, float(grade_record.right), grade_record.detail)


def _scored(scorer: Scorer, rollout: Rollout, question: Question) -> Score | None:
    """Score by the benchmark's rule; None where that leaves the question to the grader."""
    answer = rollout.answer
    value = scorer(answer, question.accepted, question.sample) if len(answer) <= MAX_CHARS else 0.0
    if value is None:
        return None
    right = value > 0 if question.scoring == "anls" else value == 1
    how = "official" if question.official else question.scoring.replace("anls", "ANLS")
    return Score(right, value, f"{answer[:120]!r}: {how} {value:.3f} of {len(question.accepted)} accepted")


def _graded(answer: str, question: Question) -> Grade:
    """Grade by the question's rule; another accepted answer has a rule of its own."""
    grade_record = grade(answer, question.sample, question.grader)
    if question.sample.choices:
        return grade_record
    others = (replace(question.sample, answer=text) for text in question.accepted if text != question.sample.answer)
    return next((by_other for sample in others if (by_other := grade(answer, sample)).right), grade_record)


FAMILY = "evaluation"


@dataclass(frozen=True, slots=True)
class EvaluatedPolicy:
    """The policy under evaluation and its rollout settings. ``protocol`` and ``mode`` apply to questions without their
    own. ``prepare`` is for the oracle alone: it adds the truth as hints."""

    policy: Policy
    protocol: str = "thyme"
    mode: str = "free"
    max_rounds: int = 6
    seed: int = 0
    prepare: Callable[[Sample], PreparedSample] | None = None
    frames_of: Callable[[Sample], tuple[ImageRef, ...]] | None = None
    """Frames of the sample's videos that its prompt shows."""
    wording: PaperPrompt | None = None
    """The paper's prompt for questions, instead of the protocol's own words."""

    def protocol_of(self, question: Question) -> Protocol:
        return PROTOCOLS[question.protocol or self.protocol]


@dataclass(frozen=True, slots=True)
class ScoredRollout:
    """The ``number``-th rollout on a question, with its score and the images of its observations."""

    question: Question
    number: int
    task: Task
    rollout: Rollout
    score: Score
    seen: tuple[ObservedImage, ...] = field(default=())

    @property
    def images(self) -> tuple[ImageRef, ...]:
        return self.task.images

    @property
    def failed(self) -> bool:
        """True if an endpoint or the sandbox failed, not the policy; the next run retries."""
        error = self.rollout.error
        return error is not None and error.reason in RETRYABLE


@dataclass(frozen=True, slots=True)
class ViewableSession:
    """A session that returns an error for images no model accepts, as in training."""

    session: CodeSession

    async def run(self, code: str) -> Observation:
        return viewable(await self.session.run(code))


def task_of(question: Question, number: int, evaluated: EvaluatedPolicy) -> Task:
    """Prepare the ``number``-th rollout. Raises ``RowError`` if protocol or oracle do not apply to the question."""
    sample, protocol = question.sample, evaluated.protocol_of(question)
    mode = question.mode or evaluated.mode
    frames = evaluated.frames_of(sample) if evaluated.frames_of else ()
    prepared = evaluated.prepare(sample) if evaluated.prepare else PreparedSample(sample.images + frames, mode=mode)
    seed = seed_from(FAMILY, sample.sample_id, evaluated.seed, number)
    identity = evaluated.policy.identity.as_json()
    wording = evaluated.wording
    if wording and wording.protocol != protocol.name:
        evidence = f"{wording.name} asks for {wording.protocol} turns, the row for {protocol.name}"
        raise RowError(Reason.NOT_APPLICABLE, evidence)
    wordings = [wording.prompt.digest] if wording else []
    parts = [FAMILY, sample.sample_id, protocol.name, prepared.mode, identity, evaluated.max_rounds, seed]
    name = digest([*parts, *(frame.sha256 for frame in frames), *wordings])
    words = wording or protocol
    # a row's own mode, which the prompt does not have
    with raised_as(lambda error: RowError(Reason.NOT_APPLICABLE, str(error)), ValueError):
        opening = words.opening(question_text(sample), prepared.images, sample.videos, mode=prepared.mode)
    images, hint, mode = prepared.images, prepared.hint, prepared.mode
    return Task(name, FAMILY, sample, images=images, hint=hint, opening=opening, seed=seed, mode=mode)


async def run_rollout(question: Question, task: Task, evaluated: EvaluatedPolicy, sandboxes: Sandboxes) -> Rollout:
    """Run one rollout; a failed turn or execution is its error."""
    names = names_of(task, evaluated)
    async with sandboxes.session(task.images, task.sample.videos, seed=task.seed, names=names) as session:
        return await rollout(
            task,
            policy=evaluated.policy,
            protocol=evaluated.protocol_of(question),
            session=ViewableSession(session),
            max_rounds=evaluated.max_rounds,
        )


def names_of(task: Task, evaluated: EvaluatedPolicy) -> tuple[str, ...]:
    """The names by which code may call a task's images besides their paths."""
    if evaluated.wording is None:
        return image_names(task.sample.question)
    return evaluated.wording.image_names(question_text(task.sample), task.images)


class NamedEndpoint(OpenAIPolicy):
    """A policy behind HTTP whose address was given with ``--url``; where nothing answers, the error names it."""

    another = "name the one to use with --url"


def open_policy(settings: EvaluationSettings, store: ImageStore) -> EvaluatedPolicy:
    """Open the policy that ``settings`` name. Raises ``TrainError`` for an unknown oracle."""
    if settings.oracle:
        return _oracle(settings, store)
    wording = chosen_wording(settings.prompt)
    protocol = wording.protocol if wording else settings.protocol
    same_names = settings.model_dump(include={"mode", "max_rounds", "seed"})
    policy, frames_of = _policy(settings, store), _frames(settings, store)
    return EvaluatedPolicy(policy, protocol, frames_of=frames_of, wording=wording, **same_names)


def _frames(settings: EvaluationSettings, store: ImageStore) -> Callable[[Sample], tuple[ImageRef, ...]] | None:
    n_frames, per_second = settings.frames, settings.frame_rate
    if n_frames is None and per_second is None:
        return None

    @cache
    def frames_of(videos: tuple[VideoRef, ...]) -> tuple[ImageRef, ...]:
        with raised_as(lambda error: RowError(Reason.NOT_APPLICABLE, str(error)), ValueError):
            sampled = (sampled_frames(video, store, n_frames=n_frames, per_second=per_second) for video in videos)
            return tuple(chain.from_iterable(sampled))

    return lambda sample: frames_of(sample.videos)


def open_judge(settings: EvaluationSettings, store: ImageStore) -> Policy | None:
    if not settings.judge_url:
        return None
    return NamedJudge(JudgeSettings(base_url=settings.judge_url, model=settings.judge_model).endpoint, store)


def vision_of(settings: EvaluationSettings) -> VisionModel:
    """The vision model that visual tokens are counted for; the oracle counts as Qwen2.5-VL."""
    if settings.model and not settings.url:
        from darkroom.train.models.loading import load_processor

        folder = Path(settings.model)
        images = load_processor(folder, max_pixels=settings.max_pixels).image_processor
        side = images.patch_size * images.merge_size
        return VisionModel(folder.name, side, images.size["shortest_edge"], images.size["longest_edge"])
    vision = QWEN3_VL if "qwen3" in settings.model.lower() else QWEN2_5_VL
    return replace(vision, max_pixels=settings.max_pixels or vision.max_pixels)


def _oracle(settings: EvaluationSettings, store: ImageStore) -> EvaluatedPolicy:
    recipes = load_recipes()
    able = [name for name, recipe in recipes.items() if recipe.plan is None and name in oracles()]
    if settings.oracle not in able:
        there = ", ".join(able)
        raise TrainError(f"no family {settings.oracle!r} has an oracle that writes at once; there are {there}")
    recipe = recipes[settings.oracle]
    return EvaluatedPolicy(
        policy=oracle_policy(recipe.family, revision=recipe.digest),
        protocol=recipe.protocol.name,
        max_rounds=recipe.max_rounds,
        seed=settings.seed,
        prepare=lambda sample: recipe.prepared(sample, store),
    )


def _policy(settings: EvaluationSettings, store: ImageStore) -> Policy:
    if settings.url:
        sampling = settings.model_dump(include={"temperature", "top_p", "max_tokens", "max_pixels"})
        extra = {} if settings.top_k is None else {"top_k": settings.top_k}
        concurrency = 4 * settings.batch_size
        endpoint = Endpoint(settings.url, settings.model, **sampling, concurrency=concurrency, extra_body=extra)
        return NamedEndpoint(endpoint, store)
    from darkroom.train.models.local_policy import LocalPolicy, Sampling

    folder, size, max_pixels = Path(settings.model), settings.batch_size, settings.max_pixels
    how = Sampling(settings.temperature, settings.top_p, settings.max_tokens, settings.top_k)
    return LocalPolicy(folder, store, sampling=how, batch_size=size, max_pixels=max_pixels)
