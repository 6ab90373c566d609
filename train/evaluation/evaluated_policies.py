"""The evaluated policy: an endpoint, a checkpoint folder, or the oracle of a family."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path

from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.models.policies import Endpoint, OpenAIPolicy, Policy, oracle_policy, oracles
from darkroom.pipelines.records import ImageRef, Sample, VideoRef
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.vision.frames import sampled_frames
from darkroom.pipelines.vision.visibility import QWEN2_5_VL, QWEN3_VL, VisionModel
from darkroom.train.evaluation.rollouts import EvaluatedPolicy
from darkroom.train.evaluation.settings import EvaluationSettings
from darkroom.train.rl.judging.judge_config import JudgeSettings, NamedJudge
from darkroom.train.runs import TrainError
from darkroom.train.runs.options import chosen_wording


class NamedEndpoint(OpenAIPolicy):
    """A policy behind HTTP whose address was given with ``--url``; where nothing answers, the error names it."""

    another = "name the one to use with --url"


def open_policy(settings: EvaluationSettings, store: ImageStore) -> EvaluatedPolicy:
    """Open the policy that ``settings`` name. Raises ``TrainError`` for an unknown oracle."""
    if settings.oracle:
        return _oracle(settings, store)
    wording = chosen_wording(settings.prompt)
    return EvaluatedPolicy(
        policy=_policy(settings, store),
        protocol=wording.protocol if wording else settings.protocol,
        wording=wording,
        mode=settings.mode,
        max_rounds=settings.max_rounds,
        seed=settings.seed,
        frames_of=_frames(settings, store),
    )


def _frames(settings: EvaluationSettings, store: ImageStore) -> Callable[[Sample], tuple[ImageRef, ...]] | None:
    n_frames, per_second = settings.frames, settings.frame_rate
    if n_frames is None and per_second is None:
        return None

    @cache
    def frames_of(videos: tuple[VideoRef, ...]) -> tuple[ImageRef, ...]:
        try:
            sampled = (sampled_frames(video, store, n_frames=n_frames, per_second=per_second) for video in videos)
            return tuple(chain.from_iterable(sampled))
        except ValueError as error:
            raise RowError(Reason.NOT_APPLICABLE, str(error)) from error

    return lambda sample: frames_of(sample.videos)


def open_judge(settings: EvaluationSettings, store: ImageStore) -> Policy | None:
    """Open the judge of free answers and crops; None without a judge endpoint."""
    if not settings.judge_url:
        return None
    return NamedJudge(JudgeSettings(base_url=settings.judge_url, model=settings.judge_model).endpoint, store)


def vision_of(settings: EvaluationSettings) -> VisionModel:
    """The vision model that visual tokens are counted for: from a checkpoint's processor, at an endpoint by name. The
    oracle counts as Qwen2.5-VL."""
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
        raise TrainError(
            f"no family {settings.oracle!r} has an oracle that writes at once; there are {', '.join(able)}"
        )
    recipe = recipes[settings.oracle]
    return EvaluatedPolicy(
        policy=oracle_policy(recipe.family, revision=recipe.digest),
        protocol=recipe.protocol.name,
        max_rounds=recipe.max_rounds,
        seed=settings.seed,
        prepare=lambda sample: recipe.prepare(sample, store),
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
