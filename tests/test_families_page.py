"""docs/families.md, followed as it stands: its files in a folder, its commands, an endpoint, the sandbox."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.records import Reject, Trajectory
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from tests.assets.conftest import add_signs
from tests.json_endpoint import JsonHandler, endpoint

pytestmark = pytest.mark.e2e
PAGE = Path(__file__).parents[1] / "docs" / "families.md"
MIRROR = """\
from PIL import Image, ImageOps
image = ImageOps.mirror(Image.open(image_path))
path = "/mnt/data/temp_processed_images/mirrored_1.png"
image.save(path)
print(path)"""


def blocks(language: str) -> list[str]:
    """The page's code blocks of one language, in order."""
    fences = re.finditer(r"^(`{3,})(\w*)\n(.*?)^\1$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [fence[3] for fence in fences if fence[2] == language]


class Endpoint(JsonHandler):
    """A model: code that mirrors the image, but once code that doesn't; then the answer to the question."""

    answers: dict[str, str]

    def answer(self, body: dict[str, Any]) -> Any:
        conversation = json.dumps(body["messages"])
        question = next(question for question in self.answers if question in conversation)
        return {"choices": [{"message": {"content": self._turn(body, question)}, "finish_reason": "stop"}]}

    def _turn(self, body: dict[str, Any], question: str) -> str:
        if any(message["role"] == "assistant" for message in body["messages"]):
            return Thyme().write_answer("Now it reads the right way round.", self.answers[question], first=False)
        code = MIRROR if question != next(iter(self.answers)) else MIRROR.replace("ImageOps.mirror", "")
        return Thyme().write_round("The letters run the wrong way; I mirror it back.", code, first=True)


@pytest.fixture
def url(small_source: Any) -> Iterator[str]:
    Endpoint.answers = {row.question: row.answer for row in small_source.rows(0)}
    with endpoint(Endpoint) as address:
        yield address


@pytest.fixture
def signs(workspace: Workspace, small_source: Any, tmp_path: Path) -> None:
    """The source of the page's commands."""
    add_signs(workspace, small_source, tmp_path / "signs")


def run(command: str, folder: Path, environment: dict[str, str]) -> str:
    """One command of the page, in ``folder``."""
    name, *arguments = command.split()
    assert name == "darkroom"
    program = [str(Path(sys.executable).with_name("darkroom")), *arguments]
    ended = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, timeout=800)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.usefixtures("signs")
def test_following_the_page_gives_accepted_rows(url: str, workspace: Workspace, tmp_path: Path) -> None:
    recipe, inspect = blocks("python")
    (prompt,) = blocks("markdown")
    make, look = blocks("bash")
    (tmp_path / "families").mkdir()
    (tmp_path / "families" / "mirror.py").write_text(recipe)
    (tmp_path / "families" / "mirror.md").write_text(prompt)
    exports = dict(re.findall(r"^export (\w+)=(.*)$", make, re.MULTILINE))
    exports = {name: value.replace("$PWD", str(tmp_path)) for name, value in exports.items()}
    environment = os.environ | exports | {"DARKROOM_POLICY_URL": url}

    run(make.splitlines()[-1], tmp_path, environment)
    rows = workspace.tables.read(TableKey(("mirror", "trajectories"), "signs-0000"), Trajectory)
    rejects = workspace.tables.read(TableKey(("mirror", "rejects"), "signs-0000"), Reject)
    assert len(rows) == len(Endpoint.answers) - 2, "one image is damaged, one is not mirrored back"
    assert all("ImageOps.mirror" in row.rounds[0].code for row in rows)
    assert [(reject.reason, reject.check) for reject in rejects] == [("check_failed", "mirrored_back")]

    for command in look.splitlines():
        run(command, tmp_path, environment)
    assert "mirrored_back" in (workspace.home / "views" / "mirror.html").read_text()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(inspect, str(PAGE), "exec"), {})
    assert "check_failed mirrored_back" in printed.getvalue()
