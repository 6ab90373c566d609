"""Builds of a command."""

from __future__ import annotations

import gc

import pytest

from darkroom.assets.builds.build import build_sft
from darkroom.pipelines.models.policies import PolicyUnavailable
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.terminal import SafeConsole


def test_an_endpoint_that_does_not_answer_ends_a_build_in_one_line(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"": "openai", "_URL": "http://127.0.0.1:9/v1", "_MODEL": "m"}
    for name, value in settings.items():
        monkeypatch.setenv(f"DARKROOM_POLICY{name}", value)
    with pytest.raises(PolicyUnavailable, match=r"nothing answers at http://127\.0\.0\.1:9/v1"):
        build_sft(SafeConsole(quiet=True), "demo", train=False, families=["crop"])
    gc.collect()
    assert "Unclosed" not in caplog.text
