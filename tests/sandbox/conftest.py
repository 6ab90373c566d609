"""One pool for all tests of the sandbox; without the full tier they skip, with the reason that the doctor gives."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from darkroom.sandbox import Group, Limits, SandboxPool, Session
from darkroom.sandbox._guest.boxes import Repairs
from darkroom.sandbox._guest.video import VideoReader
from darkroom.sandbox.doctor import can_run, diagnose
from tests.sandbox.cells import Cell, take_back
from tests.sandbox.clips import X264, encode


@pytest.fixture(scope="session")
def full_tier() -> None:
    findings = diagnose()
    if not can_run("full", findings):
        reasons = [f"{finding.protection}: {finding.reason}" for finding in findings if not finding.works]
        pytest.skip(f"the full tier cannot run here: {'; '.join(reasons)}")


@pytest.fixture(scope="session")
def lite_tier() -> None:
    if not can_run("lite", diagnose()):
        pytest.skip("the lite tier cannot run here")


@pytest.fixture(scope="session")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2000x1500, with edges, colour and noise."""
    rows, columns = np.mgrid[0:1500, 0:2000]
    noise = np.random.default_rng(3).integers(0, 40, (1500, 2000))
    bands = [
        (columns // 8 + noise) % 256,
        (rows // 6 + noise) % 256,
        ((columns // 100 + rows // 100) % 2) * 200 + noise,
    ]
    path = tmp_path_factory.mktemp("photo") / "rotated_by_17_degrees.jpg"
    Image.fromarray(np.stack(bands, axis=-1).astype(np.uint8)).save(path, quality=90)
    return path


@pytest.fixture(scope="session")
def pool(full_tier: None) -> Iterator[SandboxPool]:
    with SandboxPool(limits=Limits(seconds=5), tier="full") as pool:
        yield pool


@pytest.fixture(scope="session")
def group(pool: SandboxPool, photo: Path) -> Iterator[Group]:
    with pool.group([photo]) as group:
        yield group


@pytest.fixture
def session(group: Group) -> Iterator[Session]:
    with group.session(seed=7) as session:
        yield session


@pytest.fixture
def cell() -> Iterator[Cell]:
    """Undone after each test: Pillow is everybody's."""
    repairs = Repairs(enabled=True)
    repairs.install()
    try:
        yield Cell(repairs)
    finally:
        take_back()


@pytest.fixture(scope="module")
def mp4(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return encode(tmp_path_factory.mktemp("mp4") / "a.mp4", **X264, g="12")


@pytest.fixture
def reader(mp4: Path) -> VideoReader:
    return VideoReader(str(mp4))
