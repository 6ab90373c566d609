"""Thyme's protocol: ``<think>`` … ``<code>`` … ``<sandbox_output>`` … ``</think>`` ``<answer>`` (Thyme table 2).

<think>The sign is too small to read, so I crop it.
<code>
```python
print(processed_path)
```
</code>                              <- a turn ends here; the sandbox answers:
<sandbox_output>[image]</sandbox_output>
It says 42.</think>
<answer>42</answer>
"""

from __future__ import annotations

import re

from pipelines.models.messages import ImagePart, Message, Part, Text, message
from pipelines.models.prompts import bundled_prompt
from pipelines.models.protocols.base import TurnStream, check_opening, checked
from pipelines.models.protocols.markup import (
    Malformed,
    ParsedTurn,
    code_or_answer,
    excerpt,
    lines,
    tag,
    unfenced,
    without_stray_tags,
)
from pipelines.models.tasks import image_sizes
from pipelines.records import ImageRef, Observation, VideoRef

OPEN, CLOSE = "<sandbox_output>", "</sandbox_output>"
_THINK = tag("/?think")


class Thyme:
    """The protocol of Thyme: code inside the reasoning, observations inline."""

    name = "thyme"
    stop: tuple[str, ...] = ("</code>",)
    modes: tuple[str, ...] = ("free",)
    setup = ""

    def opening(
        self, question: str, images: tuple[ImageRef, ...], videos: tuple[VideoRef, ...] = (), *, mode: str = "free"
    ) -> tuple[Message, ...]:
        """System prompt, then the images and the question with the images' sizes."""
        check_opening(self, mode, videos)
        sizes = image_sizes(images)
        system, user = bundled_prompt("thyme").render(question=question, sizes=sizes)
        return (message("system", system), message("user", *(ImagePart(image) for image in images), user))

    def parse(self, text: str) -> ParsedTurn | Malformed:
        """Code counts up to its first ``</code>``; an answer must not be followed by code or another answer.

        Also malformed: an answer before the code, a marker that only the sandbox writes, code that is not in one fence,
        a tag without its partner.
        """
        turn = code_or_answer(lines(text), sandbox="sandbox_output")
        if isinstance(turn, ParsedTurn):
            turn = _with_answer(turn) if turn.code is None else _with_code(turn, turn.code)
        return without_stray_tags(turn, "code", "answer", "think") if isinstance(turn, ParsedTurn) else turn

    def stream(self) -> TurnStream:
        return TurnStream(self, container="code")

    def write_round(self, thought: str, code: str, *, first: bool) -> str:
        """``<think>`` opens only once, in the first turn."""
        turn = ParsedTurn(lines(thought).strip(), code=lines(code))
        opening = "<think>" if first else ""
        return checked(self, f"{opening}{turn.thought}\n<code>\n```python\n{turn.code}\n```\n</code>", turn)

    def write_answer(self, thought: str, answer: str, *, first: bool) -> str:
        """Closes the reasoning and answers."""
        turn = ParsedTurn(lines(thought).strip(), answer=lines(answer).strip())
        opening = "<think>" if first else ""
        return checked(self, f"{opening}{turn.thought}</think>\n<answer>{turn.answer}</answer>", turn)

    def wrap(self, observation: Observation) -> tuple[Part, ...]:
        """Images, then the output (unless it is only the paths of the shown files), then the error."""
        parts: list[Part] = [Text(OPEN), *(ImagePart(image) for image in observation.images)]
        texts = [] if observation.images and _only_paths(observation.text) else [observation.text.strip()]
        if observation.error:
            texts.append(observation.error)
        text = "\n".join(text for text in texts if text)
        if text:
            parts.append(Text(text))
        return (*parts, Text(CLOSE))


def _with_code(turn: ParsedTurn, block: str) -> ParsedTurn | Malformed:
    code = unfenced(block)
    if code is None:
        return Malformed(f"<code> holds no single ```python block: {excerpt(block)}")
    return ParsedTurn(_thought(turn), code=code) if code.strip() else Malformed("the code block is empty")


def _with_answer(turn: ParsedTurn) -> ParsedTurn | Malformed:
    answer = (turn.answer or "").strip()
    return ParsedTurn(_thought(turn), answer=answer) if answer else Malformed("the <answer> is empty")


def _thought(turn: ParsedTurn) -> str:
    return _THINK.sub("", turn.thought).strip()


def _only_paths(text: str) -> bool:
    lines = text.split("\n")
    return all(not line.strip() or re.fullmatch(r"\S+\.(?:png|jpe?g|webp|bmp)", line.strip(), re.I) for line in lines)
