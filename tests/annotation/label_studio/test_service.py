"""The files that keep a server running: systemd units of a workspace, and the compose file of `darkroom new`."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from darkroom.annotation import AnnotationError
from darkroom.annotation.label_studio.server_files import UNITS, quoted, service_units
from darkroom.pipelines.storage.workspace import Workspace
from tests.command_lines import ANNOTATE as app

EXAMPLE = Path(__file__).parents[3] / "examples" / "annotation_team"


def lines(unit: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in unit.splitlines() if "=" in line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


def test_a_unit_starts_the_server_of_its_workspace_in_the_foreground(workspace: Workspace) -> None:
    server, sync = (lines(unit) for unit in service_units(workspace, {}).values())
    assert server["ExecStart"].endswith('/darkroom" annotate up --foreground')
    assert sync["ExecStart"].endswith('/darkroom" annotate sync --every 60')
    for unit in (server, sync):
        assert unit["Environment"] == f'"DARKROOM_HOME={workspace.home.absolute()}"'
        assert unit["Restart"] == "on-failure"


def test_what_a_path_holds_is_no_syntax_of_the_unit(tmp_path: Path) -> None:
    home = tmp_path / 'a "b" 100% \\c'
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        unit = lines(service_units(workspace, {})[UNITS[0]])
    assert unit["Environment"].endswith(r'/a \"b\" 100%% \\c"')
    with pytest.raises(AnnotationError, match="cannot hold"):
        quoted("a\nExecStartPre=b")


def test_secrets_of_the_environment_stay_out_of_the_units(workspace: Workspace) -> None:
    environment = {"DARKROOM_IMAGES": "s3://images", "DARKROOM_POLICY_API_KEY": "sk-abc"}
    for unit in service_units(workspace, environment).values():
        assert 'Environment="DARKROOM_IMAGES=s3://images"' in unit
        assert "sk-abc" not in unit


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_finds_no_error_in_the_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARKROOM_HOME", str(tmp_path / "a home"))
    written = CliRunner().invoke(app, ["up", "--units", str(tmp_path / "units")])
    assert written.exit_code == 0, written.output
    for name in UNITS:
        unit = tmp_path / "units" / name
        checked = subprocess.run(
            ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False, timeout=300
        )
        assert (checked.returncode, str(unit) in checked.stderr) == (0, False), checked.stderr


@pytest.fixture
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((files("darkroom.assets") / "new_workspace" / "compose.yaml").read_text())
    return loaded


def test_every_service_of_the_compose_file_comes_back_after_a_crash(compose: dict[str, Any]) -> None:
    assert {service["restart"] for service in compose["services"].values()} == {"unless-stopped"}
    for service in compose["services"].values():
        used = {volume.partition(":")[0] for volume in service["volumes"]}
        assert used <= set(compose["volumes"])
        assert set(service.get("depends_on", ())) <= set(compose["services"])


def test_the_commands_of_the_compose_file_are_commands_with_these_options(compose: dict[str, Any]) -> None:
    up = compose["services"]["studio"]["command"]
    assert up[:3] == ["darkroom", "annotate", "up"]
    text = "\n".join(compose["services"]["sync"]["command"])
    assert "darkroom annotate sync --every 60" in text
    for command, options in (("up", up[3:]), ("sync", ["--every"])):
        shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"})
        for option in options:
            assert option.partition("=")[0] in re.sub(r"\x1b\[[0-9;]*m", "", shown.output)


def test_no_service_has_a_password_that_everybody_knows(compose: dict[str, Any]) -> None:
    for service, variable in (("database", "POSTGRES_PASSWORD"), ("s3", "MINIO_ROOT_PASSWORD")):
        assert compose["services"][service]["environment"][variable].startswith("${SERVICES_PASSWORD:?")


def test_only_this_machine_reaches_the_services(compose: dict[str, Any]) -> None:
    ports = [port for service in compose["services"].values() for port in service.get("ports", ())]
    assert len(ports) == 3
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_image_is_built_from_files_that_are_there() -> None:
    text = (EXAMPLE / "Containerfile").read_text()
    assert "--constraint /src/requirements.lock '/src[annotate]'" in text
    assert (EXAMPLE.parents[1] / "requirements.lock").exists()
    assert "DARKROOM_HOME=/data" in text


def test_units_take_no_option_of_a_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARKROOM_HOME", str(tmp_path / "home"))
    refused = CliRunner().invoke(app, ["up", "--units", str(tmp_path / "units"), "--port", "8080"])
    assert refused.exit_code == 2
    assert not (tmp_path / "units").exists()
