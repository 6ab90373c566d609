"""LLaMA-Factory: sharegpt, with paths to images; checked against its loader, version 0.9.5.

{"system": "You answer …", "conversations": [{"from": "human", "value": "<image>What …"}, {"from": "gpt", "value": …}],
 "images": ["images/1f….jpeg"], "trajectory_id": "…"}

Observations are ``human`` turns, not ``observation`` ones: its Qwen templates put ``<tool_response>`` around those, and
the protocol has its own markers. Calls are ``gpt`` turns, not ``function_call``: those are parsed and written anew.
"""

import json
from pathlib import Path
from typing import Any

from darkroom.pipelines.models.messages import Text
from darkroom.pipelines.publishing.layouts.base import ExportFacts, ExportRow, declared
from darkroom.pipelines.publishing.layouts.turns import escaped

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
    form = {"formatting": "sharegpt", "columns": columns, "tags": tags}
    names = {file: Path(file).stem.removeprefix(f"{facts.source.split}_") for file in facts.files}
    info = {f"darkroom_{name}": {"file_name": file, **form} for file, name in names.items()}
    return {"dataset_info.json": json.dumps(info, indent=2) + "\n"}


LLAMA_FACTORY = declared("trajectories", "llama_factory", _render, extra_files=_dataset_info)
