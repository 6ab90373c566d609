"""Prompts that put a question as a paper does, instead of in a protocol's own words; by name, or in a user's file.

    wording = paper_prompt("thyme_paper")                       # or "my_prompt.md"
    wording.opening("What does the sign say?", images)          # a system message, and the images with the question

A file is a prompt (``pipelines/models/prompts``) with three more fields of front matter: ``protocol``, whose turns it
asks for; ``modes``, of that protocol's (default: free); and ``source``. Its slots are some of ``SLOTS``. The bundled
ones have the papers' structure, labels, tags, signatures and limits; sentences between them are retold. For the exact
words of a release write a file of your own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from darkroom.pipelines.models.messages import Message, opening_messages
from darkroom.pipelines.models.prompts import Prompt, load_prompt
from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.models.tasks import image_names, image_sizes, video_info
from darkroom.pipelines.records import ImageRef, VideoRef
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.sandbox.errors import UserError

_FOLDER = Path(__file__).parent / "prompts" / "papers"
SLOTS: Mapping[str, str] = {
    "question": "with its choices, one per line",
    "image_path": "what code may open the images by: `image_0.png`, or as the question names them",
    "sizes": "width and height in pixels: `640x480, 800x600`",
    "videos": "length and size of the videos, a line each; empty without any",
    "mode": "free, forced or forbidden",
}


@dataclass(frozen=True, slots=True)
class PaperPrompt:
    """A prompt for one protocol."""

    name: str
    prompt: Prompt

    @property
    def protocol(self) -> str:
        """The protocol whose turns it asks for."""
        return self.prompt.protocol

    @property
    def record(self) -> dict[str, str]:
        """Describe the prompt for a checkpoint's or evaluation's inputs."""
        return {"name": self.name, "digest": self.prompt.digest, "source": self.prompt.source}

    def opening(
        self, question: str, images: tuple[ImageRef, ...], videos: tuple[VideoRef, ...] = (), *, mode: str = "free"
    ) -> tuple[Message, ...]:
        """The conversation before the first turn: a system message, and the images before the user's text. Raises
        ``RowError`` (not_applicable) for videos and ``ValueError`` for a mode that protocol or prompt lacks."""
        if mode not in self.prompt.modes:
            raise ValueError(f"{self.name} has the modes {', '.join(self.prompt.modes)}; found {mode!r}")
        if videos and not ("videos" in self.prompt.slots and PROTOCOLS[self.protocol].takes_videos):
            raise RowError(Reason.NOT_APPLICABLE, f"{self.name} shows no videos; the sample has {len(videos)}")
        values = {
            "question": question,
            "image_path": ", ".join(self.image_names(question, images)),
            "sizes": image_sizes(images),
            "videos": video_info(videos),
            "mode": mode,
        }
        system, user = self.prompt.render(**{name: values[name] for name in self.prompt.slots})
        return opening_messages(system, images, user, question=question)

    def image_names(self, question: str, images: tuple[ImageRef, ...]) -> tuple[str, ...]:
        """Names that code may use for the images: the question's, else those that the prompt tells, if any."""
        names = image_names(question)
        if names or "image_path" not in self.prompt.slots:
            return names
        return tuple(f"image_{index}.{image.format.lower()}" for index, image in enumerate(images))


def paper_prompts() -> list[str]:
    """The names of the bundled ones."""
    return sorted(path.stem for path in _FOLDER.glob("*.md"))


@cache
def paper_prompt(name: str) -> PaperPrompt:
    """The bundled prompt ``name``, or that of a file ending in ``.md``. Raises ``UserError``."""
    own = Path(name)
    if own.suffix != ".md" and name not in paper_prompts():
        raise UserError(f"there is no prompt {name!r}; there are {', '.join(paper_prompts())}, or a file NAME.md")
    prompt = load_prompt(own if own.suffix == ".md" else _FOLDER / f"{name}.md")
    if prompt.protocol not in PROTOCOLS:
        raise UserError(f"{name}: its front matter needs protocol: {', '.join(PROTOCOLS)}; found {prompt.protocol!r}")
    if unknown := prompt.slots - SLOTS.keys():
        raise UserError(f"{name}: no slots {', '.join(sorted(unknown))}; there are {', '.join(SLOTS)}")
    modes = PROTOCOLS[prompt.protocol].modes
    if others := [mode for mode in prompt.modes if mode not in modes]:
        raise UserError(f"{name}: no modes {', '.join(others)} of {prompt.protocol}; there are {', '.join(modes)}")
    return PaperPrompt(prompt.name, prompt)
