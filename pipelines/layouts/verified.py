"""Every record is looked at as its trainer will, before it is written and, in parquet, as it is read back.

As many placeholders as images and none of other media; roles alternate, from the system's over the user's to the
model's (to the user's in prompts); no message is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipelines.layouts.base import Facts, Layout
from pipelines.layouts.faults import LayoutFault, Unfit, Unrenderable
from pipelines.layouts.text import IMAGE, PLACEHOLDERS

ROWS_AT_ONCE = 16
_ROLES = {"human": "user", "gpt": "assistant"}
_OTHERS = [f"<{name}>" for name in PLACEHOLDERS if f"<{name}>" != IMAGE]


def verify(layout: Layout, record: Mapping[str, Any]) -> None:
    """Raises ``Unrenderable`` for a record that the layout's trainer would refuse, drop or misread."""
    messages = _messages(layout, record)
    _verify_roles([_role(message) for message in messages], layout)
    for message in messages:
        if not _said(message):
            raise Unrenderable(Unfit.EMPTY_TURN, f"a message of the {_role(message)} is empty")
    n_images, n_shown = len(record.get("images", ())), placeholders(messages)
    if n_images != n_shown:
        raise Unrenderable(Unfit.IMAGES_DIFFER, f"{n_shown} placeholders, {n_images} images")
    if found := [name for text in _texts(messages) for name in _OTHERS if name in text]:
        raise Unrenderable(Unfit.IMAGES_DIFFER, f"placeholders that stand for nothing: {', '.join(found)}")


def verify_written(folder: Path, layout: Layout, facts: Facts) -> None:
    """Reads the parquet files back: every row that was counted is there, and shows as many images as it has.

    Raises ``LayoutFault`` when what lies there is not what was written.
    """
    if layout.schema is None:
        return
    for name, n_rows in facts.files.items():
        n_read = 0
        for batch in pq.ParquetFile(folder / name).iter_batches(batch_size=ROWS_AT_ONCE):
            for record in batch.to_pylist():
                n_read += 1
                try:
                    verify(layout, record)
                except Unrenderable as fault:
                    raise LayoutFault(
                        f"{name}, row {n_read}, reads back otherwise than it was written: {fault}"
                    ) from fault
        if n_read != n_rows:
            raise LayoutFault(f"{name} holds {n_read} rows of the {n_rows} that were written; is the disk full?")


def _messages(layout: Layout, record: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The conversation; a layout whose prompt is one text has it as the user's only message."""
    found = record[layout.messages]
    return [{"role": "user", "content": found}] if isinstance(found, str) else found


def placeholders(messages: Sequence[Mapping[str, Any]]) -> int:
    """How many images the messages show, as a trainer counts them."""
    in_parts = [part for message in messages for part in _parts(message) if part["type"] == "image"]
    return len(in_parts) + sum(text.count(IMAGE) for text in _texts(messages))


def _verify_roles(roles: Sequence[str], layout: Layout) -> None:
    spoken = roles[1:] if roles[:1] == ["system"] else list(roles)
    if layout.in_pieces:
        spoken = [role for role, run in groupby(spoken) for _ in ([*run] if role != "assistant" else [role])]
    last = "user" if layout.prompts_only else "assistant"
    expected = ["user" if index % 2 == 0 else "assistant" for index in range(len(spoken))]
    if spoken != expected or spoken[-1:] != [last]:
        raise Unrenderable(
            Unfit.ROLES_DIFFER, f"the roles are {', '.join(roles)}; they must alternate, ending in {last}"
        )


def _role(message: Mapping[str, Any]) -> str:
    role: str = message.get("role") or message["from"]
    return _ROLES.get(role, role)


def _content(message: Mapping[str, Any]) -> Any:
    return message["content"] if "content" in message else message["value"]


def _said(message: Mapping[str, Any]) -> bool:
    content = _content(message)
    if isinstance(content, str):
        return bool(content.strip())
    return any(part["type"] == "image" or part["text"].strip() for part in content)


def _texts(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Texts in which a trainer looks for placeholders: those of parts are not."""
    return (content for message in messages if isinstance(content := _content(message), str))


def _parts(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    content = _content(message)
    return () if isinstance(content, str) else content
