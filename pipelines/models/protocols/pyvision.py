r"""PyVision's protocol: ``<code>`` … ``<interpreter>`` … ``<answer>\boxed{…}</answer>`` (PyVision-RL, figures 8, 9).

The sign is too small to read, so I crop it.
<code>
plt.imshow(image_clue_0.crop((900, 40, 1200, 240)))
plt.show()
</code>                              <- a turn ends here; the sandbox answers, as a user:
<interpreter>
figure 1:
[image]
</interpreter>
It says 42.
<answer>
\boxed{42}
</answer>

Images are already open as variables. A video is only such a variable: the policy sees the frames that its code shows.
"""

from __future__ import annotations

from pipelines.models.messages import ImagePart, Message, Part, Text, joined, message
from pipelines.models.prompts import bundled_prompt
from pipelines.models.protocols.base import TurnStream, check_opening, checked
from pipelines.models.protocols.markup import (
    Malformed,
    ParsedTurn,
    code_or_answer,
    fenced_code,
    fits_a_box,
    lines,
    one_answer,
    unfenced,
    without_stray_tags,
    write_box,
)
from pipelines.models.tasks import video_info
from pipelines.records import ImageRef, Observation, VideoRef

OPEN, CLOSE = "<interpreter>", "</interpreter>"


class PyVision:
    """The protocol of PyVision: code runs in a Python session with images and videos open."""

    name = "pyvision"
    stop: tuple[str, ...] = ("</code>",)
    modes: tuple[str, ...] = ("free",)
    setup = ""

    def opening(
        self, question: str, images: tuple[ImageRef, ...], videos: tuple[VideoRef, ...] = (), *, mode: str = "free"
    ) -> tuple[Message, ...]:
        """System prompt; then every image with its variable's name and its size, the videos' sizes, the question."""
        check_opening(self, mode)
        system, user = bundled_prompt("pyvision").render(
            question=question,
            has_images=bool(images),
            videos=video_info(videos).splitlines(),
        )
        parts: list[Part] = []
        for index, image in enumerate(images):
            parts += [Text(f"image_clue_{index}, {image.width}x{image.height} pixels:\n"), ImagePart(image), Text("\n")]
        return (message("system", system), message("user", *joined([*parts, Text(user)])))

    def parse(self, text: str) -> ParsedTurn | Malformed:
        r"""Code counts up to its first ``</code>``, with or without a fence; an answer with or without ``\boxed``.

        Malformed: as ``markup.code_or_answer``, empty code or answer, boxes that differ, a tag without its partner.
        """
        turn = code_or_answer(lines(text), sandbox="interpreter")
        if isinstance(turn, ParsedTurn):
            turn = _with_answer(turn) if turn.code is None else _with_code(turn, turn.code)
        return without_stray_tags(turn, "code", "answer") if isinstance(turn, ParsedTurn) else turn

    def stream(self) -> TurnStream:
        return TurnStream(self, container="code")

    def write_round(self, thought: str, code: str, *, first: bool) -> str:
        """The thought, then the code without a fence."""
        turn = ParsedTurn(lines(thought).strip(), code=lines(code))
        return checked(self, f"{turn.thought}\n<code>\n{turn.code}\n</code>".lstrip(), turn)

    def write_answer(self, thought: str, answer: str, *, first: bool) -> str:
        """The thought, then the answer in its box; without one where its braces are not balanced."""
        turn = ParsedTurn(lines(thought).strip(), answer=lines(answer).strip())
        boxed = write_box(turn.answer or "") if fits_a_box(turn.answer or "") else turn.answer
        return checked(self, f"{turn.thought}\n<answer>\n{boxed}\n</answer>".lstrip(), turn)

    def wrap(self, observation: Observation) -> tuple[Part, ...]:
        """Output, error, then the images as ``figure 1`` and so on, in the order in which they were shown."""
        texts = (observation.text.strip(), observation.error or "")
        parts: list[Part] = [Text(f"{OPEN}\n"), *(Text(f"{text}\n") for text in texts if text)]
        for number, image in enumerate(observation.images, start=1):
            parts += [Text(f"figure {number}:\n"), ImagePart(image), Text("\n")]
        return joined([*parts, Text(CLOSE)])


def _with_code(turn: ParsedTurn, block: str) -> ParsedTurn | Malformed:
    plain = block if unfenced(block) is not None else block.removeprefix("\n").removesuffix("\n")
    code = fenced_code(plain)
    return code if isinstance(code, Malformed) else ParsedTurn(turn.thought.strip(), code=code)


def _with_answer(turn: ParsedTurn) -> ParsedTurn | Malformed:
    text = (turn.answer or "").strip()
    if not text:
        return Malformed("the <answer> is empty")
    box = one_answer(text)
    if isinstance(box, Malformed):
        return box
    return ParsedTurn(turn.thought.strip(), answer=box.answer if box else text)
