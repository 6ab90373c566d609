"""A home in an object store, as users have it: commands in processes of their own, an S3 server on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from darkroom.assets.definitions import TRAIN, definitions
from darkroom.pipelines.storage.atomic_write import MARKER
from darkroom.pipelines.storage.store_paths import StorePath, store_path
from tests.conftest import SmallSource
from tests.object_store import ObjectStore, object_store_server

pytestmark = pytest.mark.e2e
DARKROOM = Path(sys.executable).with_name("darkroom")


def darkroom(*words: str, status: int = 0, **variables: str) -> str:
    """What the command says; on stderr where it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER_", "DARKROOM_"))}
    command = [str(DARKROOM), *words]
    done = subprocess.run(command, env=environment | variables, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr if status else done.stdout


@pytest.fixture(scope="module")
def signs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("signs")
    lines = []
    for n, row in enumerate(SmallSource().rows(0)):
        (folder / f"{n}.jpg").write_bytes(row.images[0])
        boxes = [[box.x1, box.y1, box.x2, box.y2] for box in row.truth.boxes]
        lines.append({"image": f"{n}.jpg", "question": row.question, "answer": row.answer, "boxes": boxes})
    (folder / "metadata.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def files(folder: StorePath) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".parquet"}


def test_everything_but_what_must_be_local_is_in_the_object_store(
    signs: Path, object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = store_path(object_store.url())
    remote = {"DARKROOM_HOME": str(home), "DARKROOM_LOCAL": str(tmp_path / "local")}
    local = {"DARKROOM_HOME": str(tmp_path / "home")}
    for variables in (remote, local):
        said = darkroom("ingest", str(signs), "--name", "signs", "--boxes", "boxes", "--license", "MIT", **variables)
        assert "6 rows: 5 samples, 1 rejects" in said
        darkroom("materialize", "signs", "--family", "crop", **variables)
    shipped, ours = home / "datasets" / "sft" / "crop", tmp_path / "home" / "datasets" / "sft" / "crop"
    assert files(shipped) == files(ours) != {}

    import datasets

    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", False)  # which forbids every URL, on loopback, too
    loaded = datasets.load_dataset("parquet", data_files={"train": f"{shipped}/train-*.parquet"}, split="train")
    assert {row["images"][0].size for row in loaded} == {(640, 480)}

    summary = darkroom("summary", **remote)
    assert f"everything   {home}"[:40] in summary.replace("\n", "")
    row = loaded[0]["trajectory_id"]
    explained = json.loads(darkroom("explain", row, "--json", **remote))
    assert [way["family"] for way in explained["histories"]] == ["crop"]
    assert explained["histories"][0]["calls"], "the ledger is local"
    assert f"audited: {home.protocol}://" in darkroom("audit", "crop", **remote)
    darkroom("replay", "crop", **remote)
    written_at = (shipped / MARKER).stat().st_mtime
    darkroom("materialize", "signs", "--family", "crop", **remote)
    assert (shipped / MARKER).stat().st_mtime == written_at, "finished work is not done again"
    exported = darkroom("export", "crop", "--layout", "llama_factory", **remote)
    assert str(tmp_path / "local" / "exports") in exported
    gallery = darkroom("gallery", "crop", "--rejects", **remote)
    assert str(tmp_path / "local" / "views") in gallery

    kept = {path.name for path in (tmp_path / "local").iterdir()}
    caches = {"image_cache", "same_images", "tables"}
    assert kept <= {"dagster", "datasets", "exports", "ledger.sqlite", "views"} | caches
    assert not [path for path in (tmp_path / "local").rglob("*.parquet") if "exports" not in path.parts]
    assert {path.name for path in home.iterdir()} == {"datasets", "images", "sources", "tables"}


@pytest.mark.soak
def test_training_reads_the_datasets_of_the_object_store_and_reports_there(
    signs: Path, object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, local = store_path(object_store.url()), tmp_path / "local"
    remote = {"DARKROOM_HOME": str(home), "DARKROOM_LOCAL": str(local), "DAGSTER_HOME": str(local / "dagster")}
    darkroom("ingest", str(signs), "--name", "signs", "--boxes", "boxes", "--license", "MIT", **remote)
    darkroom("materialize", "signs", "--family", "crop", "--train", **remote)
    assert {path.parent.name for path in (local / "checkpoints").glob("*/config.json")} == {"tiny", "sft", "grpo"}

    for name, value in remote.items():
        monkeypatch.setenv(name, value)
    settings = {"checkpoint": "sft", "datasets": ["sft/crop"], "split": "all", "limit": 1, "max_tokens": 32}
    with dg.DagsterInstance.get() as instance:
        definitions().resolve_job_def(TRAIN).execute_in_process(
            instance=instance,
            asset_selection=[dg.AssetKey("evaluation")],
            run_config={"ops": {"evaluation": {"config": settings}}},
        )
    report, ours = home / "evaluations" / "sft", local / "evaluations" / "sft"
    assert {path.name for path in report.iterdir()} == {path.name for path in ours.iterdir()} != set()
    assert {path.name for path in home.iterdir()} == {"datasets", "evaluations", "images", "sources", "tables"}


@pytest.mark.parametrize(
    ("url", "mend"),
    [
        ("s3:/bucket/home", "'s3:/bucket/home' is no URL: write s3://"),
        ("ftp://host/home", "expected a folder, or a URL with s3,"),
        ("s3://", "names no bucket: write s3://bucket/prefix"),
        ("gs://bucket/home", "Run: pip install 'darkroom-toolkit[gcs]'"),
        ("s3://gone-for-good/home", "s3://gone-for-good/home: its bucket does not exist. Create it"),
        ("/sys/darkroom", "Operation not permitted. To do: change its permissions"),
    ],
)
def test_a_home_that_cannot_be_used_is_said_in_one_line(url: str, mend: str, s3: ObjectStore, tmp_path: Path) -> None:
    said = darkroom("home", status=1, DARKROOM_HOME=url, DARKROOM_LOCAL="" if url[0] == "/" else str(tmp_path))
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert mend in said


def test_no_credentials_and_a_server_that_is_down_are_said_in_one_line(s3: ObjectStore, tmp_path: Path) -> None:
    local = {"DARKROOM_HOME": "s3://bucket/home", "DARKROOM_LOCAL": str(tmp_path)}
    nowhere = {"AWS_SHARED_CREDENTIALS_FILE": "/nonexistent", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    said = darkroom("summary", status=1, **local, **nowhere)
    assert said.count("\n") == 1
    assert "does not let you in" in said
    assert "set AWS_ACCESS_KEY_ID" in said
    said = darkroom("summary", status=1, **local, AWS_ENDPOINT_URL="http://127.0.0.1:9")
    assert said.count("\n") == 1
    assert "check the network and AWS_ENDPOINT_URL" in said


@pytest.mark.soak
def test_a_bucket_that_is_gone_stops_a_run_which_can_be_resumed(
    signs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with object_store_server() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        home = store_path(server.url())
        variables = {"DARKROOM_HOME": str(home), "DARKROOM_LOCAL": str(tmp_path)}
        darkroom("ingest", str(signs), "--name", "signs", "--boxes", "boxes", "--license", "MIT", **variables)
        server.kill()
        said = darkroom("materialize", "signs", "--family", "crop", status=1, **variables)
        assert said.count("\n") == 1
        assert "then run again: finished work is kept" in said
        server.start()  # with nothing in it: moto holds everything in memory
        server.make_bucket(home.path.split("/")[0])
        darkroom("ingest", str(signs), "--name", "signs", "--boxes", "boxes", "--license", "MIT", **variables)
        darkroom("materialize", "signs", "--family", "crop", **variables)
        assert files(home / "datasets" / "sft" / "crop")
