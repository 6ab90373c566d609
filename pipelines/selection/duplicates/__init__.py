"""Near-duplicates among images and among texts, each with the one that stays and the measured distance."""

from darkroom.pipelines.selection.duplicates.base import Duplicate, DuplicateKind
from darkroom.pipelines.selection.duplicates.look_search import near_looks
from darkroom.pipelines.selection.duplicates.looks import Look, PerceptualHash, look_of, perceptual_hash
from darkroom.pipelines.selection.duplicates.text_bands import normalised
from darkroom.pipelines.selection.duplicates.texts import THRESHOLD, near_texts

__all__ = [
    "THRESHOLD",
    "Duplicate",
    "DuplicateKind",
    "Look",
    "PerceptualHash",
    "look_of",
    "near_looks",
    "near_texts",
    "normalised",
    "perceptual_hash",
]
