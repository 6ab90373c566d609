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

from darkroom.pipelines.models.messages import ImagePart, Message, Part, Text, message, with_images
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols.markup import (
    Malformed,
    ParsedTurn,
    code_or_answer,
    fenced_code,
    fits_a_box,
    one_answer,
    unfenced,
    write_box,
)
from darkroom.pipelines.models.protocols.protocol import Images, Protocol, Videos
from darkroom.pipelines.models.tasks import video_info
from darkroom.pipelines.records import ImageRef, VideoRef
from darkroom.pipelines.records.samples import FRAME


class PyVision(Protocol):
    r"""The protocol of PyVision: code runs in a Python session with images and videos open. A turn's code counts up to
    its first ``</code>``, with or without a fence; an answer with or without ``\boxed``, which is written unless its
    braces are not balanced. Malformed: as ``markup.code_or_answer``, empty code or answer, boxes that differ, a tag
    without its partner."""

    name, container, marker = "pyvision", "code", "interpreter"
    tags = ("code", "answer")
    modes = ("free", "no_libraries", "forbidden")
    """``no_libraries``: with the printed prompt's rule against cv2 and PIL. ``forbidden``: no code, as the baseline of
    figure 4 that sees frames in its context (``pipelines/vision/frames.py``)."""
    caption = "figure {}:\n"
    takes_videos = True

    def _opening(self, question: str, images: Images, videos: Videos, mode: str) -> tuple[Message, ...]:
        """System prompt; then every image with its variable's name and its size, the videos' sizes, the question. An
        image that is a frame of a video says which."""
        frames = [frame_label(image, videos) for image in images]
        slots = {"question": question, "videos": video_info(videos).splitlines(), "mode": mode}
        system, user = bundled_prompt("pyvision").render(**slots, has_images=bool(images), has_frames=any(frames))
        named: list[list[Part]] = []
        for index, (image, frame) in enumerate(zip(images, frames, strict=True)):
            name = f"image_clue_{index}, {frame}{image.width}x{image.height} pixels:\n"
            named.append([Text(name), ImagePart(image), Text("\n")])
        return (message("system", system), message("user", *with_images(user, question, named)))

    def _read(self, text: str) -> ParsedTurn | Malformed:
        turn = code_or_answer(text, sandbox=self.marker)
        if isinstance(turn, Malformed):
            return turn
        thought, block = turn.thought.strip(), turn.code
        if block is not None:
            code = fenced_code(block if unfenced(block) is not None else block.removeprefix("\n").removesuffix("\n"))
            return code if isinstance(code, Malformed) else ParsedTurn(thought, code=code)
        if not (text := (turn.answer or "").strip()):
            return Malformed("the <answer> is empty")
        box = one_answer(text)
        return box if isinstance(box, Malformed) else ParsedTurn(thought, answer=box.answer if box else text)

    def _written(self, turn: ParsedTurn, first: bool) -> str:
        if turn.code is not None:
            return f"{turn.thought}\n<code>\n{turn.code}\n</code>".lstrip()
        answer = turn.answer or ""
        return f"{turn.thought}\n<answer>\n{write_box(answer) if fits_a_box(answer) else answer}\n</answer>".lstrip()


def frame_label(image: ImageRef, videos: tuple[VideoRef, ...]) -> str:
    """Label ``frame 12 of video_clue_0, 1.0 seconds, ``; empty for an image that is no frame of these videos."""
    number = (image.made_by or "").removeprefix(FRAME)
    index = next((n for n, video in enumerate(videos) if video.sha256 == image.parent), None)
    if index is None or number == image.made_by:
        return ""
    fps = videos[index].fps
    at = f"{int(number) / fps:.1f} seconds, " if fps > 0 else ""
    return f"frame {number} of video_clue_{index}, {at}"
