"""The wheel: its content, and its command beside users' own packages that have the names of ours."""

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

from tests.e2e.test_readme_commands import asset_names
from tests.ports import free_port

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
    return environment_with(wheel, tmp_path_factory.mktemp("environment") / "venv")


def environment_with(wheel: Path, folder: Path) -> Path:
    """The commands' folder of a new virtual environment; the sandbox's user may read it, unlike the clone's."""
    venv.create(folder, with_pip=False)
    [packages] = folder.glob("lib/python*/site-packages")
    required = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "required.pth").write_text("\n".join(required))
    pip(folder / "bin", "install", "--no-deps", str(wheel))
    return folder / "bin"


def pip(programs: Path, *words: str) -> None:
    """`uv pip` in an environment, without the network."""
    uv = [str(Path(sys.executable).with_name("uv")), "pip", *words, "--quiet", "--offline"]
    subprocess.run([*uv, "--python", str(programs / "python")], check=True)


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
    folders = [*PACKAGES, "examples/adapters"]
    listing = subprocess.run(["git", "ls-files", *folders], cwd=root, capture_output=True, text=True, check=True)
    tracked = [path for path in listing.stdout.splitlines() if (root / path).exists()]
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == {f"darkroom/{path.removeprefix('examples/')}" for path in tracked}


USES_BOTH = """
from darkroom.sandbox import SandboxPool
from darkroom.pipelines.records import Sample
from sandbox import whose as sandboxes
from assets import whose as assets
import train
with SandboxPool() as pool, pool.group() as group, group.session() as session:
    print(session.run("print(6 * 7)").text.strip(), sandboxes, assets, train.whose)
"""


def test_ours_works_beside_a_users_packages_and_modules_of_our_former_names(
    programs: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    for name in ("sandbox", "assets"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("whose = 'mine'\n")
    (tmp_path / "train.py").write_text("whose = 'mine'\n")
    assert printed(programs, USES_BOTH, tmp_path, environment | {"PYTHONPATH": "."}) == "42 mine mine mine\n"


@pytest.mark.parametrize("editable", [True, False], ids=["editable", "wheel, removed later"])
def test_ours_works_with_a_users_package_of_our_former_name_and_without_it_again(
    wheel: Path, tmp_path: Path, environment: dict[str, str], editable: bool
) -> None:
    programs = environment_with(wheel, tmp_path / "venv")
    project = tmp_path / "project"
    (project / "train").mkdir(parents=True)
    (project / "train" / "__init__.py").write_text("whose = 'mine'\n")
    (project / "pyproject.toml").write_text(
        '[project]\nname = "theirs"\nversion = "1"\n[build-system]\nrequires = []\nbuild-backend = "backend"\n'
        'backend-path = ["."]\n'
    )
    (project / "backend.py").write_text(BACKEND)
    pip(programs, "install", "--no-deps", *(["--editable"] if editable else []), str(project))
    ours = "from darkroom.train.runs import TrainError; print('ours')"
    assert printed(programs, f"import train; print(train.whose); {ours}", tmp_path, environment) == "mine\nours\n"
    pip(programs, "uninstall", "theirs")
    assert printed(programs, ours, tmp_path, environment) == "ours\n"


BACKEND = """
import zipfile
from pathlib import Path


def build_wheel(folder, config_settings=None, metadata_directory=None):
    return _written(folder, {"train/__init__.py": Path("train/__init__.py").read_text()})


def build_editable(folder, config_settings=None, metadata_directory=None):
    return _written(folder, {"theirs.pth": str(Path.cwd())})


def _written(folder, files):
    info = "theirs-1.dist-info/"
    files |= {info + "METADATA": "Metadata-Version: 2.1\\nName: theirs\\nVersion: 1\\n"}
    files |= {info + "WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"}
    files |= {info + "RECORD": "".join(f"{name},,\\n" for name in (*files, info + "RECORD"))}
    with zipfile.ZipFile(Path(folder) / "theirs-1-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return "theirs-1-py3-none-any.whl"
"""
"""A build backend that needs no package: an environment without the network builds with it."""


def printed(programs: Path, code: str, folder: Path, environment: dict[str, str]) -> str:
    """The output of code in the environment, run in a user's folder as a script's."""
    done = subprocess.run(
        [str(programs / "python"), "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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
    code = "from darkroom.assets.clusters.programs import Program, run_here; "
    code += "run_here(Program('darkroom.train.tiny', ('tiny',)))"
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
    # two ask almost the same, of one image, and have other answers
    assert "6 trajectories" in darkroom(*commands[1], below="workspace")
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
