"""Families of trajectories, one file and one prompt each, run by one engine (``pipelines/generation/engine.py``).

A recipe file defines ``recipe = Recipe(...)``. Every file in this folder is a family; so is every file in the folders
that the environment variable ``DARKROOM_RECIPES`` lists (separated as in ``PATH``). docs/families.md adds one.

Prompts state what a policy may claim of an image: the measurements that ``claims_hold`` compares with, none as a
number, since a thought must not state what cannot be measured by looking.
"""

import importlib
import math
import pkgutil
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from darkroom.pipelines.generation.applicability import Applicability
from darkroom.pipelines.models.prompts import Prompt, bundled_prompt
from darkroom.pipelines.models.protocols import Protocol, Thyme
from darkroom.pipelines.models.tasks import PreparedSample, Task
from darkroom.pipelines.records import ImageRef, LossPolicy, Round, Sample, Trajectory
from darkroom.pipelines.records.digest import digest, seed_from
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.samples import families_of
from darkroom.pipelines.selection.sampling import mixture
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.stage_runs import file_version
from darkroom.pipelines.storage.user_files import added_files, imported
from darkroom.pipelines.verification.checks import (
    EVERY_FAMILY,
    answer_matches,
    crop_contains_target,
    crop_is_tight,
    executes,
    hint_stays_hidden,
    second_round_is_explained,
    shows_an_image,
    two_programs,
)
from darkroom.pipelines.verification.checks.check import CheckFunction
from darkroom.pipelines.verification.checks.image_operations import print_can_be_read
from darkroom.pipelines.verification.checks.necessity import Necessity
from darkroom.pipelines.vision.visibility import (
    LARGE_SIDE,
    QWEN2_5_VL,
    SEEN_LEVELS,
    SEEN_SIDE,
    SMALL_SHARE,
    Visibility,
    findability,
    resized,
    shown_side,
)
from darkroom.sandbox.errors import UserError

FACTS_PROMPT = bundled_prompt("visibility_facts")
SLOT = "facts"
"""A prompt that declares this slot is given ``visibility_facts`` of the image that the policy sees."""


def visibility_facts(visibility: Visibility) -> str:
    """The facts in words: size, contrast and orientation, and what must not be said of them."""
    side, levels = visibility.side, visibility.levels
    size: str = visibility.size
    if size == "between" and side is not None:
        size = "readable" if side >= SEEN_SIDE else "modest"
    contrast = "unknown"
    if levels is not None:
        contrast = "good" if levels >= SEEN_LEVELS else "middling"
    if visibility.is_faint:
        contrast = "faint"
    orientation = "unknown"
    if visibility.angle is not None:
        orientation = "turned" if visibility.is_turned else "upright"
    return FACTS_PROMPT.render(size=size, contrast=contrast, orientation=orientation)[1]


def facts_of_hint(hint: Mapping[str, Any]) -> str:
    """Facts of a draft's hint: of the image as the policy was given it; empty where none was measured."""
    measured = hint.get("visibility_as_given") or hint.get("visibility")
    return visibility_facts(Visibility.from_json(measured)) if measured else ""


_FAMILY = re.compile(r"[a-z][a-z0-9_]*")
Writer = Literal["draft", "convert", "released"]
"""Who writes a family's trajectories: the drafting policy, the one that converts what was drafted, or a release."""


