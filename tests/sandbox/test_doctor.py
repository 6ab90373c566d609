"""The doctor, the commands and the digest."""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from darkroom.sandbox import Limits, digest, sandbox_digest
from darkroom.sandbox.cli import doctor, run
from darkroom.sandbox.doctor import Finding, can_run, describe_machine, diagnose
from darkroom.sandbox.errors import CGROUP_VARIABLE, DELEGATED_CGROUPS, FULL_TIER_ONLY, UserError
from tests.sandbox import ordinary_user

pytestmark = pytest.mark.e2e

runner = CliRunner()
app = typer.Typer()
app.command()(run)
app.command()(doctor)


def test_a_missing_namespace_rules_out_the_full_tier_only() -> None:
    findings = [Finding("user namespaces", "forbidden"), Finding("Landlock", None)]
    assert not can_run("full", findings)
    assert can_run("lite", findings)
    assert "unprivileged_userns_clone" in findings[0].remedy


def test_the_doctor_looks_at_every_protection() -> None:
    names = {finding.protection for finding in diagnose()}
    assert names >= FULL_TIER_ONLY | {"Landlock", "seccomp", "pidfd", "warm libraries", DELEGATED_CGROUPS}


def test_no_tier_needs_delegated_cgroups() -> None:
    missing = Finding(DELEGATED_CGROUPS, "nobody has delegated one")
    assert missing.tiers == ()
    assert can_run("full", [missing])
    assert can_run("lite", [missing])
    assert "systemd-run" in missing.remedy
    assert CGROUP_VARIABLE in missing.remedy


def test_a_named_cgroup_that_cannot_be_used_rules_out_every_tier(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(CGROUP_VARIABLE, str(tmp_path))
    findings = diagnose()
    assert not can_run("full", findings)
    assert not can_run("lite", findings)
    assert "is no folder of cgroup v2" in str(findings[-1].reason)


def test_the_machine_is_described_in_one_line() -> None:
    assert platform.release() in describe_machine()
    assert re.search(r", Landlock ABI \d+$", describe_machine())


def test_the_doctor_command_shows_what_can_run() -> None:
    result = runner.invoke(app, ["doctor"])
    findings = diagnose()
    assert result.exit_code == (0 if can_run("lite", findings) else 1)
    assert f"full tier: {'can run' if can_run('full', findings) else 'cannot run'}" in result.stdout


@pytest.mark.parametrize("columns", ["40", "80"])
def test_what_to_do_can_be_copied_from_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    missing = Finding(DELEGATED_CGROUPS, "nobody has delegated one")
    monkeypatch.setattr("darkroom.sandbox.cli.diagnose", lambda: [missing])
    result = runner.invoke(app, ["doctor"], env={"COLUMNS": columns})
    assert f"{DELEGATED_CGROUPS}: {missing.reason}\n{missing.remedy}\n" in result.stdout
    assert "no     optional" in result.stdout


DIAGNOSE = """
import resource, sys
if sys.argv[1:]:
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]),) * 2)
from darkroom.sandbox.doctor import can_run, diagnose, try_sessions
findings = diagnose()
assert can_run("full", findings) and can_run("lite", findings), findings
findings += try_sessions(findings)
print(can_run("full", findings), can_run("lite", findings), findings[-2].reason, findings[-1].reason)
"""


def diagnosed_by(*command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ordinary_user.ROOT)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_sessions_run_where_root_has_one_uid(full_tier: None) -> None:
    """As in a rootless container without subordinate uids."""
    assert diagnosed_by("unshare", "-r", sys.executable, "-c", DIAGNOSE) == "True True None None\n"


def test_sessions_run_where_root_of_a_container_may_not_mount(full_tier: None) -> None:
    """As in rootless Podman and in Kubernetes with user namespaces."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a user namespace with many uids")
    command = [sys.executable, "-m", "tests.sandbox.rootless", "-c", DIAGNOSE]
    assert diagnosed_by(*command) == "True True None None\n"


def test_the_doctor_runs_code_before_it_says_that_a_tier_can_run(full_tier: None) -> None:
    said = diagnosed_by(sys.executable, "-c", DIAGNOSE, "14")  # enough open files for each protection alone
    assert said.startswith("False ")
    assert "Too many open files" in said


@pytest.mark.parametrize("command", ["run", "doctor"])
def test_every_command_has_help(command: str) -> None:
    result = runner.invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert "Exits with 1" in result.stdout


def test_a_file_is_run_and_its_images_are_saved(full_tier: None, tmp_path: Path, photo: Path) -> None:
    code = tmp_path / "crop.py"
    code.write_text("box = (0, 40, 99999, 0)\nimage_clue_0.crop(box).save('crop.png')\nprint(image_size)")
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
    assert "ZeroDivisionError: division by zero (line 1" in result.stdout


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "code.pyc"
    file.write_bytes(b"x = 1\n\xff\x00")
    result = runner.invoke(app, ["run", str(file)])
    assert isinstance(result.exception, UserError)
    assert "is not UTF-8 text (byte 6)" in str(result.exception)


def test_escapes_of_the_code_do_not_reach_the_terminal(full_tier: None, tmp_path: Path) -> None:
    code = tmp_path / "title.py"
    code.write_text(r"""
print("\x1b]0;title\x07\x9b2Jtext\b\tx")
open("\x1b[2J.txt", "w").close()
raise ValueError("\x1b[31mred")
""")
    result = runner.invoke(app, ["run", str(code), "--tier", "full"], color=True)
    assert not {*result.stdout} & {*map(chr, (*range(9), *range(11, 32), *range(127, 160)))}
    assert all(shown in result.stdout for shown in ("␛]0;title", "text", "ValueError: ␛[31mred"))


def test_the_digest_is_stable_and_follows_limits_and_tier() -> None:
    assert sandbox_digest() == sandbox_digest(Limits())
    assert len({sandbox_digest(tier="full"), sandbox_digest(tier="lite"), sandbox_digest(Limits(seconds=3))}) == 3


@pytest.mark.parametrize("first", [10, 10.0])
def test_the_digest_does_not_depend_on_how_a_limit_is_spelled(first: float) -> None:
    assert sandbox_digest(Limits(seconds=first)) == sandbox_digest(Limits(seconds=10)) == sandbox_digest()
    assert sandbox_digest(Limits(wall_seconds=20)) == sandbox_digest(Limits(wall_seconds=20.0))


def test_the_digest_holds_no_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two copies of the package in different places observe the same."""
    copy = tmp_path / "elsewhere" / "sandbox"
    shutil.copytree(Path(digest.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = sandbox_digest()
    monkeypatch.setattr(digest, "_PACKAGE", copy)
    digest._source_digests.cache_clear()
    assert sandbox_digest() == before
    (copy / "_guest" / "edits.py").write_text("changed")
    digest._source_digests.cache_clear()
    assert sandbox_digest() != before
    digest._source_digests.cache_clear()
