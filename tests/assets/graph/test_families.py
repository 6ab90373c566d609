"""A family's assets when they are materialised: counts, checks, previews, errors."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from darkroom.assets.definitions import SFT, definitions
from darkroom.assets.graph.families import stage_key
from darkroom.assets.graph.stage_assets import check_conservation
from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.inspection.explain import explain
from darkroom.pipelines.records import Sample
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from tests.assets.conftest import PARTITION, add_signs, materialize_shard
from tests.conftest import SmallSource

pytestmark = pytest.mark.e2e

CROP = [stage_key("crop", stage) for stage in (*STAGES, "rejects")]
"""One family stands for all: the factory makes their assets alike."""


def materialize(instance: dg.DagsterInstance, **kwargs) -> dg.ExecuteInProcessResult:
    return materialize_shard(instance, SFT, asset_selection=CROP, **kwargs)


def metadata(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, object]:
    made = [
        event.step_materialization_data.materialization
        for event in result.get_asset_materialization_events()
        if event.asset_key and event.asset_key.to_user_string() == asset
    ]
    return {
        name: value.records if isinstance(value, dg.TableMetadataValue) else value.value
        for name, value in made[0].metadata.items()
    }


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which the family was materialised: made once, never changed, copied by ``worked``."""
    return tmp_path_factory.mktemp("family") / "home"


@pytest.fixture(scope="module")
def result(home: Path) -> Iterator[dg.ExecuteInProcessResult]:
    with (
        pytest.MonkeyPatch.context() as patched,
        Workspace.from_environment({"DARKROOM_HOME": str(home)}) as opened,
        dg.instance_for_test() as instance,
    ):
        patched.setenv("DARKROOM_HOME", str(home))
        add_signs(opened, SmallSource(), home.with_name("signs"))
        yield materialize(instance)


@pytest.fixture
def worked(result: dg.ExecuteInProcessResult, home: Path, workspace: Workspace) -> Workspace:
    """The test's own workspace, in which the family was materialised."""
    shutil.copytree(home, workspace.home, dirs_exist_ok=True)
    return workspace


def test_the_pages_show_counts_reasons_images_and_the_funnel(result: dg.ExecuteInProcessResult) -> None:
    samples, trajectories, rejects = (
        metadata(result, asset) for asset in ("samples", "crop/trajectories", "crop/rejects")
    )
    assert (samples["rows_in"], samples["rows_out"], samples["quarantined"]) == (6, 5, 1)
    assert "data:image/webp;base64," in str(samples["preview"])
    assert (trajectories["rows_in"], trajectories["rows_out"]) == (4, 4)
    assert "S0X" in str(trajectories["preview"])
    assert str(trajectories["funnel"]).count("4 (100%)") == 5, "a sample that the family does not take is no loss"
    assert (rejects["rows_out"], rejects["not_applicable"], "rejects_by_reason" in rejects) == (0, 1, False)
    records = [record.data for record in rejects["not_applicable_because"]]
    assert [(record["reason"], record["rows"]) for record in records] == [("not_applicable", 1)]


@pytest.mark.parametrize("asset", ["samples", "crop/rejects"])
def test_the_page_of_rejects_has_the_command_that_explains_each_reason(
    asset: str, result: dg.ExecuteInProcessResult, worked: Workspace
) -> None:
    page = metadata(result, asset)
    (record,) = page.get("rejects_by_reason") or page["not_applicable_because"]
    explained = explain(worked, shlex.split(record.data["more"])[-1])
    passages = [*explained.intake, *(passage for history in explained.histories for passage in history.passages)]
    assert record.data["reason"] in {passage.reason for passage in passages}


