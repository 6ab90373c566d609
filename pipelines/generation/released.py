"""Released trajectories as families of their own: the release writes the turns, the sandbox executes them again.

Samples of a source of the kind ``trajectories`` hold the release's turns in their details. ``ReleasedPolicy`` gives
them one after the other; parsing, execution, checks, rejects and publishing are those of every family. One family per
protocol: ``released_code`` and ``released_calls``. ``load_recipes`` leaves them out: nothing is drafted for them.
"""

from pathlib import Path
from typing import Any

from darkroom.pipelines.generation.recipes import Recipe, load_recipes
from darkroom.pipelines.models.policies.policy import Completion, CompletionRequest, PolicyError, PolicyIdentity
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols import Protocol, Thyme, ToolCall
from darkroom.pipelines.models.tasks import PreparedSample
from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.checks import hint_stays_hidden, no_round_is_broken, solution_stays_hidden
from darkroom.pipelines.verification.checks.output import agrees_with_label, release_of, replays_as_released

MAX_ROUNDS = 64


class ReleasedPolicy:
    """Writes what the release wrote. A turn that it does not have is a ``PolicyError``."""

    concurrency = 8
    identity = PolicyIdentity("released", "released")

    async def check(self) -> None:
        """Always available."""

    async def write(self, request: CompletionRequest) -> Completion:
        turns: list[str] = _release(request.task.sample)["turns"]
        if len(request.rounds) >= len(turns):
            raise PolicyError(f"the release has {len(turns)} turns")
        return Completion(turns[len(request.rounds)])

    async def close(self) -> None:
        """Nothing to close."""


def _release(sample: Sample) -> dict[str, Any]:
    """The sample's released trajectory. Raises ``RowError`` (not_applicable) for a sample of another kind of source."""
    if (release := release_of(sample)) is None:
        raise RowError(Reason.NOT_APPLICABLE, "the sample is no released trajectory")
    return release


def _recipe(family: str, protocol: Protocol, description: str) -> Recipe:
    def prepare(sample: Sample, store: ImageStore) -> PreparedSample:
        """The images of the question; those that observations showed are made again."""
        release = _release(sample)
        if release["protocol"] != protocol.name:
            raise RowError(Reason.NOT_APPLICABLE, f"it is written in {release['protocol']}, not {protocol.name}")
        return PreparedSample(sample.images[: release["n_question_images"]])

    return Recipe(
        family=family,
        description=description,
        file=Path(__file__),
        prompt=bundled_prompt("thyme"),  # not read by a model: the turns are there
        protocol=protocol,
        prepare=prepare,
        checks=(no_round_is_broken, replays_as_released, agrees_with_label, hint_stays_hidden, solution_stays_hidden),
        writer="released",
        loss_policy="all_rounds",
        max_rounds=MAX_ROUNDS,
    )


RELEASED = tuple(
    _recipe(family, protocol, f"Released trajectories of {material}, executed and checked again.")
    for family, protocol, material in (
        ("released_code", Thyme(), "code (Thyme-SFT, CodeV's selection of it)"),
        ("released_calls", ToolCall(), "tool calls (Pixel-Reasoner's SFT data, DeepEyes' tool)"),
    )
)


def all_recipes() -> dict[str, Recipe]:
    """Every family by name: the recipes, then those of releases."""
    return load_recipes() | {recipe.family: recipe for recipe in RELEASED}
