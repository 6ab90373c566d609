"""verl: one prompt a row; what its reward function reads is ``extra_info``. Checked against version 0.9.1.

{"data_source": "darkroom/v_star", "agent_name": "tool_agent", "prompt": [{"role": "user", "content": "<image>What …"}],
 "images": [{"bytes": …, "path": …}], "ability": "OCR", "reward_model": {"style": "rule", "ground_truth": "42"},
 "extra_info": {"index": 0, "answer": "42", "grader": {"kind": …}, "need_tools_kwargs": true, "tools_kwargs": …, …}}

``RLHFDataset`` reads ``index``, ``tools_kwargs``, ``need_tools_kwargs`` and ``interaction_kwargs`` (none here) in
``extra_info``; all of it goes to the reward function.
"""

from __future__ import annotations

import pyarrow as pa

from pipelines.layouts.base import Facts, Layout, Rendered, Said
from pipelines.layouts.prompts.rows import FACTS, GRADED, facts, graded, grader_of, messages
from pipelines.layouts.prompts.usage import FORBIDDEN, about, reward_file
from pipelines.layouts.verl_rl import TOOLS, agent, schema_of, tools_kwargs
from pipelines.protocols.tools import CODE, CROP

_text = pa.string()
_extra = pa.struct(
    [
        *(("split", _text), ("index", pa.int64()), ("sample_id", _text), ("answer", _text)),
        *GRADED,
        *FACTS,
        *(("need_tools_kwargs", pa.bool_()), ("tools_kwargs", TOOLS)),
    ]
)
SCHEMA = schema_of(_extra)


def _render(said: Said) -> Rendered:
    row = said.row
    extra = {
        "split": said.split,
        "index": said.index,
        "sample_id": row["sample_id"],
        "answer": row["answer"],
        **graded(row),
        **facts(row),
        "need_tools_kwargs": row["protocol"] == "tool_call" and row["mode"] != FORBIDDEN,
        "tools_kwargs": tools_kwargs(row["answer"]),
    }
    record = {
        "data_source": f"darkroom/{row['source']}",
        "agent_name": agent(row["protocol"]),
        "prompt": messages(said),
        "images": list(said.media),
        "ability": row["category"],
        "reward_model": {"style": "rule", "ground_truth": row["answer"]},
        "extra_info": extra,
    }
    return Rendered(record, grader=grader_of(row).kind)


def _usage(facts: Facts) -> str:
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


VERL_RL = Layout(
    name="verl_rl",
    trainer="verl",
    says="RL; prompts with answers for a rule",
    messages="prompt",
    media="bytes",
    render=_render,
    usage=_usage,
    schema=SCHEMA,
    of="prompts",
    prompts_only=True,
    extra_files=reward_file,
)
