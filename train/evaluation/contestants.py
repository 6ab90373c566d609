"""Who is evaluated: an endpoint, a checkpoint folder, or the oracle of a family, opened as a policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pipelines.digest import digest
from pipelines.images import ImageStore
from pipelines.policies import Endpoint, OpenAIPolicy, OraclePolicy, Policy
from pipelines.recipes import load_recipes
from pipelines.stages import code_digest
from pipelines.visual_tokens import QWEN2_5_VL, QWEN3_VL, Vision
from train.evaluation.playing import Contestant
from train.evaluation.settings import Settings
from train.faults import TrainFault
from train.judging.settings import JudgeSettings


def open_contestant(settings: Settings, store: ImageStore) -> Contestant:
    """The contestant of ``settings``. Raises ``TrainFault`` where there is none."""
    if settings.oracle:
        return _oracle(settings, store)
    return Contestant(
        policy=_endpoint(settings, store) if settings.url else _checkpoint(settings, store),
        protocol=settings.protocol,
        mode=settings.mode,
        max_rounds=settings.max_rounds,
        seed=settings.seed,
    )


def open_judge(settings: Settings, store: ImageStore) -> Policy | None:
    """Who reads free answers and looks at crops; None where nobody does."""
    if not settings.judge_url:
        return None
    return OpenAIPolicy(JudgeSettings(settings.judge_url, settings.judge_model).endpoint, store)


def vision_of(settings: Settings) -> Vision:
    """How the contestant sees, for the count of visual tokens: as its processor says, at an endpoint by its name.

    The oracle sees as Qwen2.5-VL does.
    """
    if settings.model and not settings.url:
        return _vision_of_checkpoint(settings)
    vision = QWEN3_VL if "qwen3" in settings.model.lower() else QWEN2_5_VL
    return replace(vision, max_pixels=settings.max_pixels or vision.max_pixels)


def _vision_of_checkpoint(settings: Settings) -> Vision:
    from train.models import load_processor

    folder = Path(settings.model)
    sees = load_processor(folder, max_pixels=settings.max_pixels).image_processor
    side = sees.patch_size * sees.merge_size
    return Vision(folder.name, side, sees.size["shortest_edge"], sees.size["longest_edge"])


def _oracle(settings: Settings, store: ImageStore) -> Contestant:
    recipes = load_recipes()
    able = [name for name, recipe in recipes.items() if recipe.plan is None]
    if settings.oracle not in able:
        raise TrainFault(
            f"no family {settings.oracle!r} has an oracle that writes at once; there are {', '.join(able)}"
        )
    recipe = recipes[settings.oracle]
    return Contestant(
        policy=OraclePolicy(recipe.oracle, revision=digest([recipe.digest, code_digest()])),
        protocol=recipe.protocol.name,
        max_rounds=recipe.max_rounds,
        seed=settings.seed,
        prepare=lambda sample: recipe.prepare(sample, store),
    )


def _endpoint(settings: Settings, store: ImageStore) -> Policy:
    endpoint = Endpoint(
        settings.url,
        settings.model,
        temperature=settings.temperature,
        top_p=settings.top_p,
        max_tokens=settings.max_tokens,
        max_pixels=settings.max_pixels,
        concurrency=4 * settings.batch_size,
    )
    return OpenAIPolicy(endpoint, store)


def _checkpoint(settings: Settings, store: ImageStore) -> Policy:
    from train.local import LocalPolicy, Sampling

    return LocalPolicy(
        Path(settings.model),
        store,
        sampling=Sampling(settings.temperature, settings.top_p, settings.max_tokens),
        batch_size=settings.batch_size,
        max_pixels=settings.max_pixels,
    )
