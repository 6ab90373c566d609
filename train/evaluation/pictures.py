"""What the pictures that a rollout showed have to do with its question's pictures: the region, measured on pixels."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PIL import Image

from pipelines.change import TURNED_DEGREES, Change, change, residual
from pipelines.checks.shown import executed_code
from pipelines.geometry import Box, box_from_fractions
from pipelines.images import ImageStore
from pipelines.ledger import Act, Ledger
from pipelines.records import ImageRef, to_row
from pipelines.rollout import Rollout
from train.evaluation.crop_boxes import crop_boxes
from train.evaluation.panels import panels

_VERSION = 1
_TOOL = re.compile(r"crop_image_normalized\(bbox_2d=\[([^\]]+)\], target_image=(\d+)\)")


@dataclass(frozen=True, slots=True)
class Seen:
    """A picture that round ``round`` showed, or a panel of it, and how it was made of the question's picture ``of``.

    ``change`` is None where it shows none of them: a plot, a text, something else altogether.
    """

    round: int
    image: ImageRef
    of: int = 0
    change: Change | None = None

    def is_part(self, whole_share: float) -> bool:
        """Whether it shows a chosen part: at most ``whole_share`` of the picture's area."""
        return self.change is not None and self.change.share <= whole_share

    @property
    def is_untouched(self) -> bool:
        """Whether it is a picture of the question as it was, at whatever size: nothing was done to it."""
        made = self.change
        if made is None or made.mirrored or residual(made.angle) > TURNED_DEGREES or made.relights:
            return False
        return made.share > 0.98


class Looker:
    """Looks where pictures come from; what was measured once is on the ledger."""

    def __init__(self, store: ImageStore, ledger: Ledger) -> None:
        self._store, self._ledger = store, ledger

    async def look(self, images: tuple[ImageRef, ...], made: Rollout) -> tuple[Seen, ...]:
        """Every picture of the rollout's rounds, in order."""
        found: list[Seen] = []
        code = ""
        for number, turn in enumerate(made.rounds):
            code += f"{executed_code(turn)}\n"  # names live across the programs of a session
            for shown in turn.observation.images:
                found += await self.look_at(images, code, shown, number=number)
        return tuple(found)

    async def look_at(
        self, images: tuple[ImageRef, ...], code: str, shown: ImageRef, *, number: int = 0
    ) -> tuple[Seen, ...]:
        """One picture, which round ``number`` showed; ``code`` is that of all rounds so far.

        Of a figure each panel that is part of a picture; one without a ``change`` where there is none.
        """
        request = {
            "version": _VERSION,
            "shown": shown.sha256,
            "images": [image.sha256 for image in images],
            "code": code,
        }

        async def perform() -> Act:
            found = await asyncio.to_thread(self._found, images, shown, code)
            return Act({"parts": [{"of": of, "change": to_row(made)} for of, made in found]})

        parts = (await self._ledger.once("region", request, perform)).result["parts"]
        changes = [(part["of"], {**part["change"], "box": Box(*part["change"]["box"])}) for part in parts]
        return tuple(Seen(number, shown, of, Change(**made)) for of, made in changes) or (Seen(number, shown),)

    def _found(self, images: tuple[ImageRef, ...], shown: ImageRef, code: str) -> list[tuple[int, Change]]:
        """What it shows of which of the question's pictures: by its panels, else as a whole."""
        pixels = self._store.open(shown)
        return self._parts(images, panels(pixels), code) or self._parts(images, [pixels], code)

    def _parts(self, images: tuple[ImageRef, ...], parts: Sequence[Image.Image], code: str) -> list[tuple[int, Change]]:
        """Each part by the first picture of which it is one."""
        tried = (
            [(place, self._made(part, image, code, place)) for place, image in enumerate(images)] for part in parts
        )
        first = (next(((of, made) for of, made in several if made is not None), None) for several in tried)
        return [one for one in first if one is not None]

    def _made(self, pixels: Image.Image, image: ImageRef, code: str, place: int) -> Change | None:
        """How ``pixels`` were made of a picture; boxes of the programs are tried first, the latest before others."""
        boxes = [*crop_boxes(code, image.width, image.height), *_told(code, image, place)][::-1]
        return change(pixels, self._store.open(image), "\n".join(str(tuple(box)) for box in boxes))


def _told(code: str, image: ImageRef, place: int) -> Iterator[Box]:
    """The boxes of calls of the tool that crops, as far as they name the question's picture number ``place``."""
    for call in _TOOL.finditer(code):
        if int(call[2]) != place + 1:
            continue
        try:
            yield box_from_fractions([float(side) for side in call[1].split(",")], image.width, image.height)
        except ValueError:
            continue  # the tool refused it, too
