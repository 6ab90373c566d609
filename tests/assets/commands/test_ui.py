"""`darkroom ui`: what is printed before Dagster takes the process over."""

from __future__ import annotations

import os

import pytest
from typer.testing import CliRunner

from darkroom.assets.cli import app


@pytest.mark.parametrize(
    ("host", "address"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("dgx", "dgx")]
)
def test_the_address_can_be_opened_and_the_host_is_passed_on(
    monkeypatch: pytest.MonkeyPatch, host: str, address: str
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr("darkroom.assets.dagster_home.instance.prepare_dagster_home", lambda workspace: workspace.local)
    monkeypatch.setattr("darkroom.assets.dagster_home.instance.refresh_dagster", lambda workspace: None)
    monkeypatch.setattr(os, "execve", lambda program, words, environment: started.append(words))
    result = CliRunner().invoke(app, ["ui", "--host", host, "--port", "3001"])
    assert f"then open http://{address}:3001\n" in result.output
    assert started[0][-4:] == ["--host", host, "--port", "3001"]
