"""The demo's problems, taken in and run through a family by the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from pipelines import engine
from pipelines.sources.base import SourceRow
from pipelines.sources.demo.diagrams import diagrams
from pipelines.sources.demo.figures import figures
from pipelines.sources.demo.maths import maths
from pipelines.workspace import Workspace

PROBLEMS = "problems-0000"


@dataclass(frozen=True)
class Problems:
    """The demo's mathematical rows alone."""

    name: str = "problems"
    n_shards: int = 1
    fingerprint: str = "problems"

    def rows(self, shard: int) -> Iterator[SourceRow]:
        for row in [*maths(0), *diagrams(0), *figures(0)]:
            yield row.build()


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A workspace with the problems as samples."""
    home = str(tmp_path_factory.mktemp("problems"))
    with Workspace.from_environment({"DARKROOM_HOME": home}) as opened:
        engine.intake(opened, Problems(), 0, PROBLEMS)
        yield opened
