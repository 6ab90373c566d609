"""The frame of two images from their features: the similarity that most pairs of matching features agree with."""

import cv2
import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.selection.duplicates.local_features import Features, Places, Signatures
from darkroom.pipelines.vision.registration import Matrix

FEWEST = 3
"""So many features that agree give a frame."""
_SAME_PLACE = 64
_NEAR = 0.03


def pose_of_features(features: Features, beside: Features, side: int) -> tuple[Matrix, int]:
    """The similarity that most pairs of features agree with, and how many do."""
    pairs = _mutual(features.signatures, beside.signatures)
    if len(pairs) < FEWEST:
        return np.eye(2, 3), 0
    here, there = features.places[pairs[:, 0]], beside.places[pairs[:, 1]]
    linears, shifts = _similarities(here, there)
    missed = np.einsum("mij,nj->mni", linears, here[:, :2]) + shifts[:, None] - there[None, :, :2]
    zooms = np.abs(np.log2(there[:, 2] / here[:, 2])[None] - np.log2(there[:, 2] / here[:, 2])[:, None])
    agreeing = (np.hypot(missed[..., 0], missed[..., 1]) <= _NEAR * side) & (zooms < 0.6)
    best = int(agreeing.sum(axis=1).argmax())
    chosen, n = agreeing[best], int(agreeing[best].sum())
    matrix = np.column_stack([linears[best], shifts[best]])
    if n < FEWEST:
        return matrix, n
    points, points_there = (np.ascontiguousarray(places[chosen, :2]) for places in (here, there))
    fitted = cv2.estimateAffinePartial2D(points, points_there, ransacReprojThreshold=3.0)[0]
    is_fitted = fitted is not None and np.isfinite(fitted).all()  # points in one place give no similarity
    return (np.asarray(fitted, np.float64) if is_fitted else matrix), n


def _mutual(signatures: Signatures, beside: Signatures) -> NDArray[np.int64]:
    """Pairs of signatures, each the other's nearest."""
    if not len(signatures) or not len(beside):
        return np.empty((0, 2), np.int64)
    words = zip(signatures.T, beside.T, strict=True)  # word by word: three times as fast as a sum over an axis of four
    distances = sum(np.bitwise_count(own[:, None] ^ other[None]).astype(np.uint16) for own, other in words)
    nearest, back = distances.argmin(axis=1), distances.argmin(axis=0)
    here = np.arange(len(signatures))
    is_near = (back[nearest] == here) & (distances[here, nearest] <= _SAME_PLACE)
    return np.stack([here[is_near], nearest[is_near]], axis=1)


def _similarities(here: Places, there: Places) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of every pair the similarity that takes one place to the other: (n, 2, 2) and (n, 2)."""
    scale = (there[:, 2] / here[:, 2]).astype(np.float64)
    turn = np.deg2rad((there[:, 3] - here[:, 3]).astype(np.float64))
    cos, sin = scale * np.cos(turn), scale * np.sin(turn)
    linears = np.stack([np.stack([cos, -sin], axis=1), np.stack([sin, cos], axis=1)], axis=1)
    return linears, there[:, :2] - np.einsum("nij,nj->ni", linears, here[:, :2])
