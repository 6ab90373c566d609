"""The first trajectory of a command, as soon as it is there: question, answer, and the path of what its code showed."""

from collections.abc import Callable

import dagster as dg
from rich.console import Console
from rich.text import Text

from darkroom.assets.terminal import relative
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.records import Sample, Trajectory
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace


class FirstTrajectory:
    """Prints a trajectory with an image of its own of the first table that has one, then no other.

    ``then`` is called when it is on the screen.
    """

    def __init__(self, console: Console, workspace: Workspace, then: Callable[[], None] = lambda: None) -> None:
        self._console, self._workspace, self._then, self._is_over = console, workspace, then, False

    def look(self, materialization: dg.AssetMaterialization) -> None:
        """``materialization``: of any asset."""
        path, partition = materialization.asset_key.path, materialization.partition
        if self._is_over or partition is None or path[-1] != "trajectories":
            return
        tables = self._workspace.tables
        rows = tables.stream(TableKey(tuple(path), partition), Trajectory)
        row = next((row for row in rows if row.rounds and row.rounds[-1].observation.images), None)
        if row is None:
            return
        self._is_over = True
        samples = tables.stream(TableKey(SAMPLES, partition), Sample)
        question = next(sample.question for sample in samples if sample.sample_id == row.sample_id)
        image = self._workspace.images.path(row.rounds[-1].observation.images[-1])
        words = f"  the first trajectory: {' '.join(question.split())} → {row.answer}"
        self._console.print(Text(f"{words}\n    its code showed {relative(image)}"), soft_wrap=True)
        self._then()
