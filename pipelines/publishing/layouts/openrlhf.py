"""OpenRLHF: prompts with images for RL, texts alone for SFT; checked against its sources, version 0.11.2, not run.

openrlhf_rl   {"prompt": [{"role": "user", "content": "<image>What …"}], "label": "42", "images": [bytes], …}
openrlhf_sft  {"messages": [{"role": "user", "content": "What …"}, {"role": "assistant", "content": …}]}

Of the ``rl`` dataset, the label is all that a reward function reads: {"ground_truth": "{\\"answer\\": …}", …}. Its SFT
reads no images at all: a row that shows one is rejected (``images_unsupported``).
"""

from typing import Any

import pyarrow as pa

from darkroom.adapters import adapter_files
from darkroom.pipelines.publishing.layouts import base
from darkroom.pipelines.publishing.layouts.turns import Unfit, Unrenderable


def _rl_schema(key: str, *labels: str) -> pa.Schema:
    prompt, images = ("prompt", pa.list_(base.MESSAGE)), ("images", pa.list_(base.BYTES))
    return pa.schema([*base.texts(key, "datasource"), prompt, *base.texts(*labels), images])


RL_SCHEMA = _rl_schema("trajectory_id", "label")
PROMPTS_SCHEMA = _rl_schema("sample_id", "label", "ground_truth")


def _of_trajectory(row: base.ExportRow) -> dict[str, Any]:
    return {"trajectory_id": row.row["trajectory_id"], **_labelled(base.without_videos(row), row.row["family"])}


def _of_prompt(row: base.ExportRow) -> dict[str, Any]:
    labelled = _labelled(row, row.row["source"])
    return {"sample_id": row.row["sample_id"], **labelled, "ground_truth": base.ground_truth(row.row)}


def _labelled(row: base.ExportRow, source: str) -> dict[str, Any]:
    return {
        "datasource": f"darkroom/{source}",
        "prompt": row.messages(),
        "label": row.row["answer"],
        "images": [image["bytes"] for image in row.media],
    }


def _texts(row: base.ExportRow) -> dict[str, Any]:
    if n := sum(len(turn.images) for turn in row.turns):
        raise Unrenderable(Unfit.IMAGES_UNSUPPORTED, f"OpenRLHF's SFT reads texts only; the row shows {n} images")
    return {"trajectory_id": row.row["trajectory_id"], "messages": row.messages()}


OPENRLHF_RL = base.declared("trajectories", "openrlhf_rl", _of_trajectory, schema=RL_SCHEMA)
OPENRLHF_SFT = base.declared("trajectories", "openrlhf_sft", _texts)
OPENRLHF_PROMPTS = base.declared(
    "prompts",
    "openrlhf_rl",
    _of_prompt,
    schema=PROMPTS_SCHEMA,
    extra_files=lambda facts: adapter_files("darkroom_openrlhf.py"),
)
