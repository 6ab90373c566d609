"""ms-swift's GRPO: messages without an answer, paths to images; other columns go to the reward function.

{"messages": [{"role": "user", "content": "<image>What …"}], "images": ["images/1f….jpeg"], "solution": "42",
 "grader": {"kind": …}, …}

Parquet, not JSON lines: a column that is null or empty in the first rows keeps its type. Checked against version 4.6.
"""

from __future__ import annotations

import pyarrow as pa

from pipelines.layouts.base import Facts, Layout, Rendered, Said
from pipelines.layouts.prompts.rows import FACTS, GRADED, facts, graded, grader_of, messages
from pipelines.layouts.prompts.usage import about, reward_file
from pipelines.layouts.verl_sft import MESSAGE

SCHEMA = pa.schema(
    [
        ("sample_id", pa.string()),
        ("messages", pa.list_(MESSAGE)),
        ("images", pa.list_(pa.string())),
        ("solution", pa.string()),
        *GRADED,
        *FACTS,
    ]
)


def _render(said: Said) -> Rendered:
    row = said.row
    record = {
        "sample_id": row["sample_id"],
        "messages": messages(said),
        "images": list(said.media),
        "solution": row["answer"],
        **graded(row),
        **facts(row),
    }
    return Rendered(record, grader=grader_of(row).kind)


def _usage(facts: Facts) -> str:
    return f"""\
```
ROOT_IMAGE_DIR=FOLDER swift rlhf --rlhf_type grpo --dataset FOLDER/{facts.split}.parquet --strict true
    --external_plugins FOLDER/reward.py --reward_funcs darkroom --max_length 16384 …
```

{about(facts)}
The answer is `solution`; every other column reaches the reward function by its name. `ROOT_IMAGE_DIR` makes the paths
of `images` absolute; without it, start in FOLDER. Rounds with a tool need a scheduler of your own
(`--multi_turn_scheduler`).
"""


MS_SWIFT_GRPO = Layout(
    name="ms_swift_grpo",
    trainer="ms-swift",
    says="GRPO; prompts with solutions and graders",
    messages="messages",
    media="paths",
    render=_render,
    usage=_usage,
    schema=SCHEMA,
    of="prompts",
    prompts_only=True,
    extra_files=reward_file,
)
