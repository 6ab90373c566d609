"""LLaMA-Factory: sharegpt, with paths to images; checked against its loader, version 0.9.5.

{"system": "You answer …", "conversations": [{"from": "human", "value": "<image>What …"}, {"from": "gpt", "value": …}],
 "images": ["images/1f….jpeg"], "trajectory_id": "…"}

Observations are ``human`` turns, not ``observation`` ones: its Qwen templates put ``<tool_response>`` around those, and
the protocol has its own markers. Calls are ``gpt`` turns, not ``function_call``: those are parsed and written anew.
"""

from __future__ import annotations

import json
from typing import Any

from pipelines.models.messages import Text
from pipelines.publishing.layouts.base import ALL_ROUNDS, LAST_ROUND, ExportFacts, ExportRow, Layout
from pipelines.publishing.layouts.text import escaped

_FROM = {"user": "human", "assistant": "gpt"}


def _render(row: ExportRow) -> dict[str, Any]:
    system = [part.text for turn in row.turns if turn.role == "system" for part in turn.parts if isinstance(part, Text)]
    messages = [message for message in row.messages() if message["role"] != "system"]
    return {
        "trajectory_id": row.row["trajectory_id"],
        "system": escaped("".join(system)),
        "conversations": [{"from": _FROM[message["role"]], "value": message["content"]} for message in messages],
        "images": list(row.media),
    }


def _dataset_info(facts: ExportFacts) -> dict[str, str]:
    columns = {"messages": "conversations", "system": "system", "images": "images"}
    tags = {"role_tag": "from", "content_tag": "value", "user_tag": "human", "assistant_tag": "gpt"}
    groups = {group: facts.file(group) for group in (ALL_ROUNDS, LAST_ROUND)}
    info: dict[str, Any] = {
        f"darkroom_{group}": {"file_name": file, "formatting": "sharegpt", "columns": columns, "tags": tags}
        for group, file in groups.items()
        if file
    }
    return {"dataset_info.json": json.dumps(info, indent=2) + "\n"}


def _usage(facts: ExportFacts) -> str:
    return """\
```yaml
dataset_dir: FOLDER
media_dir: FOLDER
template: qwen2_vl          # for Qwen3-VL: qwen3_vl_nothink
cutoff_len: 32768           # what is longer is cut without a word
dataset: darkroom_all_rounds
mask_history: false
```

and, as a second run on the first one's checkpoint, the same with

```yaml
dataset: darkroom_last_round
mask_history: true
```

(`dataset_info.json` names those of the two that have rows.)

Loss: `mask_history` holds for a whole run, so the rows lie in two files by what their loss policy trains: all turns of
the model, or the last one only. Each file with its line above is exact; both in one run are not.
Observations cannot stand inside an answer (Thyme's own layout): they are human turns.
Templates that reason (`qwen3_vl`) take `<think>` … `</think>` out of earlier turns and add empty ones: use `_nothink`.
LLaMA-Factory drops a row that it cannot read with a warning and goes on; no row here gives it a reason to.
"""


LLAMA_FACTORY = Layout(
    name="llama_factory",
    trainer="LLaMA-Factory",
    description="SFT; sharegpt with dataset_info.json",
    messages="conversations",
    media="paths",
    render=_render,
    usage=_usage,
    by_loss=True,
    extra_files=_dataset_info,
)
