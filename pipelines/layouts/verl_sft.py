"""verl SFT: parquet with messages and the images' bytes; checked against ``MultiTurnSFTDataset`` of version 0.9.1.

{"messages": [{"role": "user", "content": "<image>What …"}, …], "images": [{"bytes": …, "path": "1f….jpeg"}]}
"""

from __future__ import annotations

import pyarrow as pa

from pipelines.layouts.base import ALL_ROUNDS, LAST_ROUND, Facts, Layout, Rendered, Said
from pipelines.layouts.text import with_placeholders

MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
SCHEMA = pa.schema([("trajectory_id", pa.string()), ("messages", pa.list_(MESSAGE)), ("images", pa.list_(IMAGE))])


def _render(said: Said) -> Rendered:
    messages = [{"role": turn.role, "content": with_placeholders(turn.parts)} for turn in said.turns]
    record = {"trajectory_id": said.row["trajectory_id"], "messages": messages, "images": list(said.media)}
    return Rendered(record, group=said.trained)


def _usage(facts: Facts) -> str:
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


VERL_SFT = Layout(
    name="verl_sft",
    trainer="verl",
    says="SFT; every assistant turn is trained",
    messages="messages",
    media="bytes",
    render=_render,
    usage=_usage,
    schema=SCHEMA,
)
