"""Duplicates among images and among texts, exact and near, each with the one that stays and the measured distance."""

from pipelines.duplicates.base import Duplicate, DuplicateKind, kept
from pipelines.duplicates.exact import exact_images, exact_texts
from pipelines.duplicates.images import MAX_DISTANCE, near_images
from pipelines.duplicates.perceptual import PictureHash, picture_hash
from pipelines.duplicates.texts import THRESHOLD, near_texts
from pipelines.duplicates.words import normalised

__all__ = [
    "MAX_DISTANCE",
    "THRESHOLD",
    "Duplicate",
    "DuplicateKind",
    "PictureHash",
    "exact_images",
    "exact_texts",
    "kept",
    "near_images",
    "near_texts",
    "normalised",
    "picture_hash",
]
