"""Everything here is marked ``e2e``: it needs Debian packages or servers, which ``make e2e`` installs and starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest

from scripts.screenshots import browser
from tests import postgres
from tests.e2e.demo_runs import demo
from tests.e2e.slurm_cluster import slurm_cluster
from tests.postgres import Postgres

ROOT = Path(__file__).resolve().parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:  # of all folders: a path of each would take longer than the rest
        if item.nodeid.startswith("tests/e2e/"):
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, root: Path) -> tuple[Path, str]:
    """One whole demo, for the files that `tests/workers.py` gives to one worker; what it printed."""
    home = tmp_path_factory.mktemp("undisturbed")
    return home, demo(root, home)


@pytest.fixture
def clean_environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has set nothing, with data in a folder of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DARKROOM_", "DAGSTER_"))}
    bin_folder = str(Path(sys.executable).parent)
    return {
        **kept,
        "PATH": f"{bin_folder}{os.pathsep}{kept['PATH']}",
        "VIRTUAL_ENV": str(Path(sys.executable).parents[1]),
        "DARKROOM_HOME": str(tmp_path / "home"),
        "DAGSTER_HOME": str(tmp_path / "home" / "dagster"),
    }


@pytest.fixture
def run(root: Path, clean_environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command in the repository as a user would; fails with its output unless told otherwise."""

    def _run(*command: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            cwd=root,
            env={**clean_environment, **environment},
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        if check and done.returncode:
            pytest.fail(
                f"{' '.join(command)} exited with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
            )
        return done

    return _run


@pytest.fixture
def photos(tmp_path: Path, small_source) -> Path:
    """A folder of a user's own images with questions."""
    folder = tmp_path / "photos"
    small_source.write(folder)
    return folder


@pytest.fixture(scope="session")
def chromium() -> str:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed; `make e2e` installs it")
    return program


@pytest.fixture(scope="module")
def port(chromium: str) -> Iterator[int]:
    """The debugging port of a browser that the tests of a file share."""
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[Postgres]:
    try:
        with postgres.postgres_server() as started:
            yield started
    except postgres.PostgresMissing as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The configuration of a cluster of one node."""
    with slurm_cluster(tmp_path_factory.mktemp("slurm")) as configuration:
        yield configuration


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as made:
        yield made
