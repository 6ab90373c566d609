"""Near-duplicates among images and among texts, each with the one that stays and the measured distance."""

from darkroom.pipelines.selection.duplicates.base import Duplicate, DuplicateKind
from darkroom.pipelines.selection.duplicates.look_search import near_looks
from darkroom.pipelines.selection.duplicates.looks import Look, look_of
from darkroom.pipelines.selection.duplicates.perceptual import PerceptualHash, perceptual_hash
from darkroom.pipelines.selection.duplicates.texts import THRESHOLD, near_texts
from darkroom.pipelines.selection.duplicates.words import normalised

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
