"""OpenRLHF: prompts with images for RL, texts alone for SFT; checked against its sources, version 0.11.2, not run.

openrlhf_rl   {"prompt": [{"role": "user", "content": "<image>What …"}], "label": "42", "images": [bytes], …}
openrlhf_sft  {"messages": [{"role": "user", "content": "What …"}, {"role": "assistant", "content": …}]}

Of the ``rl`` dataset, the label is all that a reward function reads: {"ground_truth": "{\\"answer\\": …}", …}. Its SFT
reads no images at all: a row that shows one is rejected (``images_unsupported``).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pipelines.publishing.layouts.base import (
    ALL_ROUNDS,
    BYTES,
    LAST_ROUND,
    MESSAGE,
    TEXT,
    ExportFacts,
    ExportRow,
    Layout,
)
from pipelines.publishing.layouts.prompt_rows import about, ground_truth, prompt_layout, without_videos
from pipelines.publishing.layouts.turns import Unfit, Unrenderable

RL_SCHEMA = pa.schema(
    [
        ("trajectory_id", TEXT),
        ("datasource", TEXT),
        ("prompt", pa.list_(MESSAGE)),
        ("label", TEXT),
        ("images", pa.list_(BYTES)),
    ]
)
PROMPTS_SCHEMA = pa.schema(
    [
        ("sample_id", TEXT),
        ("datasource", TEXT),
        ("prompt", pa.list_(MESSAGE)),
        ("label", TEXT),
        ("ground_truth", TEXT),
        ("images", pa.list_(BYTES)),
    ]
)


def _of_trajectory(row: ExportRow) -> dict[str, Any]:
    return {"trajectory_id": row.row["trajectory_id"], **_labelled(without_videos(row), row.row["family"])}


def _of_prompt(row: ExportRow) -> dict[str, Any]:
    labelled = _labelled(row, row.row["source"])
    return {"sample_id": row.row["sample_id"], **labelled, "ground_truth": ground_truth(row.row)}


def _labelled(row: ExportRow, source: str) -> dict[str, Any]:
    return {
        "datasource": f"darkroom/{source}",
        "prompt": row.messages(),
        "label": row.row["answer"],
        "images": [image["bytes"] for image in row.media],
    }


def _texts(row: ExportRow) -> dict[str, Any]:
    if n := sum(len(turn.images) for turn in row.turns):
        raise Unrenderable(Unfit.IMAGES_UNSUPPORTED, f"OpenRLHF's SFT reads texts only; the row shows {n} images")
    return {"trajectory_id": row.row["trajectory_id"], "messages": row.messages()}


def _rl_usage(facts: ExportFacts) -> str:
    return f"""\
```
--data.prompt_dataset FOLDER/{facts.split}.parquet --data.input_key prompt --data.label_key label
--data.image_key images --data.max_images_per_prompt 16 --data.apply_chat_template
```

Each row is a prompt (system, images, question) with its answer as the label; the trajectories themselves are not in
this layout, and of several with one prompt the first is kept. Blanks and line ends beside an image are lost: OpenRLHF
strips them. Tools and observations are your agent's (`--train.agent_func_path`): it needs an executor of its own.
OpenRLHF leaves out an image that it cannot open, with a warning; every image here opens.
"""


def _sft_usage(facts: ExportFacts) -> str:
    return f"""\
```
--data.input_key messages --data.apply_chat_template
    --data.dataset FOLDER/{facts.split}_{ALL_ROUNDS}.jsonl --data.multiturn     # first run
    --data.dataset FOLDER/{facts.split}_{LAST_ROUND}.jsonl                      # second run, on its checkpoint
```

**OpenRLHF's SFT reads no images.** Rows that show one, in the question or in an observation, are in `rejects.jsonl`
as `images_unsupported`; use another trainer for them.
Loss: exact in two runs, one per file: with `--data.multiturn` every assistant turn is trained, without it the last.
"""


def _prompts_usage(facts: ExportFacts) -> str:
    return f"""\
```
--data.prompt_dataset FOLDER/{facts.split}.parquet --data.input_key prompt --data.label_key ground_truth
--data.image_key images --data.max_images_per_prompt 16 --data.apply_chat_template
--reward.remote_url FOLDER/reward.py
```

{about(facts)}
They are in `ground_truth`, a JSON text: OpenRLHF hands one label to a reward function; `label` is the answer alone.
OpenRLHF logs a fault of a reward function and goes on without the reward: read its log for `NeedsToolkit`. Blanks and
line ends beside an image are lost: OpenRLHF strips them. Tools are your agent's (`--train.agent_func_path`), which then
calls `reward.score` itself.
"""


OPENRLHF_RL = Layout(
    name="openrlhf_rl",
    trainer="OpenRLHF",
    description="RL; prompts with labels",
    messages="prompt",
    media="bytes",
    render=_of_trajectory,
    usage=_rl_usage,
    schema=RL_SCHEMA,
    prompts_only=True,
)
OPENRLHF_SFT = Layout(
    name="openrlhf_sft",
    trainer="OpenRLHF",
    description="SFT; texts only, rows with images are rejected",
    messages="messages",
    media="none",
    render=_texts,
    usage=_sft_usage,
    by_loss=True,
)
OPENRLHF_PROMPTS = prompt_layout(
    "openrlhf_rl",
    trainer="OpenRLHF",
    description="RL; prompts with labels",
    messages="prompt",
    render=_of_prompt,
    usage=_prompts_usage,
    schema=PROMPTS_SCHEMA,
)
