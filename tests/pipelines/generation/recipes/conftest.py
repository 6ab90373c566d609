"""Samples with everything that can be wrong with an image, and families at work on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from darkroom.pipelines.demo.images import DemoSource
from darkroom.pipelines.demo.images.figures import diagrams, figures
from darkroom.pipelines.demo.images.material import LazyRow, built
from darkroom.pipelines.demo.images.maths import maths
from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes import Recipe, load_recipes
from darkroom.pipelines.models.policies import oracle_script
from darkroom.pipelines.records import Reject, Trajectory, Truth, TruthBox
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.storage.workspace import Workspace
from tests.conftest import SmallSource
from tests.image_files import encoded
from tests.pipelines.scripted import Scripted, run_all, taken_out

_WHOLE_CHAINS = {"demo_chain", "workspace_of_films"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What works on the embedded source from intake to kept rows is no quick test."""
    for item in items:
        if isinstance(item, pytest.Function) and _WHOLE_CHAINS & {*item.fixturenames}:
            item.add_marker(pytest.mark.e2e)


PARTITION = "flawed-0000"
PROBLEMS = "problems-0000"
DEMO = "demo-0000"


def _signed(seed: int, text: str, box: tuple[int, int, int, int], size: tuple[int, int]) -> Image.Image:
    noise = np.random.default_rng(seed).integers(0, 255, (size[1] // 16, size[0] // 16, 3), dtype=np.uint8)
    image = Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(image)
    draw.rectangle((box[0], box[1], box[2] - 1, box[3] - 1), fill=(250, 250, 250))
    draw.text((box[0] + 4, box[1] + 4), text, fill=(0, 0, 0))
    return image


def _dim(image: Image.Image) -> Image.Image:
    return image.point([10 + round(level * 0.15) for level in range(256)] * 3)


@dataclass(frozen=True)
class FlawedSource:
    """Images with a sign: one as it should be, the others turned, dim, both, and far too large for their sign."""

    name: str = "flawed"
    n_shards: int = 1
    fingerprint: str = "flawed"

    def rows(self, shard: int) -> Iterator[SourceRow]:
        yield from _flawed_rows()


@cache
def _flawed_rows() -> tuple[SourceRow, ...]:
    box, large = (80, 60, 128, 84), (80, 60, 220, 124)
    quarter = Image.Transpose.ROTATE_90
    both = _dim(_signed(3, "A1B", box, (640, 480))).transpose(quarter)
    return (
        _flawed("plain", _signed(0, "A1B", large, (640, 480)), Truth(boxes=(TruthBox("sign", *large),))),
        _flawed("turned", _signed(1, "A1B", box, (640, 480)).transpose(quarter), Truth(angle=90)),
        _flawed("dim", _dim(_signed(2, "A1B", box, (640, 480))), Truth(contrast=0.15)),
        _flawed("both", both, Truth(angle=90, contrast=0.15)),
        _flawed("large", _signed(4, "A1B", box, (1280, 960)), Truth(boxes=(TruthBox("sign", *box),))),
    )


def _flawed(row: str, image: Image.Image, truth: Truth) -> SourceRow:
    return SourceRow(row, (encoded(image),), f"What does the {row} sign say?", "A1B", truth=truth, license="CC0")


@pytest.fixture
def flawed(workspace: Workspace) -> Callable[[str], Family]:
    """A family at work on the flawed images."""
    engine.intake(workspace, FlawedSource(), 0, PARTITION)
    return lambda family: Family(workspace, load_recipes()[family], PARTITION)


@pytest.fixture
def signs(workspace: Workspace, small_source: Any) -> Callable[[str], Family]:
    """A family at work on the small source: five samples, one of them without a box."""
    engine.intake(workspace, small_source, 0, PARTITION)
    return lambda family: Family(workspace, load_recipes()[family], PARTITION)


@pytest.fixture(scope="module")
def signs_chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], tuple[Family, Scripted]]]:
    """A family after all stages on the small source, and the oracle with its turns: for tests that only read."""
    home = str(tmp_path_factory.mktemp("signs"))
    with Workspace.from_environment({"DARKROOM_HOME": home}) as opened:
        engine.intake(opened, SmallSource(), 0, PARTITION)

        def run(name: str) -> tuple[Family, Scripted]:
            family, policy = Family(opened, load_recipes()[name], PARTITION), Scripted(oracle_script(name))
            run_all(family, policy)
            return family, policy

        yield run


@pytest.fixture(scope="session")
def kept() -> Callable[[Family], dict[str, Trajectory]]:
    """The accepted rows of a family by the source's row."""

    def read(family: Family) -> dict[str, Trajectory]:
        names = {sample.sample_id: sample.source_row for sample in family.shard.samples().values()}
        made = family.workspace.tables.read(family.key("trajectories"), Trajectory)
        return {names[row.sample_id]: row for row in made}

    return read


@pytest.fixture(scope="session")
def rejects() -> Callable[[Family], dict[str, Reject]]:
    """What a family rejected, by the source's row."""

    def read(family: Family) -> dict[str, Reject]:
        return {row.source_row: row for row in taken_out(family)}

    return read


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


@dataclass(frozen=True)
class DemoPart(DemoSource):
    """One question about each image of some kinds (``photo/cat`` is a ``photo``), for all families.

    `make e2e` works on all of the demo's rows.
    """

    n_shards: int = 1
    kinds: tuple[str, ...] = ()

    def _all(self) -> list[LazyRow]:
        return [row for row in super()._all() if row.name.count("/") == 1 and row.name.split("/")[0] in self.kinds]

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        """Dealt to no family."""
        return map(built, self._all())


@pytest.fixture(scope="module")
def demo_chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Family]]:
    """A family after all stages on the demo's rows of some kinds, written by the oracle."""
    with ExitStack() as workspaces:

        def run(recipe: Recipe, *kinds: str) -> Family:
            home = str(tmp_path_factory.mktemp(recipe.family))
            workspace = workspaces.enter_context(Workspace.from_environment({"DARKROOM_HOME": home}))
            engine.intake(workspace, DemoPart(kinds=kinds), 0, DEMO)
            family = Family(workspace, recipe, DEMO)
            run_all(family)
            return family

        yield run
