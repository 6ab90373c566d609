"""The annotation assets in Dagster, from a journal; the server's part is in tests/e2e/annotation."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import datasets
import pytest
from typer.testing import CliRunner

from darkroom.annotation.rounds.accepted_source import AcceptedSource, read_accepted
from darkroom.annotation.rounds.campaign import EXAMPLE
from darkroom.annotation.rounds.image_pool import POOL
from darkroom.assets.cli import app
from darkroom.assets.definitions import BUNDLED_RECORDING, FINISHED_ANNOTATIONS, RECORDED_ANNOTATIONS, definitions
from darkroom.assets.graph.annotation import JOB, annotation_sync
from darkroom.assets.graph.resources import WorkspaceResource
from darkroom.pipelines.demo.images.charts import charts
from darkroom.pipelines.demo.images.material import photographs
from darkroom.pipelines.publishing.rl_dataset import rl_folder
from darkroom.pipelines.records import PoolImage
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.storage.workspace import Workspace
from tests.annotation.desk import ANN, BOB, EVE, Desk, accepts, box, record
from tests.assets.graph.test_families import metadata
from tests.batch_service import BatchService
from tests.conftest import textured

pytestmark = pytest.mark.e2e

SIZE = (2400, 1600)


@pytest.fixture
def campaign(workspace: Workspace) -> Path:
    folder = workspace.annotation / "images"
    folder.mkdir(parents=True)
    for seed in range(2):
        textured(seed, SIZE).save(folder / f"{seed}.jpg")
    (folder / "small.jpg").write_bytes((folder / "0.jpg").read_bytes())
    (workspace.annotation / "campaign.yaml").write_text(EXAMPLE.read_text())
    return folder


def run(instance: dg.DagsterInstance, *assets: str) -> dg.ExecuteInProcessResult:
    keys = [dg.AssetKey([asset]) for asset in assets]
    job = definitions().resolve_implicit_global_asset_job_def()
    return job.execute_in_process(instance=instance, asset_selection=keys)


@pytest.fixture
def pool(campaign: Path, instance: dg.DagsterInstance, workspace: Workspace) -> list[PoolImage]:
    found = metadata(run(instance, "annotation_pool"), "annotation_pool")
    assert (found["rows_in"], found["rows_out"], found["rejected"]) == (3, 2, 1)
    return workspace.tables.read(POOL, PoolImage)


def frameless(result: list) -> list:
    """The same on any image: boxes without the frame that they were drawn on."""
    return [{name: value for name, value in one.items() if not name.startswith("original")} for one in result]


def test_the_pages_show_counts_images_and_quality(
    pool: list[PoolImage], instance: dg.DagsterInstance, workspace: Workspace
) -> None:
    desk = Desk(workspace.annotation, item=pool[0].image.sha256, size=SIZE)
    desk.submit(desk.hand_out(), ANN, frameless(record()))
    desk.submit(desk.hand_out(), BOB, frameless(accepts()))
    task = desk.hand_out()
    desk.submit(task, EVE, frameless(accepts()))
    desk.submit(task, EVE, [box()])
    job = definitions().resolve_job_def(JOB)
    result = job.execute_in_process(instance=instance)
    written, accepted = metadata(result, "annotations"), metadata(result, "accepted_annotations")
    assert (written["rows_in"], written["rows_out"], written["quarantined"]) == (2, 1, 1)
    assert (accepted["rows_in"], accepted["rows_out"]) == (1, 1)
    assert "data:image/webp;base64," in str(accepted["preview"])
    assert "data:image/png;base64," in str(accepted["plot_rounds"])
    people = {row.data["person"]: row.data for row in accepted["people"]}
    assert {"ann", "bob", "eve"} <= {str(address).partition("@")[0] for address in people}
    assert metadata(result, "refused_submissions")["rows_out"] == 1
    assert all(check.passed for check in result.get_asset_check_evaluations())


def test_without_a_server_the_bundled_recording_makes_the_tables(
    workspace: Workspace, instance: dg.DagsterInstance
) -> None:
    drawn = [lazy for lazy in charts(0) if lazy.name in ("chart/02", "chart/03", "chart/04")]
    for lazy in (*drawn, *photographs("photo", 0)):
        (data,) = lazy.build().images
        assert isinstance(data, bytes)
        workspace.images.ingest(data)
    steps = {step: {"config": config} for step, config in BUNDLED_RECORDING.items()}
    job = definitions().resolve_job_def(RECORDED_ANNOTATIONS)
    for _ in range(2):
        result = job.execute_in_process(instance=instance, run_config={"ops": steps})
        pool, accepted = metadata(result, "annotation_pool"), metadata(result, "accepted_annotations")
        assert (pool["rows_in"], pool["rows_out"], pool["quarantined"]) == (29, 5, 24)
        assert (accepted["rows_in"], accepted["rows_out"]) == (4, 4)
        assert pool["annotations"] == accepted["annotations"] == "recorded export, bundled"
        assert "simulated people" in str(accepted["note"])
        assert all(check.passed for check in result.get_asset_check_evaluations())
    assert {(row.source, row.category) for row in read_accepted(workspace).samples} == {
        ("annotation/demo", "chart"),
        ("annotation/demo", "object"),
    }


def test_the_job_of_the_recording_takes_it_without_being_told(
    workspace: Workspace, instance: dg.DagsterInstance
) -> None:
    result = definitions().resolve_job_def(RECORDED_ANNOTATIONS).execute_in_process(instance=instance)
    assert metadata(result, "annotation_pool")["quarantined"] == 29
    assert metadata(result, "accepted_annotations")["rows_out"] == 0


def test_the_sensor_says_what_is_missing(campaign: Path, workspace: Workspace, instance: dg.DagsterInstance) -> None:
    def tick() -> str:
        context = dg.build_sensor_context(instance=instance, resources={"workspace": WorkspaceResource()})
        said = annotation_sync(context)
        assert isinstance(said, dg.SkipReason)
        return said.skip_message or ""

    assert tick() == "there is no pool yet: materialise annotation_pool"
    run(instance, "annotation_pool")
    assert "start one with `darkroom annotate up`" in tick()


def test_pre_annotations_without_a_policy_say_what_to_set(pool: list[PoolImage], instance: dg.DagsterInstance) -> None:
    job = definitions().resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(
        instance=instance, asset_selection=[dg.AssetKey(["pre_annotations"])], raise_on_error=False
    )
    assert not result.success
    assert "DARKROOM_POLICY_URL" in str(result.failure_data_for_node("pre_annotations"))


def test_pre_annotations_that_wait_for_a_batch_are_no_failure(
    pool: list[PoolImage], workspace: Workspace, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = workspace.annotation / "campaign.yaml"
    campaign.write_text(campaign.read_text() + "\npre_annotate: pixels\n")
    with BatchService().serving() as service:
        for name, value in {"": "openai", "_URL": service.url, "_MODEL": "mock", "_BATCH": "openai"}.items():
            monkeypatch.setenv(f"DARKROOM_POLICY{name}", value)
        result = run(instance, "pre_annotations")
    assert result.success
    assert not result.get_asset_materialization_events()
    (check,) = result.get_asset_check_evaluations()
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert check.metadata["rows_pending"].value == len(pool)


@pytest.fixture
def accepted(pool: list[PoolImage], workspace: Workspace) -> PoolImage:
    """The one of two images whose record has been accepted."""
    desk = Desk(workspace.annotation, item=pool[0].image.sha256, size=SIZE)
    results = (frameless([box(), box(x=30), *record()[1:]]), frameless(accepts()[:-1]), frameless(accepts()[:-1]))
    for person, result in zip((ANN, BOB, EVE), results, strict=True):
        desk.submit(desk.hand_out(), person, result)
    return pool[0]


def darkroom(*words: str) -> tuple[int, str]:
    said = CliRunner().invoke(app, [*words], env={"COLUMNS": "200"})
    return said.exit_code, said.output


def test_what_people_accepted_is_an_rl_dataset_with_one_command(accepted: PoolImage, workspace: Workspace) -> None:
    code, said = darkroom("annotate", "finish")
    assert code == 0, said
    assert "accepted records: 1 RL rows, 0 rejected" in said
    [row] = datasets.load_dataset(str(rl_folder(workspace)), split="train")
    assert (row["question"], row["answer"], row["origin"]) == ("What does the sign say?", "42", "annotated")
    code, said = darkroom("annotate", "finish")
    assert (code, said.count("(unchanged)")) == (0, 5), said


def test_the_job_of_the_graph_does_what_the_command_does(
    accepted: PoolImage, workspace: Workspace, instance: dg.DagsterInstance
) -> None:
    result = definitions().resolve_job_def(FINISHED_ANNOTATIONS).execute_in_process(instance=instance)
    assert metadata(result, "accepted_annotations")["rows_out"] == metadata(result, "rl_dataset")["rows_out"] == 1


def test_a_campaign_without_an_accepted_record_is_told_what_it_waits_for(pool: list[PoolImage]) -> None:
    code, said = darkroom("annotate", "finish")
    assert (code, "no record is accepted yet, of 2 images" in said) == (1, True), said


def test_a_workspace_without_a_campaign_is_told_where_to_begin(workspace: Workspace) -> None:
    remedies = {
        ("annotate", "finish"): "Run: darkroom annotate sync",
        ("rl", "annotated"): "`darkroom annotate finish`",
    }
    for words, remedy in remedies.items():
        code, said = darkroom(*words)
        assert (code, remedy in said) == (1, True), said


def test_accepted_boxes_are_a_source_once_there_are_any(accepted: PoolImage, workspace: Workspace) -> None:
    catalog = Catalog(workspace.sources)
    assert "accepted_annotations-0000" not in catalog.partitions()
    darkroom("annotate", "finish")
    assert catalog.partitions()["accepted_annotations-0000"] == ("accepted_annotations", 0)
    [row] = AcceptedSource(workspace).rows(0)
    assert isinstance(row, SourceRow)
    assert (row.question, row.answer, row.category, row.license) == (
        "What does the sign say?",
        "42",
        "ocr",
        accepted.license,
    )
    [around] = row.truth.boxes
    assert tuple(around.box) == (240, 320, 816, 368), "a crop shows both boxes"
    assert "example.com" not in repr(row)
    (workspace.home / "images" / accepted.image.sha256[:2] / accepted.image.sha256).unlink()
    [lost] = AcceptedSource(workspace).rows(0)
    assert isinstance(lost, BadRow)
    assert lost.reason == "missing_image"
