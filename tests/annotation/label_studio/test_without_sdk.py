"""Without the extra ``annotate`` everything is imported and accounts are managed; handing out tasks names the extra."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from darkroom.annotation.label_studio.client import LabelStudioClient
from darkroom.sandbox.errors import ExtraMissing
from tests.command_lines import ANNOTATE as app
from tests.json_endpoint import ScriptedServer

ACCOUNT = {"id": 2, "email": "ann@example.com", "name": "Ann", "role": "annotator", "token": "x"}
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.modules["label_studio_sdk"] = sys.modules["httpx"] = None
import darkroom.annotation
for module in pkgutil.walk_packages(darkroom.annotation.__path__, "darkroom.annotation."):
    if "_plugin" not in module.name:
        print(importlib.import_module(module.name).__name__)
"""


@pytest.fixture
def without_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    def spec(name: str) -> ModuleSpec | None:
        return None if name == "label_studio_sdk" else find_spec(name)

    monkeypatch.setattr("darkroom.sandbox.errors.find_spec", spec)


def test_no_module_needs_the_sdk_to_be_imported(tmp_path: Path) -> None:
    imported = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], check=True, timeout=120, capture_output=True, text=True
    )
    assert {"darkroom.annotation.label_studio.client", "darkroom.annotation.rounds.sync"} <= set(
        imported.stdout.split()
    )


@pytest.mark.usefixtures("without_sdk")
def test_accounts_need_no_sdk_and_projects_name_the_extra() -> None:
    with (
        ScriptedServer([(200, {"people": [ACCOUNT], "sets": {}})]).serving() as server,
        LabelStudioClient(server.url, "token", pauses=()) as studio,
    ):
        assert [person.email for person in studio.people()] == ["ann@example.com"]
        with pytest.raises(ExtraMissing) as caught:
            studio.check_project(1, "annotate")
    assert str(caught.value) == (
        "handing out and pulling tasks needs an extra: pip install 'darkroom-toolkit[annotate]'"
    )


@pytest.mark.usefixtures("without_sdk")
def test_a_sync_names_the_extra_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARKROOM_HOME", str(tmp_path))
    with ScriptedServer([(200, {"people": [ACCOUNT], "sets": {}})]).serving() as server:
        monkeypatch.setenv("DARKROOM_STUDIO_URL", server.url)
        monkeypatch.setenv("DARKROOM_STUDIO_TOKEN", "token")
        ended = CliRunner().invoke(app, ["sync"])
    assert isinstance(ended.exception, ExtraMissing) or "darkroom-toolkit[annotate]" in ended.output
