"""The summary lists the first of many rejects and counts the others; it counts the RL rows without reading them all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from darkroom.assets.terminal.summary import print_annotated_summary, print_intake, print_summary
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.publishing.rl_dataset import KEY as RL_ROWS
from darkroom.pipelines.records import Grader, Reject, RLRow, Sample, SuitabilityLabel, Truth
from darkroom.pipelines.records.reject_reasons import Reason, reject
from darkroom.pipelines.records.samples import bare_sample
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.terminal import SafeConsole


@pytest.fixture
def console() -> Console:
    return Console(width=200, record=True, file=StringIO())


def rejects(n_rows: int, source: str, stage: str = "samples") -> Iterator[Reject]:
    for n in range(n_rows):
        yield reject(Reason.DUPLICATE, "the same", stage=stage, row={}, source=source, source_row=f"row/{n}")


def test_of_many_rejects_the_first_are_listed_and_the_others_counted(workspace: Workspace, console: Console) -> None:
    keys = [TableKey(SAMPLES, f"streets-000{n}") for n in range(2)]
    for key in keys:
        facts = {"n_in": 40, "n_out": 0, "n_not_applicable": 0}
        workspace.tables.write(key, Sample, [], rejects(40, "streets"), inputs="", facts=facts)
    print_intake(console, workspace, keys)
    text = console.export_text()
    assert "80 rows: 0 samples, 80 rejects" in text
    assert text.count("duplicate") == 50
    assert "… and 30 more:" in text


def test_rows_of_different_shards_that_contradict_each_other_are_counted(
    workspace: Workspace, console: Console
) -> None:
    keys = [TableKey(SAMPLES, f"streets-000{n}") for n in range(3)]
    for key, answer in zip(keys, ("red", "blue", "red"), strict=True):
        sample = bare_sample(answer, "Which colour?", source_row=f"row/{key.partition[-1]}", answer=answer)
        facts = {"n_in": 1, "n_out": 1, "n_not_applicable": 0, "notes": {"lines": [[1, "column id not read", "row"]]}}
        workspace.tables.write(key, Sample, [sample], [], inputs="", facts=facts)
    assert print_intake(console, workspace, keys) == 3
    text = console.export_text()
    assert re.search(
        r"1 +another answer to the same question about the same images *\n +row/0 says 'red', row/1 'blue'", text
    )
    assert re.search("3 +column id not read", text)


def test_annotated_rows_and_rejects_are_those_that_people_wrote(workspace: Workspace, console: Console) -> None:
    sample = Sample("id", "streets", "1", "CC0", (), "Which?", (), "This", Truth(), "OCR")
    label = SuitabilityLabel("id", True, "yes", 5, 3, 0, "judge")
    public = RLRow(sample, Grader("text"), "public", "hard", None, None, label)
    annotated = replace(public, origin="annotated", difficulty="unknown", suitability=None)
    both = [*rejects(3, "annotation/streets"), *rejects(2, "streets")]
    workspace.tables.write(RL_ROWS, RLRow, [public, annotated, annotated], both, inputs="", facts={})
    print_annotated_summary(console, workspace)
    text = console.export_text()
    assert "accepted records: 2 RL rows, 3 rejected" in text
    assert text.count("the same") == 3
    for line in (
        "annotated by       people",
        "origin             annotated 2, public 1",
        "grader             text 3",
        "suitable           true 1",
    ):
        assert line in text


def test_a_narrow_terminal_gets_every_column(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    key = TableKey(SAMPLES, "streets-0000")
    facts = {"n_in": 1, "n_out": 0}
    workspace.tables.write(key, Sample, [], rejects(1, "streets"), inputs="", facts=facts)
    monkeypatch.setenv("COLUMNS", "20")
    output = StringIO()
    print_summary(SafeConsole(file=output), workspace, list(load_recipes().values()), ["streets-0000"])
    lines = output.getvalue().splitlines()
    assert all(any(line.startswith(family[:5]) for line in lines) for family in load_recipes())
    assert "…" not in output.getvalue()


@pytest.mark.parametrize("width", [60, 80])
def test_no_name_is_broken_in_a_terminal_of_this_width(workspace: Workspace, width: int) -> None:
    key, stage = TableKey(SAMPLES, "streets-0000"), "further_enhancement/trajectories"
    workspace.tables.write(key, Sample, [], rejects(3, "streets", stage), inputs="", facts={"n_in": 3, "n_out": 0})
    output = StringIO()
    print_summary(Console(width=width, file=output), workspace, list(load_recipes().values()), ["streets-0000"])
    lines = [line.rstrip() for line in output.getvalue().splitlines()]
    assert f"3  {stage}: duplicate" in lines
    assert "   row/0: the same" in lines
    assert {line.partition(" ")[0] for line in lines} >= set(load_recipes())


def test_rows_that_are_not_applicable_stand_apart_from_rejects(workspace: Workspace) -> None:
    key = TableKey(("crop", "drafts"), "streets-0000")
    rows = [reject(Reason.NOT_APPLICABLE, "no box", stage="crop/drafts", row={}, family="crop", source_row="row/0")]
    rows += rejects(1, "streets", "crop/drafts")
    workspace.tables.write(key, Sample, [], rows, inputs="", facts={"n_in": 2, "n_out": 0})
    output = StringIO()
    print_summary(Console(width=80, file=output), workspace, list(load_recipes().values()), ["streets-0000"])
    lines = [line.strip() for line in output.getvalue().splitlines()]
    assert "1  crop/drafts: duplicate" in lines
    (title,) = (place for place, line in enumerate(lines) if line.startswith("Not applicable"))
    assert lines[title + 1 : title + 3] == ["1  crop", "row/0: no box"]
