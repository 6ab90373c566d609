"""Duplicates among images and among texts, exact and near, each with the one that stays and the measured distance."""

from darkroom.pipelines.selection.duplicates.base import Duplicate, DuplicateKind, kept
from darkroom.pipelines.selection.duplicates.images import MAX_DISTANCE, exact_images, near_images
from darkroom.pipelines.selection.duplicates.look_search import near_looks
from darkroom.pipelines.selection.duplicates.looks import Look, look_of
from darkroom.pipelines.selection.duplicates.perceptual import PerceptualHash, perceptual_hash
from darkroom.pipelines.selection.duplicates.texts import THRESHOLD, exact_texts, near_texts
from darkroom.pipelines.selection.duplicates.words import normalised

__all__ = [
    "MAX_DISTANCE",
    "THRESHOLD",
    "Duplicate",
    "DuplicateKind",
    "Look",
    "PerceptualHash",
    "exact_images",
    "exact_texts",
    "kept",
    "look_of",
    "near_images",
    "near_looks",
    "near_texts",
    "normalised",
    "perceptual_hash",
]
