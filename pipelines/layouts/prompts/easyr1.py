r"""EasyR1: one text with ``<image>`` in it, images, and what the reward function reads as one JSON text.

{"problem": "You …\n\n<image>What …", "images": [{"bytes": …, "path": …}], "answer": "42",
 "ground_truth": "{\"answer\": \"42\", \"grader\": {\"kind\": …}, …}"}

EasyR1 knows the user's role only: the protocol's system words stand at the head of the problem. Its reward functions
are given the response and the column ``data.answer_key``, nothing else. Checked against its sources (``RLHFDataset``,
``FunctionRewardManager``); not run.
"""

from __future__ import annotations

import pyarrow as pa

from pipelines.layouts.base import Facts, Layout, Rendered, Said
from pipelines.layouts.prompts.rows import grader_of, ground_truth, messages
from pipelines.layouts.prompts.usage import about, reward_file
from pipelines.layouts.verl_sft import IMAGE

SCHEMA = pa.schema(
    [
        ("sample_id", pa.string()),
        ("problem", pa.string()),
        ("images", pa.list_(IMAGE)),
        ("answer", pa.string()),
        ("ground_truth", pa.string()),
    ]
)


def _render(said: Said) -> Rendered:
    row = said.row
    record = {
        "sample_id": row["sample_id"],
        "problem": "\n\n".join(message["content"] for message in messages(said)),
        "images": list(said.media),
        "answer": row["answer"],
        "ground_truth": ground_truth(row),
    }
    return Rendered(record, grader=grader_of(row).kind)


def _usage(facts: Facts) -> str:
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


EASYR1 = Layout(
    name="easyr1",
    trainer="EasyR1",
    says="GRPO; problems with ground truths",
    messages="problem",
    media="bytes",
    render=_render,
    usage=_usage,
    schema=SCHEMA,
    of="prompts",
    prompts_only=True,
    extra_files=reward_file,
)
