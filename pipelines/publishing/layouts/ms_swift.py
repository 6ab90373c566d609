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

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pipelines.publishing.layouts.base import MESSAGE, TEXT, ExportFacts, ExportRow, Layout
from pipelines.publishing.layouts.prompt_rows import FACTS, GRADED, about, graded, measured, prompt_layout
from pipelines.publishing.layouts.text import with_placeholders
from pipelines.publishing.layouts.turns import Turn

GRPO_SCHEMA = pa.schema(
    [
        ("sample_id", TEXT),
        ("messages", pa.list_(MESSAGE)),
        ("images", pa.list_(TEXT)),
        ("solution", TEXT),
        *GRADED,
        *FACTS,
    ]
)


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


def _record(row: ExportRow, messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {"trajectory_id": row.row["trajectory_id"], "messages": messages, "images": list(row.media)}


def _prompt(row: ExportRow) -> dict[str, Any]:
    return {
        "sample_id": row.row["sample_id"],
        "messages": row.messages(),
        "images": list(row.media),
        "solution": row.row["answer"],
        **graded(row.row),
        **measured(row.row),
    }


def _usage(facts: ExportFacts) -> str:
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


def _grpo_usage(facts: ExportFacts) -> str:
    return f"""\
```
ROOT_IMAGE_DIR=FOLDER swift rlhf --rlhf_type grpo --dataset FOLDER/{facts.split}.parquet --strict true
    --external_plugins FOLDER/reward.py --reward_funcs darkroom --max_length 16384 …
```

{about(facts)}
The answer is `solution`; every other column reaches the reward function by its name. `ROOT_IMAGE_DIR` makes the paths
of `images` absolute; without it, start in FOLDER. Rounds with a tool need a scheduler of your own
(`--multi_turn_scheduler`).
"""


MS_SWIFT = Layout(
    name="ms_swift",
    trainer="ms-swift",
    description="SFT; observations as user turns",
    messages="messages",
    media="paths",
    render=lambda row: _record(row, [_message(turn) for turn in row.turns]),
    usage=_usage,
)
MS_SWIFT_INLINE = Layout(
    name="ms_swift_inline",
    trainer="ms-swift",
    description="SFT; one assistant turn in pieces with the observations inside, as Thyme has it",
    messages="messages",
    media="paths",
    render=lambda row: _record(row, _inline(row.turns)),
    usage=_usage,
    in_pieces=True,
)
MS_SWIFT_GRPO = prompt_layout(
    "ms_swift_grpo",
    trainer="ms-swift",
    description="GRPO; prompts with solutions and graders",
    messages="messages",
    media="paths",
    render=_prompt,
    usage=_grpo_usage,
    schema=GRPO_SCHEMA,
)
