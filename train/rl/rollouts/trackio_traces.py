"""Sample rollouts as traces of trackio: its page Traces shows them as conversations with their code and images."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import trackio

KEY = "rollouts"
"""Under which TRL logs its own traces, too."""
_METADATA = ("sample_id", "mode", "gold", "answer", "reward", "parts", "advantage", "broken", "unanswered")


def log_traces(rollouts: Sequence[Mapping[str, Any]], images: Path, step: int) -> None:
    """Rollouts of the sample log, in the run that the trainer has begun; what trackio cannot take it warns of."""
    traces = [
        trackio.Trace(list(_messages(rollout, images)), {name: rollout[name] for name in _METADATA})
        for rollout in rollouts
    ]
    trackio.log({KEY: traces}, step=step)


def _messages(rollout: Mapping[str, Any], images: Path) -> Iterator[dict[str, Any]]:
    """In OpenAI's form, images as trackio's: code is a call of ``run_python``, an observation the tool's result."""
    yield {"role": "user", "content": _content(rollout["question"], rollout["question_images"], images)}
    for number, turn in enumerate(rollout["rounds"], 1):
        call = {"name": "run_python", "arguments": turn["code"]}
        calls = [{"id": str(number), "type": "function", "function": call}]
        yield {"role": "assistant", "content": turn["thought"], "tool_calls": calls}
        text = "\n".join(filter(None, (turn["text"], turn["error"]))) or turn["status"]
        yield {"role": "tool", "tool_call_id": str(number), "content": _content(text, turn["images"], images)}
    said = (rollout["final_thought"], rollout["answer"]) if rollout["unanswered"] is None else (rollout["written"],)
    yield {"role": "assistant", "content": "\n\n".join(filter(None, said))}


def _content(text: str, names: Sequence[str], images: Path) -> list[Any]:
    return [*(trackio.Image(images / name) for name in names), {"type": "text", "text": text}]
