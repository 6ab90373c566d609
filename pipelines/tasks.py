"""A task: a sample as one recipe prepared it, ready for a rollout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pipelines.answers import split_choice
from pipelines.messages import Message
from pipelines.records import ImageRef, Sample, VideoRef


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a recipe makes of a sample: the images to show, and what it tells the policy or did to the images."""

    images: tuple[ImageRef, ...]
    hint: Mapping[str, Any] = field(default_factory=dict)
    """Privileged facts (JSON), named as the prompt's slots name them."""
    mode: str = "free"
    """Which of the protocol's system prompts a trained model reads."""


@dataclass(frozen=True, slots=True)
class Task:
    """One rollout to be made."""

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
    """The question as a policy reads it: its choices, if it has any, one per line below."""
    return "\n".join([sample.question, *sample.choices])


def image_sizes(images: tuple[ImageRef, ...]) -> str:
    """``2400x1600`` of every image, in order."""
    return ", ".join(f"{image.width}x{image.height}" for image in images)


def video_info(videos: tuple[VideoRef, ...]) -> str:
    """What is known of every video before a frame is looked at: a line each, ``72 frames, 12 frames per second, …``."""
    return "\n".join(f"video_clue_{index}: {_described(video)}" for index, video in enumerate(videos))


def _described(video: VideoRef) -> str:
    seconds = f"{video.fps:g} frames per second, {video.n_frames / video.fps:.1f} seconds, " if video.fps > 0 else ""
    return f"{video.n_frames} frames, {seconds}{video.width}x{video.height} pixels"


def spelled_answer(sample: Sample) -> str:
    """The answer in words: the text behind its letter where there are choices (intake has made it a letter)."""
    return dict(map(split_choice, sample.choices))[sample.answer] if sample.choices else sample.answer
