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
are given the response, its length and the column ``data.answer_key``, nothing else. Checked by running its dataset and
its reward managers (``docs/trainers.md``).
"""

from typing import Any

import pyarrow as pa

from darkroom.adapters import adapter_files
from darkroom.pipelines.models.protocols.tool_call import CODE, CROP
from darkroom.pipelines.publishing.layouts.base import (
    FACTS,
    GRADED,
    IMAGE,
    MESSAGE,
    TEXT,
    Column,
    ExportFacts,
    ExportRow,
    declared,
    graded,
    ground_truth,
    measured,
    sft_record,
    texts,
    without_videos,
)

SFT_SCHEMA = pa.schema([("trajectory_id", TEXT), ("messages", pa.list_(MESSAGE)), ("images", pa.list_(IMAGE))])
_create = pa.struct([("create_kwargs", pa.struct(texts("ground_truth")))])
_tools_kwargs = pa.struct([(CROP, _create), (CODE, _create)])
_tools: list[Column] = [("need_tools_kwargs", pa.bool_()), ("tools_kwargs", _tools_kwargs)]
_place: list[Column] = [("split", TEXT), ("index", pa.int64())]


def _rl_schema(*extra: Column) -> pa.Schema:
    columns: list[Column] = [*texts("data_source", "agent_name"), ("prompt", pa.list_(MESSAGE))]
    columns += [("images", pa.list_(IMAGE)), ("ability", TEXT)]
    columns += [("reward_model", pa.struct(texts("style", "ground_truth")))]
    return pa.schema([*columns, ("extra_info", pa.struct([*_place, *extra, *_tools]))])


_ASKED = ("question", "answer", "trajectory_id", "sample_id", "protocol", "mode")
RL_SCHEMA = _rl_schema(*texts(*_ASKED))
PROMPTS_SCHEMA = _rl_schema(*texts("sample_id", "answer"), *GRADED, *FACTS)
EASYR1_SCHEMA = pa.schema(
    [*texts("sample_id", "problem"), ("images", pa.list_(IMAGE)), *texts("answer", "ground_truth")]
)


def _of_trajectory(row: ExportRow) -> dict[str, Any]:
    columns = without_videos(row).row
    extra = {name: columns[name] for name in _ASKED}
    return _rl_record(row, extra, source=columns["family"], ability=columns["category"] or columns["family"])


def _of_prompt(row: ExportRow) -> dict[str, Any]:
    columns = row.row
    extra = {"sample_id": columns["sample_id"], "answer": columns["answer"], **graded(columns), **measured(columns)}
    return _rl_record(row, extra, source=columns["source"], ability=columns["category"])


def _rl_record(row: ExportRow, extra: dict[str, Any], *, source: str, ability: str) -> dict[str, Any]:
    protocol, answer = row.row["protocol"], row.row["answer"]
    return {
        "data_source": f"darkroom/{source}",
        # verl's own agent loop reads calls as JSON; darkroom_verl.py plays all protocols, under these names
        "agent_name": "tool_agent" if protocol == "tool_call" else f"darkroom_{protocol}_agent",
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


def _adapters(_: ExportFacts) -> dict[str, str]:
    return adapter_files("darkroom_verl.py", "darkroom_verl.yaml")


VERL_SFT = declared("trajectories", "verl_sft", lambda row: sft_record(row, row.messages()), schema=SFT_SCHEMA)
VERL_RL = declared("trajectories", "verl_rl", _of_trajectory, schema=RL_SCHEMA, extra_files=_adapters)
VERL_PROMPTS = declared("prompts", "verl_rl", _of_prompt, schema=PROMPTS_SCHEMA, extra_files=_adapters)
EASYR1 = declared("prompts", "easyr1", _problem, schema=EASYR1_SCHEMA)
