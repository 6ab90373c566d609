"""`darkroom materialize` at an endpoint that answers each row as another engine or gateway does: no row ships that
teaches no thought, no failure becomes a result, and every reject says what happened."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import pytest
from PIL import Image
from typer.testing import CliRunner

from darkroom.assets.cli import app
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.records import Sample, Trajectory
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from tests.json_endpoint import JsonHandler, endpoint

pytestmark = pytest.mark.soak

THOUGHT = "Two birds sit on the wire, side by side."
SAID = "<answer>two</answer>"
PLAN = json.dumps({"issue": "fine as it is", "operation": -1, "reason": "It is clear.", "verdict": True})


def answer(*, reason: str = "stop", tokens: int = 10, **message: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 90, "completion_tokens": tokens}
    return {"model": "m", "choices": [{"finish_reason": reason, "message": message}], "usage": usage}


BLOCK = {"type": "thinking", "thinking": THOUGHT, "signature": "x"}
GOOD = answer(content=f"<think>{THOUGHT}</think>{SAID}")
ACCEPTED: dict[str, dict[str, Any]] = {
    "closed": GOOD,
    "only closing": answer(content=f"{THOUGHT}</think>{SAID}"),
    "vLLM, with a parser": answer(content=SAID, reasoning=THOUGHT),
    "SGLang": answer(content=SAID, reasoning_content=THOUGHT),
    "OpenRouter": answer(content=SAID, reasoning_details=[{"type": "reasoning.text", "text": THOUGHT}]),
    "LiteLLM": answer(content=SAID, thinking_blocks=[BLOCK]),
    "Anthropic": answer(content=[BLOCK, {"type": "text", "text": SAID}]),
    "Ollama": answer(content=SAID, thinking=THOUGHT),
    "Kimi": answer(content=f"◁think▷{THOUGHT}◁/think▷{SAID}"),
    "another model answers": {**GOOD, "model": "m-2026-11-01"},
}
HICCUPS: dict[str, Any] = {
    "an error for a reason": answer(reason="error", content="It s"),
    "nothing and no tokens": answer(content="", tokens=0),
    "an error in the body": {"error": {"code": 502, "message": "upstream"}},
    "an error in the choice": {"choices": [{"error": {"code": 529}, "message": {"content": "It s"}}]},
    "an abort": answer(reason="abort", content=""),
    "JSON that ends too early": '{"choices": [{"mess',
}
"""The first answer; the next one is good."""
REJECTED: dict[str, tuple[Any, Reason, str]] = {
    "no thought": (answer(content=SAID), Reason.CHECK_FAILED, ""),
    "nothing but a thought": (answer(content=None, reasoning=THOUGHT), Reason.MALFORMED_TURN, "went into reasoning"),
    "all spent in thinking": (answer(reason="length", content=None, tokens=2048), Reason.TRUNCATED_TURN, "2048 tokens"),
    "a filter": (answer(reason="content_filter", content=None), Reason.WITHHELD_TURN, "content_filter"),
    "a refusal": (answer(content=None, refusal="I cannot help."), Reason.WITHHELD_TURN, "I cannot help."),
    "a page": ("<html>Bad gateway</html>", Reason.POLICY_FAILED, "a page of HTML"),
    "a stream": ('data: {"choices": []}\n\ndata: [DONE]\n\n', Reason.POLICY_FAILED, ""),
    "another answer": (answer(content=f"<think>{THOUGHT}</think><answer>three</answer>"), Reason.CHECK_FAILED, ""),
    "words alone": (answer(content=THOUGHT), Reason.MALFORMED_TURN, THOUGHT[:20]),
}
STAGES = ("drafts", "runs", "trajectories")
KINDS = [*ACCEPTED, *HICCUPS, *REJECTED]


class Endpoint(JsonHandler):
    """Plans for all; then each question is answered in its way."""

    tries: ClassVar[Counter[str]] = Counter()

    def answer(self, body: dict[str, Any]) -> Any:
        if "response_format" in body:
            return answer(content=PLAN)
        (number,) = {*re.findall(r"birds are in image (\d+)\?", json.dumps(body["messages"]))}
        kind = KINDS[int(number)]
        self.tries[kind] += 1
        if kind in HICCUPS:
            return HICCUPS[kind] if self.tries[kind] == 1 else GOOD
        return ACCEPTED[kind] if kind in ACCEPTED else REJECTED[kind][0]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = []
    for number in range(len(KINDS)):
        Image.new("RGB", (200, 150), (9 * number, 90, 160)).save(tmp_path / f"{number}.png")
        rows.append({"image": f"{number}.png", "question": f"How many birds are in image {number}?", "answer": "two"})
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    monkeypatch.setenv("DARKROOM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DARKROOM_JUDGE", "oracle")
    added = CliRunner().invoke(app, ["ingest", str(tmp_path / "rows.jsonl"), "--name", "birds", "--license", "MIT"])
    assert added.exit_code == 0, added.output
    return tmp_path / "home"


def test_what_ships_has_its_thought_and_what_does_not_says_why(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with endpoint(Endpoint) as url:
        for name, value in {"": "openai", "_URL": url, "_MODEL": "m"}.items():
            monkeypatch.setenv(f"DARKROOM_POLICY{name}", value)
        first = CliRunner().invoke(app, ["materialize", "birds", "--family", "direct"])
        paid = Counter(Endpoint.tries)
        again = CliRunner().invoke(app, ["materialize", "birds", "--family", "direct"])
    assert (first.exit_code, again.exit_code) == (0, 0), first.output
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        tables, keys = workspace.tables, [TableKey(("direct", stage), "birds-0000") for stage in STAGES]
        samples = tables.read(TableKey(SAMPLES, "birds-0000"), Sample)
        kinds = {sample.sample_id: KINDS[int(re.sub(r"\D", "", sample.question))] for sample in samples}
        thoughts = {kinds[row.sample_id]: row.final_thought for row in tables.read(keys[-1], Trajectory)}
        rejects = {kinds[reject.sample_id]: reject for key in keys for reject in tables.read_rejects(key)}
    assert thoughts == dict.fromkeys([*ACCEPTED, *HICCUPS], THOUGHT)
    assert {kind: reject.reason for kind, reject in rejects.items()} == {kind: row[1] for kind, row in REJECTED.items()}
    for kind, (_, _, said) in REJECTED.items():
        assert said in rejects[kind].evidence, kind
    # only what was no answer is asked for again: it is on no ledger
    asked_again = {kind for kind, n in Endpoint.tries.items() if n > paid[kind]}
    assert asked_again == {"a page", "a stream"}
    assert {kind: paid[kind] for kind in KINDS if kind not in asked_again} == {
        kind: 2 if kind in HICCUPS else 1 for kind in KINDS if kind not in asked_again
    }
