"""Exact duplicates: the same bytes of an image, the same words of a text."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from pipelines.duplicates.base import Duplicate, DuplicateKind
from pipelines.duplicates.words import normalised


def exact_images(sha256s: Iterable[str]) -> list[Duplicate]:
    """Images whose bytes came before, by the sha256 of their bytes (``ImageRef.sha256``)."""
    return _repeated(sha256s, "exact_image")


def exact_texts(texts: Iterable[str]) -> list[Duplicate]:
    """Texts whose words came before (``pipelines/duplicates/words.py``). A text without words duplicates nothing."""
    return _repeated((normalised(text) or None for text in texts), "exact_text")


def _repeated(keys: Iterable[Hashable | None], kind: DuplicateKind) -> list[Duplicate]:
    first: dict[Hashable, int] = {}
    found = []
    for index, key in enumerate(keys):
        of = index if key is None else first.setdefault(key, index)
        if of != index:
            found.append(Duplicate(index, of, kind, 0.0))
    return found
