"""The doctor, the commands and the digest."""

import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sandbox import Limits, digest, sandbox_digest
from sandbox.cli import app
from sandbox.doctor import Finding, can_run, diagnose
from sandbox.protections import FULL_TIER_ONLY

runner = CliRunner()


def test_a_missing_namespace_rules_out_the_full_tier_only() -> None:
    findings = [Finding("user namespaces", "forbidden"), Finding("Landlock", None)]
    assert not can_run("full", findings)
    assert can_run("lite", findings)
    assert "unprivileged_userns_clone" in findings[0].remedy


def test_the_doctor_looks_at_every_protection() -> None:
    names = {finding.protection for finding in diagnose()}
    assert names >= FULL_TIER_ONLY | {"Landlock", "seccomp", "pidfd", "warm libraries"}


def test_the_doctor_command_shows_what_can_run() -> None:
    result = runner.invoke(app, ["doctor"])
    findings = diagnose()
    assert result.exit_code == (0 if can_run("lite", findings) else 1)
    assert f"full tier: {'can run' if can_run('full', findings) else 'cannot run'}" in result.stdout


@pytest.mark.parametrize("command", ["run", "doctor"])
def test_every_command_has_help(command: str) -> None:
    result = runner.invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert "Exits with 1" in result.stdout


def test_a_file_is_run_and_its_images_are_saved(full_tier: None, tmp_path: Path, photo: Path) -> None:
    code = tmp_path / "crop.py"
    code.write_text("box = (0, 0, 99999, 40)\nimage_clue_0.crop(box).save('crop.png')\nprint(image_size)")
    out = tmp_path / "out"
    result = runner.invoke(app, ["run", str(code), "--image", str(photo), "--tier", "full", "--out", str(out)])
    assert result.exit_code == 0, result.stdout
    assert "(2000, 1500)" in result.stdout
    assert "edit clamp_box" in result.stdout
    assert os.listdir(out) == ["image_0.png"]


def test_code_that_fails_makes_the_command_fail(full_tier: None, tmp_path: Path) -> None:
    code = tmp_path / "fails.py"
    code.write_text("1 / 0")
    result = runner.invoke(app, ["run", str(code), "--tier", "full"])
    assert result.exit_code == 1
    assert "ZeroDivisionError: division by zero (line 1)" in result.stdout


def test_the_digest_is_stable_and_follows_limits_and_tier() -> None:
    assert sandbox_digest() == sandbox_digest(Limits())
    assert len({sandbox_digest(tier="full"), sandbox_digest(tier="lite"), sandbox_digest(Limits(seconds=3))}) == 3


def test_the_digest_holds_no_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two copies of the package in different places observe the same."""
    copy = tmp_path / "elsewhere" / "sandbox"
    shutil.copytree(Path(digest.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = sandbox_digest()
    monkeypatch.setattr(digest, "_PACKAGE", copy)
    digest._source_digests.cache_clear()
    assert sandbox_digest() == before
    (copy / "_guest" / "scan.py").write_text("changed")
    digest._source_digests.cache_clear()
    assert sandbox_digest() != before
    digest._source_digests.cache_clear()
