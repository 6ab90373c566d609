"""What the gate says of a row: that it conforms, or why not and what to do.

{"row": 17, "trajectory_id": "4be0…", "family": "crop", "n_tokens": 812, "n_trained": 96, "n_images": 2,
 "n_image_tokens": 640, "verdict": "refused", "reason": "truncated", "found": "it has 812 tokens, …", "remedy": "…"}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pipelines.layouts.turns import Row


class Misfit(StrEnum):
    """Why a row cannot be trained on."""

    UNRENDERABLE = "unrenderable"
    IMAGES_DIFFER = "images_differ"
    IMAGE_DAMAGED = "image_damaged"
    IMAGE_TOKENS_DIFFER = "image_tokens_differ"
    TRUNCATED = "truncated"
    OBSERVATION_TRAINED = "observation_trained"
    OWN_WORDS_UNTRAINED = "own_words_untrained"
    NOTHING_TRAINED = "nothing_trained"


REMEDIES: Mapping[Misfit, str] = {
    Misfit.UNRENDERABLE: "the row contradicts itself or its protocol: export the dataset again",
    Misfit.IMAGES_DIFFER: "export the dataset again; if it stays, the row's `images` and `rounds` were edited apart "
    "from each other",
    Misfit.IMAGE_DAMAGED: "export the dataset again from the image store, or leave the row out",
    Misfit.IMAGE_TOKENS_DIFFER: "the chat template or the processor drops or invents images: train with the one that "
    "comes along",
    Misfit.TRUNCATED: "lower --max-pixels, or leave the row out",
    Misfit.OBSERVATION_TRAINED: "the chat template's loss flags are not those of train/templates, or a token straddles "
    "the border of an observation: end the text before it with a newline",
    Misfit.OWN_WORDS_UNTRAINED: "the chat template's loss flags are not those of train/templates",
    Misfit.NOTHING_TRAINED: "give the row an answer, or leave it out",
}


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one row as it is read; ``n_trained`` of its tokens are in the loss."""

    n_tokens: int = 0
    n_trained: int = 0
    n_images: int = 0
    n_image_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """On one row. ``row`` is its place among all rows; ``reason`` is None when it conforms."""

    row: int
    trajectory_id: str
    family: str
    counts: Counts = Counts()
    reason: Misfit | None = None
    found: str = ""

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return REMEDIES[self.reason] if self.reason else ""

    def __str__(self) -> str:
        if self.reason is None:
            return f"row {self.trajectory_id} conforms"
        return f"row {self.trajectory_id} ({self.reason}): {self.found}; {self.remedy}"

    @property
    def record(self) -> dict[str, Any]:
        """As a row of the report."""
        return {
            "row": self.row,
            "trajectory_id": self.trajectory_id,
            "family": self.family,
            "n_tokens": self.counts.n_tokens,
            "n_trained": self.counts.n_trained,
            "n_images": self.counts.n_images,
            "n_image_tokens": self.counts.n_image_tokens,
            "verdict": "refused" if self.reason else "conforms",
            "reason": self.reason.value if self.reason else None,
            "found": self.found or None,
            "remedy": self.remedy or None,
        }


class RowMisfit(Exception):
    """A row that cannot be trained on: the reason, and what was found."""

    def __init__(self, reason: Misfit, found: str) -> None:
        super().__init__(f"{reason}: {found}")
        self.reason, self.found = reason, found


def refused(index: int, row: Row, misfit: RowMisfit, counts: Counts = Counts()) -> Verdict:
    """The verdict on a row that is not fit."""
    return Verdict(index, row["trajectory_id"], row["family"], counts, misfit.reason, misfit.found)
