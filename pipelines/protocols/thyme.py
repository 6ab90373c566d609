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

from pipelines.messages import Message, Part, Picture, Text, message
from pipelines.prompts import bundled_prompt
from pipelines.protocols.base import Malformed, ParsedTurn, check_opening, checked, excerpt
from pipelines.protocols.markup import code_or_answer, lines, tag, unfenced, unmarked
from pipelines.protocols.stream import TurnStream
from pipelines.records import ImageRef, Observation, VideoRef
from pipelines.tasks import image_sizes

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
        return (message("system", system), message("user", *(Picture(image) for image in images), user))

    def parse(self, text: str) -> ParsedTurn | Malformed:
        """Code counts up to its first ``</code>``; what follows an answer must not be code or another answer.

        Malformed besides: an answer before the code, a marker that only the sandbox writes, code that is not in one
        fence, a tag without its partner.
        """
        turn = code_or_answer(lines(text), sandbox="sandbox_output")
        if isinstance(turn, ParsedTurn):
            turn = _with_answer(turn) if turn.code is None else _with_code(turn, turn.code)
        return unmarked(turn, "code", "answer", "think") if isinstance(turn, ParsedTurn) else turn

    def stream(self) -> TurnStream:
        """A reader of one turn that arrives in pieces."""
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
        """Images first, then what was printed (unless that is only the shown files' paths), then the error."""
        parts: list[Part] = [Text(OPEN), *(Picture(image) for image in observation.images)]
        said = [] if observation.images and _only_paths(observation.text) else [observation.text.strip()]
        if observation.error:
            said.append(observation.error)
        text = "\n".join(line for line in said if line)
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
