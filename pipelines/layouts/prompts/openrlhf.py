r"""OpenRLHF: prompts with images, and as the label all that a reward function reads. Read in version 0.11.2, not run.

{"prompt": [{"role": "user", "content": "<image>What …"}], "images": [bytes], "label": "42",
 "ground_truth": "{\"answer\": \"42\", \"grader\": {\"kind\": …}, …}", "datasource": "darkroom/v_star"}
"""

from __future__ import annotations

import pyarrow as pa

from pipelines.layouts.base import Facts, Layout, Rendered, Said
from pipelines.layouts.prompts.rows import grader_of, ground_truth, messages
from pipelines.layouts.prompts.usage import about, reward_file
from pipelines.layouts.verl_sft import MESSAGE

SCHEMA = pa.schema(
    [
        ("sample_id", pa.string()),
        ("datasource", pa.string()),
        ("prompt", pa.list_(MESSAGE)),
        ("label", pa.string()),
        ("ground_truth", pa.string()),
        ("images", pa.list_(pa.binary())),
    ]
)


def _render(said: Said) -> Rendered:
    row = said.row
    record = {
        "sample_id": row["sample_id"],
        "datasource": f"darkroom/{row['source']}",
        "prompt": messages(said),
        "label": row["answer"],
        "ground_truth": ground_truth(row),
        "images": [image["bytes"] for image in said.media],
    }
    return Rendered(record, grader=grader_of(row).kind)


def _usage(facts: Facts) -> str:
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
    says="RL; prompts with labels",
    messages="prompt",
    media="bytes",
    render=_render,
    usage=_usage,
    schema=SCHEMA,
    of="prompts",
    prompts_only=True,
    extra_files=reward_file,
)
