"""Released trajectories are executed again: those that replay become rows, the others rejects with check and place."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from darkroom.assets.cli import app
from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.generation.released import RELEASED, ReleasedPolicy, all_recipes
from darkroom.pipelines.records import Reject, Trajectory
from darkroom.pipelines.sources.catalog import Catalog, open_source, placed
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from tests.pipelines.scripted import run_all, taken_out
from tests.pipelines.sources import releases

PARTITION = "release-0000"
CODE, CALLS = RELEASED


@pytest.fixture
def rolled_out(tmp_path: Path, workspace: Workspace):
    """The trajectories that were kept of a release, and the rejects by file and line."""

    def run(name: str, rows, recipe) -> tuple[list[Trajectory], dict[str, Reject]]:
        path = releases.write(tmp_path / "release", rows)
        engine.intake(workspace, open_source("release", placed(name, path)), 0, PARTITION)
        family = Family(workspace, recipe, PARTITION)
        run_all(family, ReleasedPolicy())
        rejects = taken_out(family)
        return workspace.tables.read(family.key("trajectories"), Trajectory), {r.source_row: r for r in rejects}

    return run


@pytest.mark.e2e
def test_thymes_rows_replay_or_say_what_does_not(rolled_out):
    kept, rejects = rolled_out("thyme_sft", releases.THYME, CODE)
    assert [len(row.rounds) for row in kept] == [1, 1]
    assert {row.provenance.policy for row in kept} == {"released"}
    assert kept[0].rounds[0].observation.images[0].width == 160
    found = {place: (reject.reason, reject.check, reject.evidence) for place, reject in rejects.items()}
    assert {place: check for place, (_, check, _) in found.items()} == {
        "rows.jsonl:3": "replays_as_released",
        "rows.jsonl:4": "replays_as_released",
        "rows.jsonl:5": "replays_as_released",
        "rows.jsonl:6": "no_round_is_broken",
        "rows.jsonl:7": "hint_stays_hidden",
    }
    assert "other pixels" in found["rows.jsonl:3"][2]
    assert "160x120, released 50x50" in found["rows.jsonl:4"][2]
    assert "printed '42', released '43'" in found["rows.jsonl:5"][2]
    assert "ZeroDivisionError" in found["rows.jsonl:6"][2]


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("name", "rows", "n_kept"),
    [("deepeyes_calls", releases.DEEPEYES, 1), ("pixel_reasoner_sft", releases.PIXEL_REASONER, 2)],
)
def test_calls_of_other_tools_are_executed_as_ours(rolled_out, name, rows, n_kept):
    kept, rejects = rolled_out(name, rows, CALLS)
    assert [row.rounds[0].observation.images[0].height for row in kept] == [120] * n_kept
    assert len(rejects) == 1
    (reject,) = rejects.values()
    assert reject.check in ("replays_as_released", "no_round_is_broken")


@pytest.mark.e2e
def test_a_release_is_materialised_like_any_source(tmp_path, workspace):
    path = releases.write(tmp_path / "release", releases.THYME)
    Catalog(workspace.sources).add("release", placed("thyme_sft", path).model_copy(update={"license": "CC-BY-4.0"}))
    said = CliRunner().invoke(app, ["materialize", "release"])
    assert said.exit_code == 0, said.output
    card = (workspace.dataset("sft", "released_code") / "README.md").read_text()
    assert "| source release | 2 |" in card
    assert "| licence CC-BY-4.0 | 2 |" in card
    assert (
        "11 rows of the release: 7 could be read, 4 could not (malformed_row 1, malformed_turn 2, missing_image 1)"
        in card
    )
    assert re.search(r"`replays_as_released` \| 4 of 7 rows", card), card
    shipped = sorted(folder.name for folder in (workspace.home / "datasets" / "sft").iterdir())
    assert shipped == ["released_code"]
    audited = CliRunner().invoke(app, ["audit", "released_code"])
    assert (audited.exit_code, "0 findings" in audited.output) == (0, True), audited.output
    assert not workspace.tables.exists(TableKey(("crop", "drafts"), PARTITION))


def test_samples_of_other_sources_are_no_releases(workspace, small_source):
    engine.intake(workspace, small_source, 0, PARTITION)
    for recipe in RELEASED:
        report = Family(workspace, recipe, PARTITION).draft(ReleasedPolicy())
        assert (report.n_out, Counter(report.reasons)) == (0, Counter(not_applicable=report.n_in))


def test_families_of_releases_are_beside_the_recipes():
    assert {recipe.family for recipe in RELEASED} == all_recipes().keys() - load_recipes().keys()
    assert [recipe.protocol.name for recipe in RELEASED] == ["thyme", "tool_call"]
