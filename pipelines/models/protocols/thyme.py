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

import re

from darkroom.pipelines.models.messages import ImagePart, Message, Part, Text, opening_messages
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols.markup import Malformed, ParsedTurn, code_or_answer, excerpt, tag, unfenced
from darkroom.pipelines.models.protocols.protocol import Images, Protocol, Videos
from darkroom.pipelines.models.tasks import image_sizes
from darkroom.pipelines.records import Observation

_THINK = tag("/?think")
_PATH = re.compile(r"\A\S+\.(?:png|jpe?g|webp|bmp)\Z", re.IGNORECASE)


class Thyme(Protocol):
    """The protocol of Thyme: code inside the reasoning, observations inline. ``<think>`` opens only once; a turn's code
    counts up to its first ``</code>``. Also malformed: code or another answer after an answer, an answer before the
    code, a marker that only the sandbox writes, code that is not in one fence, a tag without its partner."""

    name, container, marker = "thyme", "code", "sandbox_output"
    tags = ("code", "answer", "think")

    def _opening(self, question: str, images: Images, videos: Videos, mode: str) -> tuple[Message, ...]:
        system, user = bundled_prompt("thyme").render(question=question, sizes=image_sizes(images))
        return opening_messages(system, images, user, question=question)

    def _read(self, text: str) -> ParsedTurn | Malformed:
        turn = code_or_answer(text, sandbox=self.marker)
        if isinstance(turn, Malformed):
            return turn
        thought = _THINK.sub("", turn.thought).strip()
        if turn.code is None:
            answer = (turn.answer or "").strip()
            return ParsedTurn(thought, answer=answer) if answer else Malformed("the <answer> is empty")
        if (code := unfenced(turn.code)) is None:
            return Malformed(f"<code> holds no single ```python block: {excerpt(turn.code)}")
        return ParsedTurn(thought, code=code) if code.strip() else Malformed("the code block is empty")

    def _written(self, turn: ParsedTurn, first: bool) -> str:
        thought = f"<think>{turn.thought}" if first else turn.thought
        if turn.code is not None:
            return f"{thought}\n<code>\n```python\n{turn.code}\n```\n</code>"
        return f"{thought}</think>\n<answer>{turn.answer}</answer>"

    def wrap(self, observation: Observation) -> tuple[Part, ...]:
        """Images, then the output (unless it is only the paths of the shown files), then the error."""
        parts: list[Part] = [Text(f"<{self.marker}>"), *(ImagePart(image) for image in observation.images)]
        is_path = (not line.strip() or _PATH.match(line.strip()) for line in observation.text.split("\n"))
        output = "" if observation.images and all(is_path) else observation.text.strip()
        if text := "\n".join(filter(None, (output, observation.error))):
            parts.append(Text(text))
        return (*parts, Text(f"</{self.marker}>"))
