"""Duplicates among images and among texts, exact and near, each with the one that stays and the measured distance."""

from pipelines.selection.duplicates.base import Duplicate, DuplicateKind, kept
from pipelines.selection.duplicates.images import MAX_DISTANCE, exact_images, near_images
from pipelines.selection.duplicates.look_search import near_looks
from pipelines.selection.duplicates.looks import Look, look_of
from pipelines.selection.duplicates.perceptual import PerceptualHash, perceptual_hash
from pipelines.selection.duplicates.texts import THRESHOLD, exact_texts, near_texts
from pipelines.selection.duplicates.words import normalised

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
