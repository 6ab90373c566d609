"""TRL's GRPO: conversational prompts with images inside; every other column goes to the reward functions.

{"prompt": [{"role": "system", "content": [{"type": "text", "text": …}]},
            {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What …"}]}],
 "images": [{"bytes": …, "path": …}], "answer": "42", "grader": {"kind": …}, …}

Checked against ``GRPOTrainer`` of version 1.16.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from pipelines.layouts.base import Facts, Layout, Rendered, Said
from pipelines.layouts.prompts.rows import FACTS, GRADED, facts, graded, grader_of
from pipelines.layouts.prompts.usage import about, reward_file
from pipelines.layouts.trl import content_parts
from pipelines.layouts.verl_sft import IMAGE

_part = pa.struct([("type", pa.string()), ("text", pa.string())])
_message = pa.struct([("role", pa.string()), ("content", pa.list_(_part))])
_FIELDS: list[tuple[str, pa.DataType]] = [
    ("sample_id", pa.string()),
    ("prompt", pa.list_(_message)),
    ("images", pa.list_(IMAGE)),
    ("answer", pa.string()),
    *GRADED,
    *FACTS,
]


def _feature(kind: pa.DataType) -> Any:
    """The type as `datasets` describes it; a struct of bytes and path is an image."""
    if kind == IMAGE:
        return {"_type": "Image"}
    if pa.types.is_list(kind):
        return {"feature": _feature(kind.value_type), "_type": "List"}
    if pa.types.is_struct(kind):
        return {kind.field(index).name: _feature(kind.field(index).type) for index in range(kind.num_fields)}
    return {"dtype": {"double": "float64"}.get(str(kind), str(kind)), "_type": "Value"}


SCHEMA = pa.schema(
    _FIELDS,
    # what `datasets` itself would write: without it the images would be read as plain structs
    metadata={"huggingface": json.dumps({"info": {"features": {name: _feature(kind) for name, kind in _FIELDS}}})},
)


def _render(said: Said) -> Rendered:
    row = said.row
    record = {
        "sample_id": row["sample_id"],
        "prompt": [{"role": turn.role, "content": content_parts(turn.parts)} for turn in said.turns],
        "images": list(said.media),
        "answer": row["answer"],
        **graded(row),
        **facts(row),
    }
    return Rendered(record, grader=grader_of(row).kind)


def _usage(facts: Facts) -> str:
    return f"""\
```python
import sys

sys.path.insert(0, "FOLDER")
import reward
from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer

rows = load_dataset("parquet", data_files="FOLDER/{facts.split}.parquet", split="train")
config = GRPOConfig(max_completion_length=4096, num_generations=8)
trainer = GRPOTrainer(MODEL, args=config, train_dataset=rows, reward_funcs=reward.trl_reward)
```

{about(facts)}
With Darkroom's sandbox, rewards and settings of the papers: `python -m train.grpo` reads the rl dataset itself. In a
trainer of yours: `environment_factory=train.rollouts.environment.SandboxEnvironment`, which reads `sample_id`,
`protocol` and `images` of the row, with `tokenizer.response_template = train.rollouts.environment.RESPONSE_TEMPLATE`
for thyme, in `train.rollouts.mixed.MixedGRPOTrainer`, which takes prompts with and without images in one batch (TRL
1.16 does not).
Pictures are parts here, so a literal `<image>` in a question is text; of the escapes below only those of special tokens
are made.
"""


TRL_GRPO = Layout(
    name="trl_grpo",
    trainer="TRL",
    says="GRPO; prompts with graders and what was measured",
    messages="prompt",
    media="bytes",
    render=_render,
    usage=_usage,
    schema=SCHEMA,
    of="prompts",
    prompts_only=True,
    extra_files=reward_file,
)
