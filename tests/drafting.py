"""A family's drafts from an endpoint, as users make them: samples with images, a decision and a turn for each.

``direct`` asks twice for every sample: for the decision (sent with its schema) and for the turn.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.models.policies import Endpoint, OpenAIPolicy
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.storage.stage_runs import StageReport
from darkroom.pipelines.storage.workspace import Workspace
from tests.image_files import encoded

CONCURRENCY = 256
PARTITION = "mock-0000"
DECISION = '{"issue": "fine as it is", "operation": -1, "reason": "NAME", "verdict": true}'
"""A decision and a vote in one: what is answered to every call with a schema. Like all answers it names itself, so the
ledger says which are in it."""
CALLS_PER_ROW = 2


@dataclass(frozen=True)
class MockSource:
    """Small images of noise with a question each; ``n_refused`` of them, spread over the rows, get 400 for ever."""

    n_rows: int
    n_refused: int = 0
    name: str = "mock"
    n_shards: int = 1

    @property
    def fingerprint(self) -> str:
        return f"{self.n_rows} {self.n_refused}"

    def rows(self, shard: int) -> Iterator[SourceRow]:
        every = self.n_rows // self.n_refused if self.n_refused else self.n_rows + 1
        for n in range(self.n_rows):
            noise = Image.fromarray(np.random.default_rng(n).integers(0, 255, (16, 16, 3), np.uint8))
            asked = f"What is row {n}?{' REFUSED' if n % every == every - 1 else ''}"
            yield SourceRow(f"row/{n}", (encoded(noise),), asked, str(n), license="CC0-1.0")


def take_in(home: Path, source: MockSource) -> None:
    """The samples, so that a draft has nothing to do but to ask."""
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        engine.intake(workspace, source, 0, PARTITION)


def draft(url: str, home: Path) -> StageReport:
    """All of it, or what is left."""
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        policy = OpenAIPolicy(Endpoint(url, "mock", concurrency=CONCURRENCY), workspace.images)
        return Family(workspace, load_recipes()["direct"], PARTITION).draft(policy)
