r"""verl and EasyR1.

verl: messages for SFT; for RL one prompt a row, with its answer for a rule. Checked against version 0.9.1.

verl_sft   {"messages": [{"role": "user", "content": "<image>What …"}, …], "images": [{"bytes": …, "path": "1f….jpeg"}]}
verl_rl    {"data_source": "darkroom/crop", "agent_name": "tool_agent", "prompt": [{"role": "user", "content": …}],
            "images": [{"bytes": …, "path": …}], "ability": "OCR", "reward_model": {"style": "rule",
            "ground_truth": "42"}, "extra_info": {"index": 0, "answer": "42", "need_tools_kwargs": true, …}}

``MultiTurnSFTDataset`` and ``RLHFDataset`` read them. The latter reads ``index``, ``tools_kwargs``,
``need_tools_kwargs`` and ``interaction_kwargs`` (none here) in ``extra_info``; all of it goes to the reward function.

EasyR1, made from verl: one text with ``<image>`` in it, images, and all that rewards read as one JSON text.

{"problem": "You …\n\n<image>What …", "images": [{"bytes": …, "path": …}], "answer": "42",
 "ground_truth": "{\"answer\": \"42\", \"grader\": {\"kind\": …}, …}"}

EasyR1 knows the user's role only: the protocol's system words stand at the head of the problem. Its reward functions
are given the response and the column ``data.answer_key``, nothing else. Checked against its sources (``RLHFDataset``,
``FunctionRewardManager``); not run.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import pyarrow as pa

from pipelines.models.protocols.tools import CODE, CROP
from pipelines.publishing.layouts.base import (
    ALL_ROUNDS,
    IMAGE,
    LAST_ROUND,
    MESSAGE,
    TEXT,
    ExportFacts,
    ExportRow,
    Layout,
)
from pipelines.publishing.layouts.prompt_rows import (
    FACTS,
    GRADED,
    about,
    graded,
    ground_truth,
    measured,
    prompt_layout,
    without_videos,
)

SFT_SCHEMA = pa.schema([("trajectory_id", TEXT), ("messages", pa.list_(MESSAGE)), ("images", pa.list_(IMAGE))])
_create = pa.struct([("create_kwargs", pa.struct([("ground_truth", TEXT)]))])
_tools: list[tuple[str, pa.DataType]] = [
    ("need_tools_kwargs", pa.bool_()),
    ("tools_kwargs", pa.struct([(CROP, _create), (CODE, _create)])),
]
_place: list[tuple[str, pa.DataType]] = [("split", TEXT), ("index", pa.int64())]


def _rl_schema(*extra: tuple[str, pa.DataType]) -> pa.Schema:
    return pa.schema(
        [
            ("data_source", TEXT),
            ("agent_name", TEXT),
            ("prompt", pa.list_(MESSAGE)),
            ("images", pa.list_(IMAGE)),
            ("ability", TEXT),
            ("reward_model", pa.struct([("style", TEXT), ("ground_truth", TEXT)])),
            ("extra_info", pa.struct([*_place, *extra, *_tools])),
        ]
    )


RL_SCHEMA = _rl_schema(("question", TEXT), ("answer", TEXT), ("trajectory_id", TEXT), ("protocol", TEXT))
PROMPTS_SCHEMA = _rl_schema(("sample_id", TEXT), ("answer", TEXT), *GRADED, *FACTS)
EASYR1_SCHEMA = pa.schema(
    [("sample_id", TEXT), ("problem", TEXT), ("images", pa.list_(IMAGE)), ("answer", TEXT), ("ground_truth", TEXT)]
)


def agent(protocol: str) -> str:
    """The agent loop that a row asks for. verl's own reads calls as JSON; the other protocols have none there."""
    return "tool_agent" if protocol == "tool_call" else f"darkroom_{protocol}_agent"


def _sft(row: ExportRow) -> dict[str, Any]:
    return {"trajectory_id": row.row["trajectory_id"], "messages": row.messages(), "images": list(row.media)}


def _of_trajectory(row: ExportRow) -> dict[str, Any]:
    columns = without_videos(row).row
    extra = {name: columns[name] for name in ("question", "answer", "trajectory_id", "protocol")}
    return _rl_record(row, extra, source=columns["family"], ability=columns["category"] or columns["family"])


def _of_prompt(row: ExportRow) -> dict[str, Any]:
    columns = row.row
    extra = {"sample_id": columns["sample_id"], "answer": columns["answer"], **graded(columns), **measured(columns)}
    return _rl_record(row, extra, source=columns["source"], ability=columns["category"])