class RecipeError(UserError):
    """A recipe's file is wrong: which file, what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Text that the drafting policy writes before the trajectory, and no trajectory shows: a decision, a long solution.
    Its slots are ``question`` and ``sizes``, so families with the same plan pay for it once."""

    prompt: Prompt
    read: Callable[[str, Sample], Mapping[str, Any]]
    """What the plan says, as slots of the recipe's prompt (JSON). Raises ``RowError`` when it rules the sample out."""
    schema: Mapping[str, Any] | None = None
    """The JSON schema of a plan that is JSON; endpoints that know it hold to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One family. ``prepare`` makes a sample ready or raises ``RowError`` (unsuitable). The prompt's slots are
    ``question``, ``sizes``, ``videos``, ``facts`` (what may be claimed, as measured) and names in the prepared hint."""

    family: str
    description: str
    """For the people who read the asset graph: one sentence, with the source of the facts."""
    file: Path
    """``Path(__file__)`` of the recipe: its version, or digest, decides whether finished work still stands."""
    prompt: Prompt
    protocol: Protocol
    checks: tuple[CheckFunction, ...]
    """Followed by those of ``EVERY_FAMILY``, which a recipe need not list."""
    prepare: Callable[[Sample, ImageStore], PreparedSample] = lambda sample, _store: PreparedSample(sample.images)
    samples: Applicability = Applicability()
    """Which samples the family is for; others are not applicable, and ``prepare`` never sees them."""
    loss_policy: LossPolicy = "last_round"
    max_rounds: int = 4
    plan: Plan | None = None
    writer: Writer = "draft"
    follow_up: Callable[[Task, tuple[Round, ...]], str] | None = None
    """Text beside an observation, privileged like the hint: the trajectory does not show it."""
    n_wanted: int | None = None
    """Rows of the published mixture (Thyme App. B), from which default quotas are scaled."""
    balanced_by: Callable[[Trajectory], str] | None = None
    """The kind of a row; as many rows of each kind ship."""
    options: Callable[[], Any] | None = None
    """What environment variables of the family's own say (JSON): part of what decides its drafts."""
    necessity: Necessity | None = None
    """How the need of rows for their image and their tools is measured, where that is free or configured."""
    has_hints: bool = True
    """Whether the policy reads ``prompt`` with its hints; else the protocol's own words (``without_hints``)."""
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        if not _FAMILY.fullmatch(self.family):
            raise RecipeError(f"{self.file}: a family is named in lower case, like 'crop'; found {self.family!r}")
        if not self.checks:
            raise RecipeError(f"{self.file}: a recipe needs checks")
        added = (check for check in EVERY_FAMILY if check not in self.checks)
        object.__setattr__(self, "checks", (*self.checks, *added))
        prompts = [self.prompt.digest, *([self.plan.prompt.digest] if self.plan else [])]
        prompts += [FACTS_PROMPT.digest] if SLOT in self.prompt.slots else []
        object.__setattr__(self, "digest", digest([file_version(self.file), *prompts]))

    def objection(self, sample: Sample) -> str:
        """Why the family is not for the sample; empty where it is."""
        if (families := families_of(sample)) is not None and self.family not in families:
            return f"its source keeps it for {', '.join(families)}"
        if sample.videos and not self.protocol.takes_videos:
            return f"it has a video, which {self.protocol.name} does not show"
        return self.samples.objection(sample)

    def prepared(self, sample: Sample, store: ImageStore) -> PreparedSample:
        """The sample made ready. Raises ``RowError``: not_applicable, unsuitable."""
        if objection := self.objection(sample):
            raise RowError(Reason.NOT_APPLICABLE, objection)
        return self.prepare(sample, store)


def load_recipes() -> dict[str, Recipe]:
    """Every recipe by its family. Raises ``RecipeError`` when a file defines none or a family twice."""
    recipes: dict[str, Recipe] = {}
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    added = [imported(path, RecipeError) for path in added_files("DARKROOM_RECIPES", RecipeError)]
    for module in [*(importlib.import_module(f"{__name__}.{name}") for name in names), *added]:
        recipe = getattr(module, "recipe", None)
        if not isinstance(recipe, Recipe):
            raise RecipeError(f"{module.__file__}: expected a module-level `recipe = Recipe(...)`, found {recipe!r}")
        if recipe.family in recipes:
            raise RecipeError(f"{module.__file__}: the family {recipe.family!r} is defined twice")
        recipes[recipe.family] = recipe
    return recipes


def without_hints(recipe: Recipe) -> Recipe:
    """The family as a trained model meets it: the question in the protocol's own words, nothing planned or told."""
    return replace(recipe, prompt=bundled_prompt(recipe.protocol.name), plan=None, follow_up=None, has_hints=False)


def quotas(recipes: Sequence[Recipe], *, n_rows: int | None) -> dict[str, int]:
    """``n_rows`` in the published mixture, over the families that are in it; none without a number."""
    if n_rows is None:
        return {}
    return mixture({recipe.family: recipe.n_wanted for recipe in recipes if recipe.n_wanted}, n_rows)


MAX_LOOK_SHARE = 0.2
"""How much of the image a region may fill that is not known to the pixel; ``crop_is_tight`` allows 0.25."""

MARGIN = 0.15
"""How far the region reaches beyond the target, as a share of the target's longer side."""


def target_region(sample: Sample) -> Box:
    """The region to crop: the target with a margin. Raises ``RowError`` (unsuitable) where the target fills more than
    ``SMALL_SHARE`` of the image or is large as the model sees it, because cropping it would be lazy."""
    image, target = sample.images[0], sample.truth.boxes[0].box
    require_small(target, image, SMALL_SHARE)
    if (side := shown_side(target, image.width, image.height)) >= LARGE_SIDE:
        raise RowError(Reason.UNSUITABLE, f"the target can be seen as it is: {side:g} pixels of the model")
    return with_margin(target, image)


def require_known_place(sample: Sample, store: ImageStore) -> None:
    """Raises ``RowError`` (not_applicable) where the target must be searched for: a hint that names its region would
    teach to know what cannot be seen."""
    if findability(sample, store) == "searched":
        evidence = "its target must be searched for, and the family tells the policy where it is"
        raise RowError(Reason.NOT_APPLICABLE, evidence)


