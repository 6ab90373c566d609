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
from pipelines.protocols.base import ParsedTurn
from pipelines.records import ImageRef, Observation
from pipelines.rejects import Reason, RowFault
from pipelines.tasks import image_sizes

OPEN, CLOSE = "<sandbox_output>", "</sandbox_output>"
_CODE = re.compile(r"<code>(.*?)(?:</code>|\Z)", re.DOTALL)
_FENCE = re.compile(r"\A\s*```(?:python|py)?[ \t]*\n(.*?)\n?[ \t]*```\s*\Z", re.DOTALL)
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_THINK_TAGS = re.compile(r"</?think>")


class Thyme:
    """The protocol of Thyme: code inside the reasoning, observations inline."""

    name = "thyme"
    stop: tuple[str, ...] = ("</code>",)

    def opening(self, question: str, images: tuple[ImageRef, ...]) -> tuple[Message, ...]:
        """System prompt, then the images and the question with the images' sizes."""
        sizes = image_sizes(images)
        system, user = bundled_prompt("thyme").render(question=question, sizes=sizes)
        return (message("system", system), message("user", *(Picture(image) for image in images), user))

    def parse(self, text: str) -> ParsedTurn:
        """Code counts up to its first ``</code>``: what follows is what a stop string would have cut off.

        Malformed besides: an answer before the code, two answers, a marker that only the sandbox writes, code that is
        not in one fence. CRLF line ends become LF.
        """
        text = text.replace("\r\n", "\n")
        found = _CODE.search(text)
        said = text[: found.start()] if found else text
        answers = _ANSWER.findall(said)
        if OPEN in said or CLOSE in said:
            raise RowFault(Reason.MALFORMED_TURN, f"the turn has a sandbox's marker of its own: {_excerpt(text)}")
        if found is not None:
            if answers:
                raise RowFault(Reason.MALFORMED_TURN, f"the turn answers before its code: {_excerpt(text)}")
            return ParsedTurn(_thought(said), code=_program(found[1]))
        if len(answers) != 1:
            what = "neither <code> nor <answer>" if not answers else f"{len(answers)} <answer> blocks"
            raise RowFault(Reason.MALFORMED_TURN, f"the turn has {what}: {_excerpt(text)}")
        answer = answers[0].strip()
        if not answer:
            raise RowFault(Reason.MALFORMED_TURN, f"the <answer> is empty: {_excerpt(text)}")
        return ParsedTurn(_thought(_ANSWER.sub("", text)), answer=answer)

    def write_round(self, thought: str, code: str, *, first: bool) -> str:
        """``<think>`` opens only once, in the first turn."""
        return f"{'<think>' if first else ''}{thought}\n<code>\n```python\n{code}\n```\n</code>"

    def write_answer(self, thought: str, answer: str, *, first: bool) -> str:
        """Closes the reasoning and answers."""
        return f"{'<think>' if first else ''}{thought}</think>\n<answer>{answer}</answer>"

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


def _program(block: str) -> str:
    fenced = _FENCE.match(block)
    if fenced is None:
        raise RowFault(Reason.MALFORMED_TURN, f"<code> holds no single ```python block: {_excerpt(block)}")
    if not fenced[1].strip():
        raise RowFault(Reason.MALFORMED_TURN, "the code block is empty")
    return fenced[1]


def _thought(text: str) -> str:
    return _THINK_TAGS.sub("", text).strip()


def _only_paths(text: str) -> bool:
    lines = text.split("\n")
    return all(not line.strip() or re.fullmatch(r"\S+\.(?:png|jpe?g|webp|bmp)", line.strip(), re.I) for line in lines)


def _excerpt(text: str) -> str:
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= 160 else f"{flat[:120]} … {flat[-40:]}")
