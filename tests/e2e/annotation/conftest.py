"""One Label Studio for all files of this folder, which one worker runs (`tests/workers.py`).

``DARKROOM_TEST_POSTGRES=1`` runs it on PostgreSQL, from Debian's package, instead of SQLite.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from darkroom.annotation.label_studio.server import LabelStudioServer, server_of
from darkroom.pipelines.storage.workspace import Workspace
from tests.e2e.annotation.studio import N_IMAGES, database, image
from tests.own_studio import running
from tests.ports import free_port


@pytest.fixture(scope="session")
def environments(root: Path) -> Path:
    """Where Label Studio is installed: once per checkout, not once per test."""
    return Path(os.environ.get("DARKROOM_HOME") or root / "data").absolute() / "environments"


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("annotation") / "home"
    (folder / "annotation" / "images").mkdir(parents=True)
    for number in range(N_IMAGES):
        image(number).save(folder / "annotation" / "images" / f"{number:03d}.jpg", quality=80)
    Image.new("1", (20_001, 10_000)).save(folder / "annotation" / "images" / "poster.png")
    (folder / "annotation" / "campaign.yaml").write_text(
        "name: streets\nimages: [{path: images, source: ours, license: CC0-1.0}]\ngold_share: 0.2\n"
    )
    return folder


@pytest.fixture(scope="session")
def server(home: Path, environments: Path) -> Iterator[LabelStudioServer]:
    environment = {"DARKROOM_HOME": str(home), "DARKROOM_ENVIRONMENTS": str(environments)}
    studio = server_of(Workspace.from_environment(environment))
    with database() as url, running(studio, port=free_port(), database=url):
        yield studio
