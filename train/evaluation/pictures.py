"""What the pictures that a rollout showed have to do with its question's pictures: the region, measured on pixels."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from pipelines.change import TURNED_DEGREES, Change, change, residual
from pipelines.checks.shown import executed_code
from pipelines.geometry import Box, box_from_fractions
from pipelines.images import ImageStore
from pipelines.ledger import Act, Ledger
from pipelines.records import ImageRef, to_row
from pipelines.rollout import Rollout

_VERSION = 1
_TOOL = re.compile(r"crop_image_normalized\(bbox_2d=\[([^\]]+)\], target_image=(\d+)\)")


@dataclass(frozen=True, slots=True)
class Seen:
    """A picture that round ``round`` showed, and how it was made of the question's picture ``of``.

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
        return tuple(
            [
                await self.look_at(images, executed_code(turn), shown, number=number)
                for number, turn in enumerate(made.rounds)
                for shown in turn.observation.images
            ]
        )

    async def look_at(self, images: tuple[ImageRef, ...], code: str, shown: ImageRef, *, number: int = 0) -> Seen:
        """One picture, which round ``number`` showed by ``code``."""
        request = {
            "version": _VERSION,
            "shown": shown.sha256,
            "images": [image.sha256 for image in images],
            "code": code,
        }

        async def perform() -> Act:
            found = await asyncio.to_thread(self._found, images, shown, code)
            return Act({"of": found[0], "change": None if found[1] is None else to_row(found[1])})

        result = (await self._ledger.once("region", request, perform)).result
        made = result["change"]
        return Seen(number, shown, result["of"], made and Change(**{**made, "box": Box(*made["box"])}))

    def _found(self, images: tuple[ImageRef, ...], shown: ImageRef, code: str) -> tuple[int, Change | None]:
        """The first of the question's pictures of which it is a part, or that it is."""
        told = _told(code, images)
        pixels = self._store.open(shown)
        for place, image in enumerate(images):
            boxes = f"\n{tuple(told[1])}" if told and told[0] == place else ""
            made = change(pixels, self._store.open(image), code + boxes)
            if made is not None:
                return place, made
        return 0, None


def _told(code: str, images: tuple[ImageRef, ...]) -> tuple[int, Box] | None:
    """The picture and the box of a call of the tool that crops, if it names one of the question's pictures."""
    call = _TOOL.search(code)
    if call is None or not 1 <= int(call[2]) <= len(images):
        return None
    image = images[int(call[2]) - 1]
    try:
        sides = [float(side) for side in call[1].split(",")]
        return int(call[2]) - 1, box_from_fractions(sides, image.width, image.height)
    except ValueError:
        return None
