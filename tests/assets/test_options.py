"""The optional assets of a workspace: what its sources, settings and tables name."""

from __future__ import annotations

import dagster as dg
import pytest

from darkroom.annotation.rounds.campaign import EXAMPLE, FILE, Campaign
from darkroom.assets.definitions import ALL, Options, definitions
from darkroom.pipelines.sources.catalog import Catalog, public_source
from darkroom.pipelines.storage.workspace import Workspace

NONE = Options(*[False] * 5)


def options(workspace: Workspace) -> set[str]:
    present = Options.of(workspace)
    return {name for name in Options.__dataclass_fields__ if getattr(present, name)}


def test_a_fresh_workspace_has_none(workspace: Workspace) -> None:
    assert Options.of(workspace) == NONE


@pytest.mark.parametrize(
    ("table", "names"),
    [
        ("released_code/drafts", {"releases"}),
        ("annotation_pool", {"annotation"}),
        ("pre_annotations", {"pre_annotations"}),
        ("expert_reviews", {"expert_reviews"}),
        ("street_signs", {"street_signs"}),
        ("crop/drafts", set()),
    ],
)
def test_what_has_tables_stays(workspace: Workspace, table: str, names: set[str]) -> None:
    (workspace.home / "tables" / table).mkdir(parents=True)
    assert options(workspace) == names


def test_a_source_of_released_trajectories_brings_their_families(workspace: Workspace) -> None:
    Catalog(workspace.sources).add("streets", public_source("thyme_sft"))
    assert options(workspace) == {"releases"}


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("", {"annotation", "expert_reviews"}),
        ("pre_annotate: pixels", {"annotation", "expert_reviews", "pre_annotations"}),
        ("pre_annotate: [", {"annotation", "expert_reviews", "pre_annotations"}),
    ],
)
def test_a_campaign_brings_what_it_asks_for(workspace: Workspace, line: str, names: set[str]) -> None:
    workspace.annotation.mkdir(parents=True)
    Campaign.write(EXAMPLE, workspace.annotation / FILE)
    with (workspace.annotation / FILE).open("a") as file:
        file.write(line)
    assert options(workspace) == names


@pytest.mark.parametrize("present", [NONE, ALL], ids=["none", "all"])
def test_the_graph_loads_and_every_asset_in_it_can_be_materialised(workspace: Workspace, present: Options) -> None:
    graph = definitions(present).resolve_asset_graph()
    dg.Definitions.validate_loadable(definitions(present))
    assert all(graph.get(key).is_materializable for key in graph.get_all_asset_keys())
