"""OpenRLHF: prompts with images for RL, texts alone for SFT; checked against its sources, version 0.11.2.

openrlhf_rl   {"prompt": [{"role": "user", "content": "<image>What …"}], "label": "42", "images": [bytes], …}
openrlhf_sft  {"messages": [{"role": "user", "content": "What …"}, {"role": "assistant", "content": …}]}

Its SFT reads no images at all: a row that shows one is set aside (``images_unsupported``).
"""

from __future__ import annotations

import pyarrow as pa

from pipelines.layouts.base import ALL_ROUNDS, LAST_ROUND, Facts, Layout, Rendered, Said
from pipelines.layouts.faults import Unfit, Unrenderable
from pipelines.layouts.text import with_placeholders
from pipelines.layouts.verl_rl import without_videos
from pipelines.layouts.verl_sft import MESSAGE

RL_SCHEMA = pa.schema(
    [
        ("trajectory_id", pa.string()),
        ("datasource", pa.string()),
        ("prompt", pa.list_(MESSAGE)),
        ("label", pa.string()),
        ("images", pa.list_(pa.binary())),
    ]
)


def _prompt(said: Said) -> Rendered:
    row = without_videos(said).row
    return Rendered(
        {
            "trajectory_id": row["trajectory_id"],
            "datasource": f"darkroom/{row['family']}",
            "prompt": [{"role": turn.role, "content": with_placeholders(turn.parts)} for turn in said.turns],
            "label": row["answer"],
            "images": [image["bytes"] for image in said.media],
        }
    )


def _texts(said: Said) -> Rendered:
    if n := sum(len(turn.images) for turn in said.turns):
        raise Unrenderable(Unfit.IMAGES_UNSUPPORTED, f"OpenRLHF's SFT reads texts only; the row shows {n} images")
    messages = [{"role": turn.role, "content": with_placeholders(turn.parts)} for turn in said.turns]
    return Rendered({"trajectory_id": said.row["trajectory_id"], "messages": messages}, group=said.trained)


def _rl_usage(facts: Facts) -> str:
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


def _sft_usage(facts: Facts) -> str:
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


OPENRLHF_RL = Layout(
    name="openrlhf_rl",
    trainer="OpenRLHF",
    says="RL; prompts with labels",
    messages="prompt",
    media="bytes",
    render=_prompt,
    usage=_rl_usage,
    schema=RL_SCHEMA,
    prompts_only=True,
)
OPENRLHF_SFT = Layout(
    name="openrlhf_sft",
    trainer="OpenRLHF",
    says="SFT; texts only, rows with images are set aside",
    messages="messages",
    media="none",
    render=_texts,
    usage=_sft_usage,
)
