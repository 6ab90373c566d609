"""Jobs as texts that a shell understands: for Slurm, Kubernetes and Ray."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import kubernetes_validate
import pytest
import yaml

from darkroom.assets.launching import LauncherResource
from darkroom.assets.launching.handoff import kubernetes_manifest, slurm_script
from darkroom.assets.launching.jobs import submission
from tests.assets.launching.launches import failure, run

pytestmark = pytest.mark.e2e
NASTY = 'it\'s "here" $HOME; `x`'


def script(folder: Path, log: Path) -> str:
    command = [sys.executable, "-c", "import os, sys; print(sys.argv[1:], os.environ['NOTE'], os.getcwd())", NASTY]
    launcher = LauncherResource(folder=str(folder), n_gpus=2, options="--time=1:00:00 --comment='a b'")
    return slurm_script(command, {"NOTE": NASTY}, launcher, name="darkroom-x", log=log)


def test_a_slurm_script_is_what_bash_understands_and_runs_the_very_command(tmp_path: Path) -> None:
    folder = tmp_path / "it's here"
    folder.mkdir()
    path = tmp_path / "job.sbatch"
    path.write_text(script(folder, tmp_path / "log-%j"))
    subprocess.run(["bash", "-n", str(path)], check=True)
    said = subprocess.run(["bash", str(path)], check=True, capture_output=True, text=True).stdout
    assert said.strip() == f"{[NASTY]} {NASTY} {folder}"


def test_a_slurm_script_asks_for_what_is_set() -> None:
    lines = script(Path("/code"), Path("/out/log-%j")).splitlines()
    asked = [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH")]
    assert asked == [
        "--job-name=darkroom-x",
        "--output=/out/log-%j",
        "--nodes=1",
        "--ntasks=1",
        "--gpus-per-node=2",
        "--time=1:00:00",
        "'--comment=a b'",
    ]
    assert lines[0] == "#!/bin/bash"


def test_a_kubernetes_manifest_runs_the_very_command_once_with_the_workspace_mounted() -> None:
    launcher = LauncherResource(folder="/code", image="registry/darkroom:1", claim="home", n_gpus=1)
    command = ["python", "-c", NASTY]
    text = kubernetes_manifest(command, {"NOTE": NASTY}, launcher, name="darkroom-x", home=Path("/data"))
    manifest = yaml.safe_load(text)
    kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
    pod = manifest["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (manifest["apiVersion"], manifest["kind"], manifest["spec"]["backoffLimit"]) == ("batch/v1", "Job", 0)
    assert container["command"] == ["python", "-c", NASTY]
    assert container["env"] == [{"name": "NOTE", "value": NASTY}]
    assert container["volumeMounts"] == [{"name": "home", "mountPath": "/data"}]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 1}}
    assert pod["volumes"][0]["persistentVolumeClaim"] == {"claimName": "home"}


def test_a_ray_job_is_a_line_that_a_shell_runs_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "it's here"
    folder.mkdir()
    command = [sys.executable, "-c", "import os, sys; print(sys.argv[1:], os.getcwd())", NASTY]
    body = submission(command, {"NOTE": NASTY}, LauncherResource(folder=str(folder)), name="darkroom-x")
    said = subprocess.run(body["entrypoint"], shell=True, check=True, capture_output=True, text=True).stdout
    assert said.strip() == f"{[NASTY]} {folder}"
    assert body["runtime_env"] == {"env_vars": {"NOTE": NASTY}}
    assert "entrypoint_num_gpus" not in body
    assert submission(command, {}, LauncherResource(n_gpus=4), name="x")["entrypoint_num_gpus"] == 4


def test_a_manifest_wants_an_image_and_a_claim(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    said = failure(run(tmp_path / "out", LauncherResource(kind="kubernetes"), instance))
    assert "DARKROOM_LAUNCH_IMAGE" in said


def test_no_key_is_written_into_a_job(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("DARKROOM_STUDIO_TOKEN", "t-secret")
    monkeypatch.setenv("DARKROOM_LEDGER", "postgresql://a:p-secret@db/x")
    launcher = LauncherResource(kind="kubernetes", image="i", claim="c", wait_hours=0.0)
    assert "kubectl create -f" in failure(run(tmp_path / "out", launcher, instance))
    text = (tmp_path / "out.job" / "1" / "job.yaml").read_text()
    assert "secret" not in text
    assert os.environ["DARKROOM_HOME"] in text
