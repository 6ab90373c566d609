"""A task: a sample prepared by one recipe, ready for a rollout."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from darkroom.pipelines.models.messages import Message
from darkroom.pipelines.records import ImageRef, Sample, VideoRef
from darkroom.pipelines.records.answers import letters_of, split_choice


@dataclass(frozen=True, slots=True)
class PreparedSample:
    """A sample as a recipe prepared it: the images to show and the hint for the policy."""

    images: tuple[ImageRef, ...]
    hint: Mapping[str, Any] = field(default_factory=dict)
    """Privileged facts (JSON) by prompt slot."""
    mode: str = "free"
    """The protocol's system prompt that a trained model reads."""


@dataclass(frozen=True, slots=True)
class Task:
    """One rollout to run."""

    trajectory_id: str
    family: str
    sample: Sample
    images: tuple[ImageRef, ...]
    hint: Mapping[str, Any]
    opening: tuple[Message, ...]
    """The conversation before the first turn."""
    seed: int
    mode: str = "free"
    stage: Literal["plan", "rollout", "unaided"] = "rollout"


def question_text(sample: Sample) -> str:
    """The question as a policy reads it, with its choices, if any, one per line below."""
    return "\n".join([sample.question, *sample.choices])


def image_sizes(images: tuple[ImageRef, ...]) -> str:
    """Size of every image, in order: ``2400x1600, 800x600``."""
    return ", ".join(f"{image.width}x{image.height}" for image in images)


_IMAGE_PATH = re.compile(r"image path[^:\n]{0,60}:[\s\"'`*]{0,8}([^\s\"'`*]{1,255})", re.IGNORECASE)


def image_names(question: str) -> tuple[str, ...]:
    """Names that a question gives its images, in their order: ``User Image Path: hr_bench_4k/179.jpg`` (Thyme table 3).
    Code opens the images by these names, in a replay of the row as well."""
    return tuple(_IMAGE_PATH.findall(question))


def video_info(videos: tuple[VideoRef, ...]) -> str:
    """Length and size of every video, a line each: ``72 frames, 12 frames per second, …``."""
    lines = []
    for index, video in enumerate(videos):
        rate = f"{video.fps:g} frames per second, {video.n_frames / video.fps:.1f} seconds, " if video.fps > 0 else ""
        lines.append(f"video_clue_{index}: {video.n_frames} frames, {rate}{video.width}x{video.height} pixels")
    return "\n".join(lines)


def spelled_answer(sample: Sample) -> str:
    """The answer as text: of a multiple-choice question the texts of its right choices, else the answer itself."""
    texts = dict(map(split_choice, sample.choices))
    return ", ".join(texts[letter] for letter in letters_of(sample.answer, sample.choices)) or sample.answer