def test_the_page_says_how_often_questions_are_answered_without_aid(result: dg.ExecuteInProcessResult) -> None:
    for asset in ("crop/verdicts", "crop/trajectories"):
        page = metadata(result, asset)
        assert (page["needs_image_share_right"], page["needs_tools_share_right"]) == (0.0, 0.0)
        rows = [record.data for record in page["necessity"]]
        assert [(row["asked"], row["right"], row["rejected"]) for row in rows] == [
            ("with a blank image", "0 of 20 answers", 0),
            ("without tools", "0 of 16 answers", 0),
        ]


def test_every_conservation_check_passes(result: dg.ExecuteInProcessResult) -> None:
    evaluations = result.get_asset_check_evaluations()
    assert len(evaluations) == 5
    assert all(evaluation.passed for evaluation in evaluations)


def test_a_shard_that_was_not_read_yet_is_read_by_the_run(result: dg.ExecuteInProcessResult) -> None:
    events = result.get_asset_materialization_events()
    (read,) = [event.step_key for event in events if event.asset_key == dg.AssetKey(list(SAMPLES))]
    assert read == "crop__drafts"
    assert events[0].materialization.partition == PARTITION


@pytest.mark.usefixtures("worked")
def test_a_second_materialisation_reuses_every_table(instance: dg.DagsterInstance) -> None:
    again = materialize(instance)
    for asset in ("crop/drafts", "crop/runs", "crop/verdicts", "crop/trajectories", "crop/rejects"):
        assert metadata(again, asset)["reused"] is True, asset


def test_a_lost_row_fails_the_check(worked: Workspace) -> None:
    key, tables = TableKey(SAMPLES, PARTITION), worked.tables
    rows, facts = tables.read(key, Sample), tables.facts(key)
    tables.write(key, Sample, rows[1:], tables.read_rejects(key), inputs="tampered", facts=facts)
    assert not check_conservation(tables, key, n_in=facts["n_in"]).passed


def test_a_lost_row_stops_what_is_downstream(
    signs: Path, instance: dg.DagsterInstance, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from darkroom.pipelines.storage.tables import Tables

    n_rows = Tables.n_rows

    def one_less(tables: Tables, key: TableKey) -> int:
        return n_rows(tables, key) - (key.asset == ("crop", "drafts"))

    monkeypatch.setattr(Tables, "n_rows", one_less)
    result = materialize(instance, raise_on_error=False)
    assert not result.success
    assert not workspace.tables.exists(TableKey(("crop", "runs"), PARTITION))


def test_an_unknown_policy_is_said_when_the_definitions_load(monkeypatch: pytest.MonkeyPatch) -> None:
    from darkroom.pipelines.models.policies import PolicyUnavailable

    monkeypatch.setenv("DARKROOM_POLICY", "orakel")
    with pytest.raises(
        PolicyUnavailable, match="DARKROOM_POLICY is 'orakel': Input should be 'oracle', 'openai' or 'local'"
    ):
        definitions()


@pytest.mark.parametrize(
    ("settings", "variable"),
    [
        ({}, "DARKROOM_POLICY_URL"),
        ({"DARKROOM_POLICY_URL": "http://127.0.0.1:9/v1"}, "DARKROOM_POLICY_MODEL"),
        ({"DARKROOM_POLICY_URL": "https://api.example.com/v1", "DARKROOM_POLICY_MODEL": "m"}, "OPENAI_API_KEY"),
        ({"DARKROOM_POLICY_URL": "http://127.0.0.1:9/v1", "DARKROOM_POLICY_MODEL": "m"}, "DARKROOM_POLICY_URL"),
    ],
)
def test_a_policy_that_cannot_work_fails_the_drafts_and_names_the_variable(
    settings: dict[str, str],
    variable: str,
    signs: Path,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name, value in {"DARKROOM_POLICY": "openai", **settings}.items():
        monkeypatch.setenv(name, value)
    result = materialize(instance, raise_on_error=False)
    failures = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
    assert [event.step_key for event in result.all_events if event.is_step_failure] == ["crop__drafts"]
    assert variable in failures[0].to_string()
