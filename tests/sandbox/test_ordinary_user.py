"""What holds for root holds for an ordinary user: the attacks and the legitimate cells, with the host as uid 1001."""

import os
import subprocess
import sys

import pytest

from tests.sandbox.ordinary_user import ROOT

FILES = ("test_attacks.py", "test_benign.py", "test_lite.py", "test_control.py")


@pytest.mark.e2e
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "selected", [["-m", "not soak"], pytest.param([], marks=pytest.mark.soak)], ids=["some", "all"]
)
@pytest.mark.parametrize("file", FILES)
def test_the_tests_pass_as_an_ordinary_user(full_tier: None, file: str, selected: list[str]) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user; the tests already ran as an ordinary one")
    pytest_run = ["pytest", "-p", "no:cacheprovider", "-q", *selected, f"tests/sandbox/{file}"]
    command = [sys.executable, "-m", "tests.sandbox.ordinary_user", *pytest_run]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
