"""The datasets of the experiments by name, made where they are not there yet."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from darkroom.pipelines.demo.street_sign_datasets import StreetSigns, policy_of, ship_trajectories
from darkroom.pipelines.generation.engine import intake
from darkroom.pipelines.generation.recipes import Recipe, load_recipes
from darkroom.pipelines.generation.recipes.operation_aware import PROMPTS
from darkroom.pipelines.generation.stage import Shard
from darkroom.pipelines.models.policies import oracle_policy
from darkroom.pipelines.models.policies.embedded import Script
from darkroom.pipelines.publishing.parquet_shards import ShardWriter, prompt_row
from darkroom.pipelines.records import RLRow, Sample, SuitabilityLabel
from darkroom.pipelines.records.rl import majority
from darkroom.pipelines.records.samples import details_of
from darkroom.pipelines.rl.rows import annotated_row
from darkroom.pipelines.sources import Source
from darkroom.pipelines.storage.workspace import Workspace
from measurements.ablations.world import scripts
from measurements.ablations.world.films import FRAMES_IN_CONTEXT, Films
from measurements.ablations.world.looks import Closeups, Looks
from measurements.ablations.world.needed_looks import NEEDED_LOOKS, SignsOfWalls
from measurements.ablations.world.sums import Sums


class Rows(NamedTuple):
    """A dataset of the world: how many walls, sums or films, their seed, and the name of a ``Writer``."""

    n: int
    seed: int
    writer: str


@dataclass(frozen=True, slots=True)
class Writer:
    """A source of questions, and the family that writes rows about them; without one they are RL questions.

    ``script`` writes instead of the demo's oracle of the family; ``environment`` are the
    family's own options.
    """

    source: Callable[[int, int], Source]
    family: str = ""
    script: Script | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def recipe(self) -> Recipe:
        own = {one.family: one for one in (FRAMES_IN_CONTEXT, NEEDED_LOOKS)}
        return own.get(self.family) or load_recipes()[self.family]

    @property
    def dataset(self) -> str:
        """The path of its dataset among a home's."""
        return f"sft/{self.family}" if self.family else "rl/prompts"


WRITERS: Mapping[str, Writer] = {
    "crop": Writer(StreetSigns, "crop"),
    "direct": Writer(Closeups, "direct"),
    "error_correction": Writer(StreetSigns, "error_correction"),
    "math_code": Writer(Sums, "math_code", scripts.compute),
    "operation_aware": Writer(Looks, "operation_aware", scripts.zoom, {PROMPTS: "all"}),
    "look_questions": Writer(Looks),
    "needed_looks": Writer(SignsOfWalls, "needed_looks", scripts.look),
    "needed_look_questions": Writer(SignsOfWalls),
    "agentic_video": Writer(Films, "agentic_video", scripts.on_demand),
    "frames_in_context": Writer(Films, "frames_in_context", scripts.in_context),
    "film_questions": Writer(Films),
}
ROWS: Mapping[str, Rows] = {
    "train": Rows(50, 1000, "crop"),
    "questions": Rows(50, 2000, "crop"),
    "closeups": Rows(50, 1000, "direct"),
    "second_looks": Rows(50, 1000, "error_correction"),
    "held_out": Rows(16, 6000, "crop"),
    "sums": Rows(40, 1000, "math_code"),
    "held_out_sums": Rows(40, 6000, "math_code"),
    "looks": Rows(50, 1000, "operation_aware"),
    "look_questions": Rows(50, 2000, "look_questions"),
    "held_out_looks": Rows(16, 6000, "look_questions"),
    "needed_looks": Rows(50, 1000, "needed_looks"),
    "needed_look_questions": Rows(50, 2000, "needed_look_questions"),
    "held_out_needed_looks": Rows(16, 6000, "needed_look_questions"),
    "films": Rows(60, 1000, "agentic_video"),
    "frames": Rows(60, 1000, "frames_in_context"),
    "held_out_films": Rows(32, 6000, "film_questions"),
}
"""By the name of the folder. SFT's rows, GRPO's questions and held-out ones are of different walls, sums and films, but
of the same photographs."""


def rows_below(root: Path, name: str) -> Path:
    """The folder in which ``ship`` puts the dataset ``name``."""
    return root / name / "datasets" / WRITERS[ROWS[name].writer].dataset


def ship(root: Path, name: str) -> Path:
    """The folder of the dataset ``name`` of ``ROWS``, made where it is not there yet."""
    n, seed, writer = ROWS[name]
    return shipped(root / name, WRITERS[writer].source(n, seed), WRITERS[writer])


def shipped(home: Path, source: Source, writer: Writer) -> Path:
    """The rows of ``writer`` on ``source``, as a dataset below ``home``."""
    partition = f"{source.name}-0000"
    own = Workspace.from_environment({"DARKROOM_HOME": str(home)})
    with patch.dict(os.environ, writer.environment), own as workspace:
        intake(workspace, source, 0, partition)
        return _trajectories(workspace, writer, partition) if writer.family else _questions(workspace, partition)


def _trajectories(workspace: Workspace, writer: Writer, partition: str) -> Path:
    recipe = writer.recipe
    oracle = (
        oracle_policy(recipe.family, revision=recipe.digest)
        if writer.script is None
        else policy_of(writer.script, recipe, Path(scripts.__file__))
    )
    return ship_trajectories(workspace, recipe, oracle, partition)


def _questions(workspace: Workspace, partition: str) -> Path:
    folder = workspace.dataset("rl", "prompts")
    with ShardWriter(folder, "prompts", "train") as writer:
        for sample in Shard(workspace, partition).samples().values():
            writer.write(prompt_row(_question(sample), workspace.images))
    return folder


def _question(sample: Sample) -> RLRow:
    """The question with its label of suitability, where the world says whether a look helps."""
    row, helps = annotated_row(sample), details_of(sample).get("drawing_helps")
    if helps is None:
        return row
    n_yes, n_no = int(helps), int(not helps)
    label = SuitabilityLabel(sample.sample_id, helps, majority(n_yes, n_no), n_yes, n_no, 0, "the world")
    return replace(row, suitability=label)