def _rl_record(row: ExportRow, extra: dict[str, Any], *, source: str, ability: str) -> dict[str, Any]:
    protocol, answer = row.row["protocol"], row.row["answer"]
    return {
        "data_source": f"darkroom/{source}",
        "agent_name": agent(protocol),
        "prompt": row.messages(),
        "images": list(row.media),
        "ability": ability,
        "reward_model": {"style": "rule", "ground_truth": answer},
        "extra_info": {
            "split": row.split,
            "index": row.index,
            **extra,
            "need_tools_kwargs": protocol == "tool_call" and row.row["mode"] != "forbidden",
            "tools_kwargs": {name: {"create_kwargs": {"ground_truth": answer}} for name in (CROP, CODE)},
        },
    }


def _problem(row: ExportRow) -> dict[str, Any]:
    return {
        "sample_id": row.row["sample_id"],
        "problem": "\n\n".join(message["content"] for message in row.messages()),
        "images": list(row.media),
        "answer": row.row["answer"],
        "ground_truth": ground_truth(row.row),
    }


def _sft_usage(facts: ExportFacts) -> str:
    files = [file for group in (ALL_ROUNDS, LAST_ROUND) if (file := facts.file(group))]
    listed = ",".join(f"FOLDER/{file}" for file in files)
    return f"""\
```
data.train_files=[{listed}] data.messages_key=messages data.pad_mode=no_padding data.max_length=32768
```

Loss: verl trains **every** assistant turn and has no flag for less. `{facts.split}_{ALL_ROUNDS}.parquet` is exact.
The rows of `{facts.split}_{LAST_ROUND}.parquet` ask for the last turn only, which verl cannot do: their earlier, often
wrong attempts would be learned. Leave that file out of `data.train_files` to keep to the loss policy.
Observations cannot stand inside an answer (Thyme's own layout): they are user turns. A processor is needed for every
row, also those without images.
"""


def _rl_usage(facts: ExportFacts) -> str:
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


def _prompts_usage(facts: ExportFacts) -> str:
    return f"""\
```
data.train_files=FOLDER/{facts.split}.parquet data.image_key=images data.return_raw_chat=True data.truncation=error
data.max_prompt_length=16384 actor_rollout_ref.rollout.multi_turn.enable=True
reward.custom_reward_function.path=FOLDER/reward.py reward.custom_reward_function.name=verl_reward
```

{about(facts)}
All of it is in `extra_info`, beside the `tools_kwargs` of verl's tools. `agent_name` is `{agent(facts.protocol)}`: for
tool_call give verl the tools `{CROP}` and `{CODE}` in its tool configuration; the agent loops
`darkroom_<protocol>_agent` of the other protocols verl does not have: register one, or train with TRL.
"""


def _easyr1_usage(facts: ExportFacts) -> str:
    return f"""\
```
data.train_files=FOLDER/{facts.split}.parquet data.prompt_key=problem data.answer_key=ground_truth data.image_key=images
data.format_prompt=null data.max_prompt_length=16384
worker.reward.reward_type=batch worker.reward.reward_function=FOLDER/reward.py:easyr1_reward
```

{about(facts)}
They are in `ground_truth`, a JSON text, since EasyR1 hands nothing else to a reward function; `answer` is the answer
alone. The protocol's system words are the beginning of `problem`: EasyR1 has no system message, and the chat template
of Qwen2-VL puts its own before it. Without `data.format_prompt=null` its template would be put around them. EasyR1
makes one turn a rollout: for tools, change its rollout worker, or use another trainer. Its first versions cannot load
a row without images.
"""


VERL_SFT = Layout(
    name="verl_sft",
    trainer="verl",
    description="SFT; every assistant turn is trained",
    messages="messages",
    media="bytes",
    render=_sft,
    usage=_sft_usage,
    schema=SFT_SCHEMA,
    by_loss=True,
)
VERL_RL = Layout(
    name="verl_rl",
    trainer="verl",
    description="RL; prompts with answers for a rule",
    messages="prompt",
    media="bytes",
    render=_of_trajectory,
    usage=_rl_usage,
    schema=RL_SCHEMA,
    prompts_only=True,
)
VERL_PROMPTS = prompt_layout(
    "verl_rl",
    trainer="verl",
    description="RL; prompts with answers for a rule",
    messages="prompt",
    render=_of_prompt,
    usage=_prompts_usage,
    schema=PROMPTS_SCHEMA,
)
EASYR1 = prompt_layout(
    "easyr1",
    trainer="EasyR1",
    description="GRPO; problems with ground truths",
    messages="problem",
    render=_problem,
    usage=_easyr1_usage,
    schema=EASYR1_SCHEMA,
)