def as_looked_up(exact: Box, image: ImageRef, rng: random.Random) -> Box:
    """A region as one knows it who saw the image at the model's size: each side up to a token too far out, in round
    numbers. A place is not seen to the pixel. Less far out where the region would fill ``MAX_LOOK_SHARE``."""
    token = QWEN2_5_VL.side * image.width / resized(image.width, image.height, QWEN2_5_VL)[0]
    errors = [rng.uniform(0, token) for _ in range(4)]
    for share in (1.0, 0.5, 0.0):
        dx1, dy1, dx2, dy2 = (share * error for error in errors)
        region = _rounded((exact.x1 - dx1, exact.y1 - dy1, exact.x2 + dx2, exact.y2 + dy2), image, outwards=1)
        if region.area <= MAX_LOOK_SHARE * image.width * image.height:
            return region
    return exact


def told_region(exact: Box, sample: Sample) -> Box:
    """The region as a prompt has it: as ``as_looked_up`` knows it, or as the question itself names it."""
    if as_text(exact) in sample.question:
        return exact
    return as_looked_up(exact, sample.images[0], random.Random(seed_from("region", sample.sample_id)))


def in_round_numbers(region: Box, image: ImageRef, *, grows: bool) -> Box:
    """The region with sides in round numbers, inside the image: ``grows`` outwards, else inwards."""
    rounded = _rounded(region, image, outwards=1 if grows else -1)
    return rounded if rounded.area else region


def _rounded(sides: Sequence[float], image: ImageRef, *, outwards: Literal[1, -1]) -> Box:
    """The box with sides in round numbers, tens of pixels or fives in a small image, inside the image."""
    step = 10 if max(image.width, image.height) >= 1000 else 5
    x1, y1 = (outwards * math.floor(outwards * side / step) * step for side in sides[:2])
    x2, y2 = (outwards * math.ceil(outwards * side / step) * step for side in sides[2:])
    return Box(x1, y1, x2, y2).clipped(image.width, image.height)


def require_small(target: Box, image: ImageRef, max_share: float) -> None:
    """Raises ``RowError`` (unsuitable) where the target fills more than ``max_share`` of the image."""
    if (share := target.area / (image.width * image.height)) > max_share:
        raise RowError(Reason.UNSUITABLE, f"the target fills {share:.1%} of the image, more than {max_share:.0%}")


def with_margin(target: Box, image: ImageRef, *, margin: float = MARGIN, min_pixels: int = 8) -> Box:
    """The target with its surroundings, inside the image; ``margin`` is a share of the target's longer side."""
    pixels = max(min_pixels, round(margin * max(target.width, target.height)))
    return target.grown(pixels).clipped(image.width, image.height)


def two_crops(
    family: str,
    *,
    description: str,
    file: Path,
    first_region: Callable[[Box, Sample, random.Random], Box],
    first_check: CheckFunction,
    follow_up: str,
    also: str,
) -> Recipe:
    """A family of two rounds (Thyme App. B, multi-round): a first crop, then the exact one, explained by the first. The
    policy receives the seeded ``first_region`` (of the exact one) at the start, and the exact one as the ``region`` of
    ``follow_up``, the text beside the first observation, both in round numbers; the trajectory shows neither."""

    def prepare(sample: Sample, store: ImageStore) -> PreparedSample:
        exact = target_region(sample)
        require_known_place(sample, store)  # after what needs no pixels
        first = first_region(exact, sample, random.Random(seed_from(family, sample.sample_id)))
        prompted = told_region(exact, sample)
        told_first = in_round_numbers(first, sample.images[0], grows=first.contains(exact))
        regions = {"first_region": first, "region": exact, "told_first_region": told_first, "told_region": prompted}
        return PreparedSample(sample.images, {name: as_text(region) for name, region in regions.items()})

    def second_turn(task: Task, rounds: tuple[Round, ...]) -> str:
        if len(rounds) != 1:
            return ""
        return follow_up.format(region=task.hint.get("told_region", task.hint["region"]))  # earlier prompts: exact

    return Recipe(
        family=family,
        description=description,
        file=file,
        prompt=bundled_prompt(family),
        protocol=Thyme(),
        samples=Applicability(images=True, box=True, also=also),
        prepare=prepare,
        checks=(
            executes,
            two_programs,
            shows_an_image,
            first_check,
            crop_contains_target,
            crop_is_tight,
            print_can_be_read,
            second_round_is_explained,
            answer_matches,
            hint_stays_hidden,
        ),
        max_rounds=2,
        follow_up=second_turn,
    )


def as_text(region: Sequence[float]) -> str:
    """``180, 100, 280, 170``, as prompts have it; fractions too."""
    return ", ".join(map(str, region))


def as_fractions(region: Box, image: ImageRef, *, digits: int = 3) -> tuple[float, float, float, float]:
    """Left, top, right, bottom as fractions of the image with so many digits, rounded outwards."""
    parts = 10**digits
    left = math.floor(parts * region.x1 / image.width) / parts
    top = math.floor(parts * region.y1 / image.height) / parts
    right = math.ceil(parts * region.x2 / image.width) / parts
    bottom = math.ceil(parts * region.y2 / image.height) / parts
    return left, top, right, bottom
