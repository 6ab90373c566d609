"""Rows on an asset's page: an image that several stages show is opened and reduced once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from darkroom.assets.pages.metadata import samples_examples, samples_preview
from darkroom.pipelines.records import Sample, Truth
from darkroom.pipelines.storage.images import ImageStore


class CountingStore(ImageStore):
    """Counts the images that are opened, in all stores together."""

    n_opened = 0

    def open(self, *arguments: Any, **options: Any) -> Image.Image:
        CountingStore.n_opened += 1
        return super().open(*arguments, **options)


def test_an_image_is_opened_once_whichever_object_its_store_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountingStore, "n_opened", 0)
    ref = CountingStore(str(tmp_path)).add_pixels(Image.new("RGB", (300, 200), (1, 22, 133)))
    sample = Sample("s", "signs", "1", "CC0-1.0", (ref,), "Which colour?", (), "blue", Truth(), "attribute")
    pages = [
        show([sample], CountingStore(str(tmp_path))) for _ in range(2) for show in (samples_examples, samples_preview)
    ]
    assert CountingStore.n_opened == 1
    assert pages[:2] == pages[2:]
