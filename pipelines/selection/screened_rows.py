"""Ids, questions and first images of the rows to be screened, on disk; 48 bytes of each row are in memory."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.records import ImageRef
from darkroom.pipelines.records.digest import key64
from darkroom.pipelines.selection.decontamination import TrainingRow
from darkroom.pipelines.storage.row_files import RowSpill

T = TypeVar("T")
Numbers = NDArray[np.int64]


class DistinctImages(Sequence[ImageRef]):
    """The images that are mentioned, each once, in the order of their first mentions."""

    def __init__(self, images: Iterable[ImageRef | None], folder: Path) -> None:
        spill, begins, keys = RowSpill(folder), array("q"), array("Q")
        is_image = bytearray()
        for image in images:
            begins.append(-1 if image is None else spill.add(image))
            keys.append(0 if image is None else key64(image.sha256))
            is_image.append(image is not None)
        mentions = np.flatnonzero(np.frombuffer(bytes(is_image), np.bool_))
        _, first, inverse = np.unique(np.array(keys, np.uint64)[mentions], return_index=True, return_inverse=True)
        order = np.argsort(first)
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order))
        self.numbers: Numbers = np.full(len(keys), -1)
        """Of every mention the image's number; -1 where there is none."""
        self.numbers[mentions] = ranks[inverse]
        self.first: Numbers = mentions[first[order]]
        """Of every image its first mention."""
        self._begins, self._spill = np.array(begins, np.int64)[self.first], spill

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, number: int) -> ImageRef:  # type: ignore[override]  # no slices
        image: ImageRef = self._spill.read(int(self._begins[number]))
        return image


class ScreenedRows:
    """Rows by their places, from 0 on."""

    def __init__(self, rows: Iterable[TrainingRow], folder: Path) -> None:
        self._spill, self._begins = RowSpill(folder), array("q")
        self.images = DistinctImages(self._first_images(rows), folder)
        """The rows' first images; a row is a mention."""
        self._by_image = np.argsort(self.images.numbers, kind="stable")
        self._image_of = self.images.numbers[self._by_image]

    def __len__(self) -> int:
        return len(self._begins)

    def row_id(self, place: int) -> str:
        return self._row(place)[0]

    def questions(self) -> Iterator[str]:
        """Questions of all rows, in order."""
        return (self._row(place)[1] for place in range(len(self)))

    def questions_about(self, image: int) -> frozenset[str]:
        """The questions of the rows whose first image is number ``image``."""
        begin, end = np.searchsorted(self._image_of, (image, image + 1))
        return frozenset(self._row(place)[1] for place in self._by_image[begin:end].tolist())

    def _first_images(self, rows: Iterable[TrainingRow]) -> Iterator[ImageRef | None]:
        for row in rows:
            self._begins.append(self._spill.add((row.row_id, row.texts[0])))
            yield row.first_image

    def _row(self, place: int) -> tuple[str, str]:
        row: tuple[str, str] = self._spill.read(self._begins[place])
        return row


class Mapped(Sequence[T]):
    """``perform`` of the items, computed whenever one is asked for."""

    def __init__(self, items: Sequence[int], perform: Callable[[int], T]) -> None:
        self._items, self._perform = items, perform

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, place: int) -> T:  # type: ignore[override]  # no slices
        return self._perform(self._items[place])
