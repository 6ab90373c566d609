"""verl RL: one prompt a row with its answer, for a rule to judge; checked against ``RLHFDataset`` of version 0.9.1.

{"data_source": "darkroom/crop", "agent_name": "tool_agent", "prompt": [{"role": "user", "content": "<image>What …"}],
 "images": [{"bytes": …, "path": …}], "ability": "OCR", "reward_model": {"style": "rule", "ground_truth": "42"},
 "extra_info": {"split": "train", "index": 0, "question": …, "answer": "42", "need_tools_kwargs": true, …}}
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import pyarrow as pa

from pipelines.layouts.base import Facts, Layout, Rendered, Said
from pipelines.layouts.faults import Unfit, Unrenderable
from pipelines.layouts.text import with_placeholders
from pipelines.layouts.verl_sft import IMAGE, MESSAGE
from pipelines.protocols.tools import CODE, CROP

_text = pa.string()
_create = pa.struct([("create_kwargs", pa.struct([("ground_truth", _text)]))])
TOOLS = pa.struct([(CROP, _create), (CODE, _create)])
_extra = pa.struct(
    [
        ("split", _text),
        ("index", pa.int64()),
        ("question", _text),
        ("answer", _text),
        ("trajectory_id", _text),
        ("protocol", _text),
        ("need_tools_kwargs", pa.bool_()),
        ("tools_kwargs", TOOLS),
    ]
)


def schema_of(extra: pa.DataType) -> pa.Schema:
    """What ``RLHFDataset`` reads of a row, with the ``extra_info`` that goes to tools and the reward function."""
    return pa.schema(
        [
            ("data_source", _text),
            ("agent_name", _text),
            ("prompt", pa.list_(MESSAGE)),
            ("images", pa.list_(IMAGE)),
            ("ability", _text),
            ("reward_model", pa.struct([("style", _text), ("ground_truth", _text)])),
            ("extra_info", extra),
        ]
    )


SCHEMA = schema_of(_extra)


def without_videos(said: Said) -> Said:
    """``said``, unless its prompt speaks of a video that only Darkroom's runtime has."""
    if said.row.get("videos"):
        raise Unrenderable(
            Unfit.VIDEOS_UNSUPPORTED, "the prompt is about a video that is in the sandbox only; a prompt alone loses it"
        )
    return said


def agent(protocol: str) -> str:
    """The agent loop that a row asks for. verl's own understands calls as JSON; the other protocols have none there."""
    return "tool_agent" if protocol == "tool_call" else f"darkroom_{protocol}_agent"


def tools_kwargs(answer: str) -> dict[str, Any]:
    """What verl gives its tools when a rollout begins."""
    return {name: {"create_kwargs": {"ground_truth": answer}} for name in (CROP, CODE)}


def _render(said: Said) -> Rendered:
    row = without_videos(said).row
    extra: dict[str, Any] = {
        "split": said.split,
        "index": said.index,
        "question": row["question"],
        "answer": row["answer"],
        "trajectory_id": row["trajectory_id"],
        "protocol": row["protocol"],
        "need_tools_kwargs": row["protocol"] == "tool_call" and row["mode"] != "forbidden",
        "tools_kwargs": tools_kwargs(row["answer"]),
    }
    record = {
        "data_source": f"darkroom/{row['family']}",
        "agent_name": agent(row["protocol"]),
        "prompt": [{"role": turn.role, "content": with_placeholders(turn.parts)} for turn in said.turns],
        "images": list(said.media),
        "ability": row["category"] or row["family"],
        "reward_model": {"style": "rule", "ground_truth": row["answer"]},
        "extra_info": extra,
    }
    return Rendered(record)


def _usage(facts: Facts) -> str:
    path = PurePath("FOLDER", f"{facts.split}.parquet")
    return f"""\
```
data.train_files={path} data.image_key=images data.return_raw_chat=True data.truncation=error
data.max_prompt_length=16384 actor_rollout_ref.rollout.multi_turn.enable=True
```

Each row is a prompt (system, images, question) with its answer in `reward_model.ground_truth`; the trajectories
themselves are not in this layout, and of several with one prompt the first is kept. `data_source` is
`darkroom/<family>`: name it in your reward function (`custom_reward_function.path`).
`agent_name` is `tool_agent` for rows of the protocol tool_call: give verl the tools `{CROP}` and
`{CODE}` in its tool configuration. For the other protocols it is `darkroom_<protocol>_agent`, an agent loop
that verl does not have: register one, or export them for TRL, where Darkroom's sandbox is the environment.
Loss is verl's own: the policy's words, never an observation.
"""


VERL_RL = Layout(
    name="verl_rl",
    trainer="verl",
    says="RL; prompts with answers for a rule",
    messages="prompt",
    media="bytes",
    render=_render,
    usage=_usage,
    schema=SCHEMA,
    prompts_only=True,
)
