"""What model code does legitimately behaves in the sandbox as outside. One session, state kept from cell to cell."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import Group, SandboxPool, Session

CELLS = json.loads((Path(__file__).parent / "cases" / "benign.json").read_text())

REFUSED_BY_THE_SCAN = {
    "remove": "import os\nopen('own.txt', 'w').write('x')\nos.remove('own.txt')",
    "rename": "import os\nopen('own.txt', 'w').write('x')\nos.rename('own.txt', 'own2.txt')",
}


@pytest.fixture(scope="module")
def notebook(group: Group) -> Iterator[Session]:
    with group.session(seed=1) as session:
        yield session


@pytest.mark.parametrize("name", CELLS)
def test_a_legitimate_cell_runs(notebook: Session, name: str) -> None:
    observation = notebook.run(CELLS[name])
    assert (observation.status, observation.error) == ("ok", None)


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
