r"""ms-swift: messages with a loss flag each, and paths to images; checked against its loader, version 4.6.

{"messages": [{"role": "user", "content": "<image>What …"}, {"role": "assistant", "content": "…", "loss": true}],
 "images": ["images/1f….jpeg"], "trajectory_id": "…"}

- ``ms_swift``: observations are user turns.
- ``ms_swift_inline``: observations are assistant messages with ``"loss": false``; ms-swift joins assistant messages
  that follow each other: one turn in pieces, as Thyme has it. The newline after an observation is not trained.
"""

from __future__ import annotations

from typing import Any

from pipelines.layouts.base import Facts, Layout, Rendered, Said
from pipelines.layouts.text import with_placeholders
from pipelines.layouts.turns import Turn


def _message(turn: Turn) -> dict[str, Any]:
    said = {"role": turn.role, "content": with_placeholders(turn.parts)}
    return {**said, "loss": turn.trained} if turn.role == "assistant" else said


def _inline(turns: tuple[Turn, ...]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    answering = False
    for turn in turns:
        message = _message(turn)
        if answering and turn.role == "user":
            messages[-1]["content"] += "\n"  # the model's own; the one after the observation is the sandbox's
            message = {"role": "assistant", "content": message["content"] + "\n", "loss": False}
        answering = answering or turn.role == "assistant"
        messages.append(message)
    return messages


def _record(said: Said, messages: list[dict[str, Any]]) -> Rendered:
    return Rendered({"trajectory_id": said.row["trajectory_id"], "messages": messages, "images": list(said.media)})


def _usage(facts: Facts) -> str:
    return f"""\
```
ROOT_IMAGE_DIR=FOLDER swift sft --dataset FOLDER/{facts.split}.jsonl --loss_scale default --strict true …
```

Loss: exact, message by message, for both loss policies: every assistant message has `"loss"`, which goes before
`--loss_scale`. `--loss_scale last_round` is not needed, and would not know rows whose every round is trained.
The `<|im_end|>` of every turn but the last is never trained (ms-swift counts it to the next turn).
`ROOT_IMAGE_DIR` makes the paths of `images` absolute; without it, start in FOLDER. `--strict true` stops at a row that
cannot be read; without it ms-swift drops such rows. Models that think take earlier turns' `<think>` out unless they are
told not to: `--preserve_thinking true`.
"""


MS_SWIFT = Layout(
    name="ms_swift",
    trainer="ms-swift",
    says="SFT; observations as user turns",
    messages="messages",
    media="paths",
    render=lambda said: _record(said, [_message(turn) for turn in said.turns]),
    usage=_usage,
)
MS_SWIFT_INLINE = Layout(
    name="ms_swift_inline",
    trainer="ms-swift",
    says="SFT; one assistant turn in pieces with the observations inside, as Thyme has it",
    messages="messages",
    media="paths",
    render=lambda said: _record(said, _inline(said.turns)),
    usage=_usage,
    in_pieces=True,
)
