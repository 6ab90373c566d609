"""Pivots for TRL: prompts of single decisions for step-level RL, and pairs of actions for preference training.

- ``trl_steps``: the prefix as ``prompt``; the reward function takes ``pivot_id`` (``step_rewards``).
- ``trl_dpo``: the prefix as ``prompt``, the verified action as ``chosen``, the first rejected one as ``rejected``; a
  decision without one is rejected (``no_pair``).

{"prompt": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What …"}]}], "images": […],
 "chosen": [{"role": "assistant", "content": [{"type": "text", "text": "<think>…"}]}], "rejected": […], "pivot_id": "…"}
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from darkroom.pipelines.models.messages import Text
from darkroom.pipelines.publishing.layouts.base import IMAGE, TEXT, Column, ExportRow, Layout, hf_schema
from darkroom.pipelines.publishing.layouts.trl import messages_of, messages_type
from darkroom.pipelines.publishing.layouts.turns import Row, Turn, Unfit, Unrenderable, protocol_of, turns
from darkroom.pipelines.records.reject_reasons import RowError


def prefix_turns(row: Row) -> tuple[Turn, ...]:
    """The conversation before the decision. Raises ``Unrenderable``."""
    whole = {**row, "final_thought": "", "answer": row["gold"], "loss_policy": "all_rounds"}
    return turns(whole)[:-1]


def _record(row: ExportRow) -> dict[str, Any]:
    return {"pivot_id": row.row["pivot_id"], "prompt": messages_of(row.turns), "images": list(row.media)}


def _pair(row: ExportRow) -> dict[str, Any]:
    rejected = row.row["rejected"]
    if not rejected:
        raise Unrenderable(Unfit.NO_PAIR, "no other action is known after its prefix that does not reach the goal")
    actions = {"chosen": row.row["action"], "rejected": rejected[0]["action"]}
    return _record(row) | {name: messages_of([_turn(row.row, action)]) for name, action in actions.items()}


def _turn(row: Row, action: Mapping[str, str]) -> Turn:
    protocol, first = protocol_of(row), not row["rounds"]
    try:
        if action["code"]:
            text = protocol.write_round(action["thought"], action["code"], first=first)
        else:
            text = protocol.write_answer(action["thought"], action["answer"], first=first)
    except RowError as error:
        raise Unrenderable(Unfit.MALFORMED_TURN, error.evidence) from error
    return Turn("assistant", (Text(text),), trained=True)


_COLUMNS: list[Column] = [("pivot_id", TEXT), ("prompt", messages_type()), ("images", pa.list_(IMAGE))]
TRL_STEPS = Layout(
    name="trl_steps",
    trainer="TRL",
    description="GRPO on single decisions, rewarded by what their code shows",
    messages="prompt",
    media="bytes",
    render=_record,
    schema=hf_schema(_COLUMNS),
    of="pivots",
    prompts_only=True,
)
TRL_DPO = Layout(
    name="trl_dpo",
    trainer="TRL",
    description="DPO; a verified and a rejected action after the same prefix",
    messages="prompt",
    media="bytes",
    render=_pair,
    schema=hf_schema([*_COLUMNS, ("chosen", messages_type()), ("rejected", messages_type())]),
    of="pivots",
    prompts_only=True,
)
