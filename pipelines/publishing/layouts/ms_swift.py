r"""ms-swift: messages with a loss flag each, and paths to images; checked against its loader, version 4.6.

{"messages": [{"role": "user", "content": "<image>What …"}, {"role": "assistant", "content": "…", "loss": true}],
 "images": ["images/1f….jpeg"], "trajectory_id": "…"}

- ``ms_swift``: observations are user turns.
- ``ms_swift_inline``: observations are assistant messages with ``"loss": false``; ms-swift joins assistant messages
  that follow each other: one turn in pieces, as Thyme has it. The newline after an observation is not trained.
- ``ms_swift_grpo``: prompts; every other column reaches the reward function. Parquet, not JSON lines: a column that is
  null or empty in the first rows keeps its type.

{"messages": [{"role": "user", "content": "<image>What …"}], "images": ["images/1f….jpeg"], "solution": "42",
 "grader": {"kind": …}, …}
"""

from typing import Any

import pyarrow as pa

from darkroom.adapters import adapter_files
from darkroom.pipelines.publishing.layouts import base
from darkroom.pipelines.publishing.layouts.turns import Turn, with_placeholders

GRPO_SCHEMA = pa.schema(base.prompt_columns(("messages", pa.list_(base.MESSAGE)), image=base.TEXT, answer="solution"))


def _message(turn: Turn) -> dict[str, Any]:
    message = {"role": turn.role, "content": with_placeholders(turn.parts)}
    return {**message, "loss": turn.trained} if turn.role == "assistant" else message


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


MS_SWIFT = base.declared("trajectories", "ms_swift", lambda row: base.sft_record(row, [*map(_message, row.turns)]))
MS_SWIFT_INLINE = base.declared("trajectories", "ms_swift_inline", lambda row: base.sft_record(row, _inline(row.turns)))
MS_SWIFT_GRPO = base.declared(
    "prompts",
    "ms_swift_grpo",
    lambda row: base.prompt_record(row, messages=row.messages(), solution=row.row["answer"]),
    schema=GRPO_SCHEMA,
    extra_files=lambda facts: adapter_files("darkroom_ms_swift.py"),
)
