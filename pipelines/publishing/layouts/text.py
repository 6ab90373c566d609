r"""Text that no trainer takes for anything else: special tokens and placeholders of media become ordinary words.

A question may hold a literal ``<image>``, a program may print ``<|im_end|>``. Trainers count the first as an image and
read the second as the end of a turn. Both get a blank, and ``unescaped`` takes it out again:

    <image>        < image>         each blank that is there already is kept: < image> becomes <  image>
    <|im_end|>     <| im_end|>

An image is ``<image>``, in all layouts but TRL's, which have parts and escape special tokens only.
"""

import re
from collections.abc import Iterable

from darkroom.pipelines.models.messages import Part, Text, joined

IMAGE = "<image>"
PLACEHOLDERS = ("image", "video", "audio", "img", "bbox", "ref-object", "cot-process", "start-image")
"""Names that LLaMA-Factory 0.9.5, ms-swift 4.6, verl 0.9 or OpenRLHF 0.11 replace when they stand in ``<>``."""

_TOKEN = re.compile(r"<\|( *)(\w+)\|>")
_TOKEN_ESCAPED = re.compile(r"<\| ( *)(\w+)\|>")
_NAMES = "|".join(PLACEHOLDERS)
_PLACEHOLDER = re.compile(rf"<( *)({_NAMES})>")
_PLACEHOLDER_ESCAPED = re.compile(rf"< ( *)({_NAMES})>")


def plain(text: str) -> str:
    """``text`` with the model's special tokens made ordinary text: ``<|im_end|>`` becomes ``<| im_end|>``.

    A question or a program may contain them; tokenized as they are, they would end turns or stand for images.
    """
    return _TOKEN.sub(r"<| \1\2|>", text)


def escaped(text: str) -> str:
    """``plain`` text in which no placeholder is left either."""
    return _PLACEHOLDER.sub(r"< \1\2>", plain(text))


def unescaped(text: str) -> str:
    """What ``escaped`` was given."""
    return _TOKEN_ESCAPED.sub(r"<|\1\2|>", _PLACEHOLDER_ESCAPED.sub(r"<\1\2>", text))


def with_placeholders(parts: Iterable[Part]) -> str:
    """Parts as one string, an image as ``<image>``."""
    return "".join(escaped(part.text) if isinstance(part, Text) else IMAGE for part in joined(parts))
