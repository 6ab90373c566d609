"""Every record is looked at as its trainer will, before it is written.

As many placeholders as images and none of other media; roles alternate, from the system's over the user's to the
model's (to the user's in prompts); no message is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from pipelines.layouts.base import Layout
from pipelines.layouts.faults import Unfit, Unrenderable
from pipelines.layouts.text import IMAGE, PLACEHOLDERS

_ROLES = {"human": "user", "gpt": "assistant"}
_OTHERS = [f"<{name}>" for name in PLACEHOLDERS if f"<{name}>" != IMAGE]


def verify(layout: Layout, record: Mapping[str, Any]) -> None:
    """Raises ``Unrenderable`` for a record that the layout's trainer would refuse, drop or misread."""
    messages = record[layout.messages]
    _verify_roles([_role(message) for message in messages], layout)
    for message in messages:
        if not _said(message):
            raise Unrenderable(Unfit.EMPTY_TURN, f"a message of the {_role(message)} is empty")
    n_images, n_shown = len(record.get("images", ())), placeholders(messages)
    if n_images != n_shown:
        raise Unrenderable(Unfit.IMAGES_DIFFER, f"{n_shown} placeholders, {n_images} images")
    if found := [name for text in _texts(messages) for name in _OTHERS if name in text]:
        raise Unrenderable(Unfit.IMAGES_DIFFER, f"placeholders that stand for nothing: {', '.join(found)}")


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
