"""``darkroom publish``: what is checked before anything is sent, and the upload to a server that speaks as the hub."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import Result
from typer.testing import CliRunner

from darkroom.assets.cli import app
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.publishing.manifest import MANIFEST
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.storage.workspace import Workspace
from tests.hub_server import HubServer, hub_server
from tests.pipelines.publishing.shipping import PARTITION

REPOSITORY = "ann/street-crops"


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with hub_server() as server:
        yield server


@pytest.fixture(scope="module")
def published_home(crop_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("published") / "home"
    shutil.copytree(crop_home, home)
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        SftDataset(workspace, load_recipes()["crop"], [PARTITION]).publish()
    return home


@pytest.fixture
def dataset(published_home: Path, tmp_path: Path) -> Path:
    """The folder of the dataset ``crop``, with its card, in the home of the test."""
    shutil.copytree(published_home, tmp_path / "home")
    return tmp_path / "home" / "datasets" / "sft" / "crop"


class Published(NamedTuple):
    """A command that has ended."""

    exit_code: int
    stdout: str
    stderr: str


COMMANDS = """
import json, sys
from typer.testing import CliRunner
from darkroom.assets.cli import app
for words, environment in json.loads(sys.argv[1]):
    done = CliRunner().invoke(app, ["publish", *words], env=environment)
    print(json.dumps([done.exit_code, done.stdout, done.stderr]))
"""


Command = tuple[list[str], dict[str, str]]
"""Words and variables."""


def publish(hub: HubServer, *commands: Command, **environment: str) -> list[Published]:
    """Commands in a process of their own: the client reads its address when it is imported."""
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(commands)],
        env={**os.environ, **hub.environment, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [Published(*json.loads(line)) for line in done.stdout.splitlines()]


def refused(*words: str) -> Result:
    """The command in this process: nothing is sent."""
    done = CliRunner().invoke(app, ["publish", *words])
    assert done.exit_code == 1, done.output
    return done


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


class Sent(NamedTuple):
    """Commands on one repository, one after the other, and the hub after the last."""

    dry_run: Published
    unauthorized: Published
    published: Published
    hub: HubServer


@pytest.fixture(scope="module")
def sent(published_home: Path) -> Iterator[Sent]:
    words = ["crop", REPOSITORY]
    commands: list[Command] = [([*words, "--dry-run"], {}), (words, {"HF_TOKEN": "hf_wrong"}), (words, {})]
    with hub_server() as hub:
        hub.repositories[REPOSITORY] = {"train-00000-of-00009.parquet": b"older", "LICENSE": b"theirs"}
        yield Sent(*publish(hub, *commands, DARKROOM_HOME=str(published_home)), hub)


def test_a_dry_run_lists_files_and_rows(sent: Sent, dataset: Path) -> None:
    assert sent.dry_run.exit_code == 0, sent.dry_run.stderr
    lines = sent.dry_run.stdout.splitlines()
    sizes = {name: f"{len(data):,}" for name, data in content(dataset).items()}
    assert {line.split()[1]: line.split()[0] for line in lines[: len(sizes)]} == sizes
    published = digest_bytes((dataset / MANIFEST).read_bytes())
    assert lines[len(sizes)] == f"train 4 rows; the card holds; manifest {published}"


def test_the_repository_has_what_the_folder_has_and_nothing_older(sent: Sent, dataset: Path) -> None:
    assert sent.published.exit_code == 0, sent.published.stderr
    assert sent.hub.repositories == {REPOSITORY: {**content(dataset), "LICENSE": b"theirs"}}
    assert sent.hub.n_commits == 1, "the dry run sent nothing"
    published = digest_bytes((dataset / MANIFEST).read_bytes())
    assert sent.hub.messages == [f"crop: 4 rows, manifest {published}"]
    assert sent.published.stdout.splitlines()[-1].startswith(f"{sent.hub.url}/datasets/{REPOSITORY}/commit/")


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("license:", "lizenz:", "the card has no `license`"),
        ("- name: question\n", "- name: query\n", "the columns of train-00000-of-00001.parquet are not those"),
        ("---\n", "---\n]", "the YAML of README.md cannot be read"),
    ],
)
def test_a_card_that_does_not_hold_is_not_sent(
    hub: HubServer, dataset: Path, before: str, after: str, problem: str
) -> None:
    card = dataset / "README.md"
    assert before in card.read_text()
    card.write_text(card.read_text().replace(before, after, 1))
    done = refused("crop", REPOSITORY)
    assert f"problem: {problem}" in done.stdout
    assert done.stderr.strip() == "error: crop is not fit for the hub: see above"
    assert not hub.repositories


def test_an_incomplete_dataset_is_not_sent(hub: HubServer, dataset: Path) -> None:
    (dataset / ".darkroom.json").unlink()
    done = refused("crop", REPOSITORY)
    assert "holds no complete dataset: materialise it again" in done.stdout
    assert not hub.repositories


def test_a_damaged_file_is_not_sent(hub: HubServer, dataset: Path) -> None:
    (file,) = dataset.glob("*.parquet")
    file.write_bytes(file.read_bytes()[:3000])
    done = refused("crop", REPOSITORY)
    assert f"error: {file} is damaged" in done.stderr
    assert REPOSITORY not in hub.repositories


@pytest.mark.parametrize("repository", ["crops", "no/such/name", "a/b!", "a/-b", "a/b.git", "/b", "a/"])
def test_what_is_no_repository_is_refused_before_any_work(repository: str) -> None:
    done = CliRunner().invoke(app, ["publish", "no_such_dataset", repository, "--dry-run"])
    assert done.exit_code == 1
    [line] = done.stderr.splitlines()
    assert line.startswith(f"error: {repository} is no repository of the hub (")
    assert line.endswith("): name it OWNER/NAME")


def test_what_the_hub_does_not_take_is_one_line_that_names_the_mend(sent: Sent) -> None:
    check_refusal(sent.unauthorized, "log in with `hf auth login`")


@pytest.mark.soak
def test_a_hub_that_cannot_be_reached_is_one_line_that_names_the_mend(hub: HubServer, dataset: Path) -> None:
    [done] = publish(hub, (["crop", REPOSITORY], {}), HF_ENDPOINT="http://127.0.0.1:1")
    check_refusal(done, "check the network and HF_ENDPOINT (http://127.0.0.1:1)")


def check_refusal(done: Published, mend: str) -> None:
    assert done.exit_code == 1
    [line] = done.stderr.strip().splitlines()
    assert line.startswith(f"error: {REPOSITORY} was not published (")
    assert mend in line
