"""The README is checked against the code: every command, target, variable and image that it names is there."""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import requires
from pathlib import Path
from typing import get_args

import pytest
import typer.main
from packaging.requirements import Requirement

from darkroom.assets.cli import app
from darkroom.assets.clusters.placement import RunSettings
from darkroom.assets.clusters.programs import LauncherResource
from darkroom.pipelines.models.policies.settings import EndpointSettings, Role
from darkroom.pipelines.storage.settings import WorkspaceSettings

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PACKAGES = ("pipelines", "assets", "annotation", "sandbox", "train")
SOURCES = [path for folder in (*PACKAGES, "examples/adapters") for path in (ROOT / folder).rglob("*.py")]


def test_every_make_target_of_the_readme_is_there() -> None:
    targets = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z0-9]+)", README))
    assert {"demo", "test"} <= named <= targets


def test_every_command_of_the_readme_is_there() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, rest in re.findall(r"darkroom ([a-z-]+) ?([a-z-]*)", README):
        assert name in commands, name
        inner = getattr(commands[name], "commands", {})
        assert not inner or rest in inner, f"{name} {rest}"


def test_every_command_line_option_of_the_readme_is_there() -> None:
    ingest = typer.main.get_command(app).commands["ingest"]  # type: ignore[attr-defined]
    known = {option for parameter in ingest.params for option in parameter.opts}
    line = next(line for line in README.splitlines() if line.startswith(".venv/bin/darkroom ingest"))
    assert set(re.findall(r"--[a-z-]+", line)) <= known


def test_every_module_that_the_readme_runs_is_there() -> None:
    for module in re.findall(r"python -m ([a-z.]+)", README):
        assert (ROOT / module.replace(".", "/")).with_suffix(".py").exists(), module


def test_every_setting_is_on_the_settings_page_and_in_the_code() -> None:
    code = "\n".join(path.read_text() for path in SOURCES)
    used = {name for name in re.findall(r"\bDARKROOM_[A-Z_]+\b", code) if not name.endswith("_")}
    used -= {"DARKROOM_EXCHANGE", "DARKROOM_STATUS_SECONDS"}  # set for programs that are launched, never by a user
    used -= {"DARKROOM_LAUNCH_GPUS"}  # of an earlier version, read for DARKROOM_RUN_GPUS
    used |= {f"DARKROOM_{role}" for role in get_args(Role)}
    used |= {*EndpointSettings.variables("DARKROOM_POLICY").values(), *WorkspaceSettings.variables("DARKROOM").values()}
    used |= set(LauncherResource.variables("DARKROOM_LAUNCH_").values())
    used |= set(RunSettings.variables("DARKROOM_RUN_").values())
    documented = set(re.findall(r"\bDARKROOM_[A-Z_]+\b", (ROOT / "docs" / "settings.md").read_text()))
    assert used == documented


@pytest.mark.parametrize("name", re.findall(r"\]\((docs/[^)]+)\)", README))
def test_every_image_and_page_of_the_readme_is_there(name: str) -> None:
    assert (ROOT / name).stat().st_size > 0


def test_make_help_lists_every_target() -> None:
    said = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    for target in phony[1].split():
        assert f"make {target} " in said, target


def locked(name: str) -> dict[str, str]:
    """Versions by package; nothing else stands in a lock file."""
    lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)
    return dict(line.split("==") for line in lines)


def test_the_lock_holds_versions_only() -> None:
    assert locked("requirements.lock")["torch"] == "2.13.0"


def test_the_environment_with_vllm_computes_with_our_versions() -> None:
    """Else the same code in the sandbox, or the same seed in training, could give something else."""
    ours, with_vllm = locked("requirements.lock"), locked("train/launch/vllm.lock")
    assert {name for name in ours.keys() & with_vllm.keys() if ours[name] != with_vllm[name]} == {"fastapi"}
    on_cpu = locked("train/launch/vllm_cpu.lock")
    assert {name for name, version in on_cpu.items() if with_vllm.get(name, version) != version} == {"setuptools"}
    assert on_cpu["vllm-cpu"] == with_vllm["vllm"]
    [bounds] = [Requirement(text) for text in requires("trl") or () if text.startswith("vllm")]
    assert bounds.specifier.contains(with_vllm["vllm"]), "the versions that TRL says it supports"


def test_every_direct_dependency_has_its_line_in_the_docs() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    text = (ROOT / "docs" / "dependencies.md").read_text()
    for requirement in declared:
        name = re.split(r"[\[<>=~ ]", requirement)[0]
        if name == project["name"]:
            continue  # an extra that takes another one
        assert re.search(rf"\b{re.escape(name)}\b", text), name
