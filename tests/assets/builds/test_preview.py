"""`darkroom materialize SOURCE --preview N`: a page and a ledger, and nothing else in the home."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from darkroom.assets.cli import app
from tests.json_endpoint import JsonHandler, endpoint

COMMAND = ["materialize", "birds", "--preview", "2", "--family", "direct", "--family", "math_code"]


class Teacher(JsonHandler):
    """Plans and answers, and counts both."""

    n_calls = 0

    def answer(self, body: dict[str, Any]) -> Any:
        type(self).n_calls += 1
        decision = {"issue": "fine as it is", "operation": -1, "reason": "It is clear.", "verdict": True}
        text = "<think>Two birds sit on the wire, side by side.</think><answer>two</answer>"
        said = {"role": "assistant", "content": json.dumps(decision) if "response_format" in body else text}
        usage = {"prompt_tokens": 90, "completion_tokens": 10}
        return {"model": "m", "choices": [{"finish_reason": "stop", "message": said}], "usage": usage}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a source of five questions."""
    for number in range(5):
        Image.new("RGB", (200, 150), (40 * number, 90, 160)).save(tmp_path / f"{number}.png")
    rows = [{"image": f"{n}.png", "question": f"How many birds are in image {n}?", "answer": "two"} for n in range(5)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    monkeypatch.setenv("DARKROOM_HOME", str(tmp_path / "home"))
    added = CliRunner().invoke(app, ["ingest", str(tmp_path / "rows.jsonl"), "--name", "birds"])
    assert added.exit_code == 0, added.output
    return tmp_path / "home"


def files(home: Path) -> set[str]:
    return {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}


def test_a_preview_leaves_a_page_and_pays_for_its_calls_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(home)
    with endpoint(Teacher) as url:
        for name, value in {"": "openai", "_URL": url, "_MODEL": "m"}.items():
            monkeypatch.setenv(f"DARKROOM_POLICY{name}", value)
        monkeypatch.setenv("DARKROOM_JUDGE", "oracle")
        results = [CliRunner().invoke(app, COMMAND) for _ in range(2)]
    for result in results:
        assert result.exit_code == 0, result.output
        assert "direct: 2 tried, 2 accepted; 4 calls, 400 tokens" in result.output
        assert "math_code: none of the first 5 samples is for it" in result.output
    assert Teacher.n_calls == 4
    left = {name for name in files(home) - before if not name.startswith("ledger.sqlite")}
    assert left == {"views/birds.preview.html"}
    page = (home / "views" / "birds.preview.html").read_text()
    assert "Two birds sit on the wire" in page
    _, *prompts = (part.partition("</details>")[0] for part in page.split("<summary>prompt</summary>"))
    assert [f"How many birds are in image {n}?" in prompt for n, prompt in enumerate(prompts)] == [True, True]
    assert "How many birds are in image 2?" not in page


def test_a_preview_builds_nothing_and_takes_no_quota(home: Path) -> None:
    result = CliRunner().invoke(app, [*COMMAND, "--rows", "5"])
    assert result.exit_code == 2
    assert "build nothing" in result.output
