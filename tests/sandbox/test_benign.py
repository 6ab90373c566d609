"""What model code does legitimately behaves in the sandbox as outside."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from darkroom.sandbox import Group, Observation, SandboxPool, Session
from tests.matrices import every_nth
from tests.sandbox.inputs import TRAJECTORIES, make_inputs

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
CELLS = json.loads((Path(__file__).parent / "cases" / "benign.json").read_text())

REFUSED_BY_THE_SCAN = {
    "remove": "import os\nopen('own.txt', 'w').write('x')\nos.remove('own.txt')",
    "rename": "import os\nopen('own.txt', 'w').write('x')\nos.rename('own.txt', 'own2.txt')",
}


@pytest.fixture(scope="module")
def notebook(group: Group) -> Iterator[Session]:
    with group.session(seed=1) as session:
        yield session


@pytest.fixture(scope="module")
def errors_outside(photo: Path) -> dict[str, str | None]:
    command = [sys.executable, "-m", "tests.sandbox.plain_python", str(photo)]
    return json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("name", CELLS)
def test_a_legitimate_cell_runs(notebook: Session, name: str) -> None:
    """One session for all of them: state is kept from cell to cell."""
    observation = notebook.run(CELLS[name])
    assert (observation.status, observation.error) == ("ok", None)


@pytest.mark.parametrize("case", every_nth(TRAJECTORIES, 6), ids=lambda case: case["name"])
def test_a_trajectory_gives_what_it_should(pool: SandboxPool, group: Group, photo: Path, case: dict) -> None:
    if not case.keys() & {"inputs", "names"}:
        check(group, case)
        return
    images = make_inputs(case) if "inputs" in case else [photo]
    with pool.group(images, names=case.get("names", ())) as own_group:
        check(own_group, case)


@pytest.mark.soak
@pytest.mark.parametrize("name", [case["name"] for case in TRAJECTORIES if not case.get("inside_only")])
def test_the_same_trajectory_runs_in_plain_python(errors_outside: dict[str, str | None], name: str) -> None:
    assert errors_outside[name] is None


@pytest.mark.parametrize("name", REFUSED_BY_THE_SCAN)
def test_own_files_may_be_deleted_and_renamed_only_where_the_pool_allows_it(
    session: Session, lenient: Session, name: str
) -> None:
    assert session.run(REFUSED_BY_THE_SCAN[name]).status == "blocked"
    assert lenient.run(REFUSED_BY_THE_SCAN[name]).ok


@pytest.fixture(scope="module")
def lenient(full_tier: None) -> Iterator[Session]:
    with SandboxPool(tier="full", scan="own_files") as pool, pool.group() as group, group.session() as session:
        yield session


def check(group: Group, case: dict) -> None:
    with group.session(seed=1) as session:
        observations = [session.run(code) for code in case["rounds"]]
    assert [(each.status, each.error) for each in observations] == [("ok", None)] * len(observations)
    check_expectations(observations[-1], **case.get("expect", {}))


def check_expectations(
    observation: Observation, images: list | None = None, text: str | None = None, contains: str = ""
) -> None:
    if images is not None:
        assert [list(image.pixels.size) for image in observation.images] == images
    if text is not None:
        assert observation.text == text
    assert contains in observation.text
