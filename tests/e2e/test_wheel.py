"""The wheel: what it holds, and that its command works in a folder whose own packages have the names of ours."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.ports import free_port
from tests.e2e.test_readme_commands import asset_names

PACKAGES = ("pipelines", "assets", "annotation", "train", "sandbox")
Command = Callable[..., str]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=root, check=True, capture_output=True)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the commands of an environment with the wheel, and of what it requires with this environment's."""
    folder = tmp_path_factory.mktemp("environment") / "venv"  # which the sandbox's user may read, unlike the former
    venv.create(folder, with_pip=False)
    [packages] = folder.glob("lib/python*/site-packages")
    required = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "required.pth").write_text("\n".join(required))
    uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--offline", "--no-deps"]
    subprocess.run([*uv, "--python", str(folder / "bin" / "python"), str(wheel)], check=True)
    return folder / "bin"


@pytest.fixture
def folder_of_namesakes(tmp_path: Path, photos: Path) -> Path:
    """A user's folder with packages of our names, which end whoever imports them."""
    for name in PACKAGES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('the user\\'s {name} was imported')\n")
    return tmp_path


@pytest.fixture
def environment(clean_environment: dict[str, str], programs: Path) -> dict[str, str]:
    own = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": str(programs.parent)}
    kept = {name: value for name, value in clean_environment.items() if name not in ("PYTHONPATH", "DAGSTER_HOME")}
    return {**kept, **own}


@pytest.fixture
def darkroom(folder_of_namesakes: Path, programs: Path, environment: dict[str, str]) -> Command:
    """Runs the installed command in the user's folder, or in one below it; returns what it prints."""

    def run(*words: str, below: str = "") -> str:
        done = subprocess.run(
            [str(programs / "darkroom"), *words],
            cwd=folder_of_namesakes / below,
            env=environment,
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    return run


def test_the_wheel_holds_what_git_tracks_of_the_packages(wheel: Path, root: Path) -> None:
    listing = subprocess.run(["git", "ls-files", *PACKAGES], cwd=root, capture_output=True, text=True, check=True)
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == {path for path in listing.stdout.splitlines() if (root / path).exists()}


@pytest.mark.parametrize("words", ["", "train sft", "train grpo", "train tiny", "evaluate"])
def test_a_program_is_a_command(darkroom: Command, words: str) -> None:
    assert "Usage: darkroom" in darkroom(*words.split(), "--help")


def test_photos_become_a_dataset_and_a_trained_model(darkroom: Command, folder_of_namesakes: Path) -> None:
    darkroom("ingest", "photos", "--questions", "photos/questions.jsonl", "--boxes", "boxes")
    darkroom("materialize", "photos", "--family", "crop")
    dataset = ("--dataset", "home/datasets/sft/crop")
    darkroom("train", "tiny", "tiny", *dataset)
    darkroom("train", "sft", *dataset, "--model", "tiny", "--output", "sft", "--max-steps", "1", "--batch-size", "1")
    assert len(json.loads((folder_of_namesakes / "sft" / "training.json").read_text())["steps"]) == 1


def test_a_launched_program_is_ours(programs: Path, folder_of_namesakes: Path, environment: dict[str, str]) -> None:
    """It is started with `-m`, below a supervisor that is started so as well, in the folder of the command."""
    code = "from darkroom.assets.launching import Program, run_here; from pathlib import Path; "
    code += "run_here(Program('darkroom.train.tiny', Path('tiny'), ('tiny',)))"
    command = [str(programs / "python"), "-P", "-c", code]
    subprocess.run(command, cwd=folder_of_namesakes, env=environment, check=True, timeout=1800)
    assert (folder_of_namesakes / "tiny" / "tiny.json").exists()


def test_a_new_workspace_works_with_the_commands_of_its_readme(
    darkroom: Command, folder_of_namesakes: Path, environment: dict[str, str]
) -> None:
    del environment["DARKROOM_HOME"]  # it is in the workspace's .env
    darkroom("new", "workspace")
    workspace = folder_of_namesakes / "workspace"
    lines = [line.split("#")[0].split() for line in (workspace / "README.md").read_text().splitlines()]
    commands = [words[1:] for words in lines if words[:1] == ["darkroom"]]
    assert [words[0] for words in commands] == ["materialize", "gallery", "ui", "ingest"]
    darkroom(*commands[0], below="workspace")
    # the sixth asks almost what another one asks
    assert "5 trajectories" in darkroom(*commands[1], below="workspace")
    assert not (folder_of_namesakes / "home").exists()


def test_the_ui_loads_our_assets(folder_of_namesakes: Path, programs: Path, environment: dict[str, str]) -> None:
    port = free_port()
    process = subprocess.Popen(
        [str(programs / "darkroom"), "ui", "--port", str(port)],
        cwd=folder_of_namesakes,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert "crop/trajectories" in asset_names(f"http://127.0.0.1:{port}/graphql", process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
