"""Every command line that README, docs and help teach, as it stands there, in the home of a finished demo.

A page's `data` is that home. Lines end with status 0, or as ``ENDS_OTHERWISE`` says; those of ``NOT_RUN`` need more
than the demo leaves. With wrong arguments they run in ``tests/assets/test_wrong_commands.py``.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import pytest
from click.testing import Result
from typer.testing import CliRunner

from darkroom.assets.cli import app
from tests.command_lines import lines_of_docs, lines_of_help
from tests.pipelines.sources import releases

T = TypeVar("T")
STUDIO = "people's work in Label Studio: tests/e2e/annotation"
DOWNLOADED = "a download, which the user makes"
OWN_IMAGES = "builds from the user's images: tests/e2e/test_readme_commands.py, tests/assets/commands/test_sources.py"
NOT_RUN = {
    r"^(ui|sandbox serve)$|^(agent|environment) serve |--serve$|^sandbox serve --stdio": "serves until it is stopped",
    r"^serve (MODEL$|[\w/.-]+/)": "starts a model's server: tests/e2e/test_serve.py, test_transformers_serve.py",
    r"…": "leaves words out",
    r"^annotate (?!init|up --units)": STUDIO,
    r"^materialize accepted_annotations": STUDIO,
    r"^annotate up --units": "installs a service of the system",
    r" --url |^policy check": "a model's server",
    r" --on ": "a cluster: tests/soak/test_ray_runs.py, test_slurm_runs.py",
    r"^rl mmk12": DOWNLOADED,
    r"visual_probe|--benchmark": DOWNLOADED,
    r"^publish crop ann/street-crops$": "uploads",
    r"^materialize photos|--boxes bbox|^explain photos:|^sources check photos/|^remove photos/": OWN_IMAGES,
    r"mirror": "a family of the user's: tests/test_families_page.py",
    r"^gallery crop --rejects$": "20 s; of that family tests/test_families_page.py runs it",
    r"^calibrate .*--labelled": "people's verdicts in a file",
    r"^train (sft|grpo) .*--model": "trains for minutes; the demo's trainings are in test_demo.py",
}
"""Why a line that matches is not run."""
ENDS_OTHERWISE = {
    "audit crop --only encoding --model data/checkpoints/tiny --out rows.jsonl": (1, "do not conform"),
    "audit thyme.jsonl --mapping thyme_sft": (1, "malformed_turn"),
}
"""Status and words: docs/sft.md says so of the demo, and the release has rows that are broken."""
VALUES = {
    "MODEL": "data/checkpoints/tiny",
    "CHECKPOINT": "data/checkpoints/grpo",
    "DATASET": "data/datasets/rl/prompts",
    "SFT_OR_RL_DATASET": "data/datasets/rl/prompts",
    "/data/downloaded": "data/datasets/sft/direct",
}
SHORTER = {
    r"^audit (all|/data|data)|^audit .*--rows": "--rows 1",
    r"^evaluate .*--output": "--limit 4",
}
"""What is added to a line that would take up to a minute, or that repeats a longer one."""
RELEASE = "sources add thyme_sft --path thyme.jsonl"
FIRST = {
    r"^audit data/exports": ("export crop --layout ms_swift",),
    r"^materialize thyme_sft": (RELEASE,),
    r"^explain thyme_sft|^audit released_code": (RELEASE, "materialize thyme_sft"),
}
"""What a line follows on its page; what is finished is skipped."""
LINES = list(dict.fromkeys([*lines_of_docs(), *lines_of_help()]))


def found(patterns: Mapping[str, T], line: str) -> T | None:
    return next((value for pattern, value in patterns.items() if re.search(pattern, line)), None)


@pytest.fixture(scope="module")
def folder(undisturbed: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's working folder after the demo, with a release of somebody else's."""
    folder = tmp_path_factory.mktemp("lines")
    shutil.copytree(undisturbed[0], folder / "data")
    releases.write(folder, releases.THYME * 2, "thyme.jsonl")
    return folder


@pytest.fixture
def invoke(
    folder: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: None
) -> Callable[[str], Result]:
    """Runs a line in that folder, where nobody has added a source."""
    shutil.copytree(photos, folder / "photos", dirs_exist_ok=True)
    shutil.rmtree(folder / "data" / "sources", ignore_errors=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DARKROOM_HOME", str(folder / "data"))
    values = {**VALUES, "OUT": str(tmp_path / "out")}

    def _invoke(line: str) -> Result:
        if "thyme_sft" in line:  # whose licence its file leaves to the user, as the page says
            monkeypatch.setenv("DARKROOM_SHIP_UNLICENSED", "1")
        return CliRunner().invoke(app, [values.get(word, word) for word in shlex.split(line)])

    return _invoke


@pytest.mark.parametrize("line", [line for line in LINES if found(NOT_RUN, line) is None])
def test_a_line_runs_after_the_demo(invoke: Callable[[str], Result], folder: Path, line: str) -> None:
    for before in found(FIRST, line) or ():
        if not (folder / "data" / "datasets" / before).exists():
            assert invoke(before).exit_code == 0, before
    shorter = found(SHORTER, line)
    result = invoke(f"{line} {shorter}" if shorter else line)
    status, words = ENDS_OTHERWISE.get(line, (0, ""))
    assert result.exit_code == status, f"{result.output}\n{result.exception!r}"
    assert words in result.output
    assert "Traceback" not in result.output


def test_every_exception_is_of_a_line() -> None:
    reasons = [next((pattern for pattern in NOT_RUN if re.search(pattern, line)), None) for line in LINES]
    assert set(NOT_RUN) <= set(reasons)
    run = [line for line, reason in zip(LINES, reasons, strict=True) if reason is None]
    assert set(ENDS_OTHERWISE) <= set(run)
    assert all(any(re.search(pattern, line) for line in run) for pattern in (*SHORTER, *FIRST))
    assert {word for line in run for word in line.split()} >= set(VALUES)
    assert "explain demo:photo/cat" in run
