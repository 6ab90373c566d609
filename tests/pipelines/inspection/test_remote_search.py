"""Of a home in an object store the bytes are fetched that are needed, counted at the client."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator

import pytest
from rich.console import Console

from darkroom.assets.terminal.summary import print_summary
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.inspection.explain import explain
from darkroom.pipelines.records import Reject, Sample, Truth
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import Reason, reject
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from tests.matrices import first_quickly
from tests.object_store import s3_traffic

N_ROWS = 6_000
KEY = TableKey(SAMPLES, "signs-0000")
CROP = [load_recipes()["crop"]]


def sample(n: int) -> Sample:
    question = random.Random(n).randbytes(700).hex()
    return Sample(digest(n), "signs", f"row/{n}", "", (), question, (), "yes", Truth(), "")


def rejects() -> Iterator[Reject]:
    for n in range(N_ROWS):
        row = {"text": random.Random(n).randbytes(700).hex()}
        yield reject(Reason.DUPLICATE, "the same", stage="samples", row=row, source="signs", source_row=f"gone/{n}")


@pytest.fixture
def remote(s3, tmp_path) -> Iterator[Workspace]:
    environment = {"DARKROOM_HOME": s3.url(), "DARKROOM_LOCAL": str(tmp_path / "local")}
    with Workspace.from_environment(environment) as opened:
        yield opened


@pytest.fixture
def n_bytes(remote, workspace) -> int:
    """Of the tables, which both homes have."""
    facts = {"n_in": 2 * N_ROWS, "n_out": N_ROWS}
    for each in (remote, workspace):
        each.tables.write(KEY, Sample, map(sample, range(N_ROWS)), rejects(), inputs="a", facts=facts)
    return sum(path.stat().st_size for path in (workspace.home / "tables" / "samples").iterdir())


def said(workspace: Workspace) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    print_summary(console, workspace, CROP, [KEY.partition])
    return console.export_text().replace(str(workspace.home), "HOME").replace(str(workspace.local), "LOCAL")


@pytest.mark.parametrize("query", first_quickly(["row/4321", digest(4321)[:12], f"gone/{N_ROWS - 1}"]))
def test_explain_fetches_ids_and_the_row_groups_of_the_row(remote, workspace, n_bytes, query):
    expected = explain(workspace, query)
    with s3_traffic() as traffic:
        assert explain(remote, query) == expected
    assert 0 < traffic.n_bytes < n_bytes / 3  # the ids of all rows are more than a fifth


def test_the_summary_fetches_no_rejected_row(remote, workspace, n_bytes):
    with s3_traffic() as traffic:
        shown = said(remote)
    assert "6,000" in shown
    assert [line for line in shown.splitlines() if "gone/" in line] == [
        line for line in said(workspace).splitlines() if "gone/" in line
    ]
    assert 0 < traffic.n_bytes < n_bytes / 4
