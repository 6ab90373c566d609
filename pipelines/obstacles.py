"""What is known to stand in the way of reading an image: what the embedded policies decide by, never by chance."""

from __future__ import annotations

from pipelines.change import Operation
from pipelines.records import Sample
from pipelines.rejects import Reason, RowFault

SMALL_SHARE = 0.01
"""A target below this share of an image with a side over ``LARGE_SIDE`` pixels cannot be made out, says the oracle."""

LARGE_SIDE = 1000
FAINT = 0.5
"""A picture with less than this share of its tonal range is faint or dark."""

TILTED_DEGREES = 2.0


def obstacles(sample: Sample) -> tuple[Operation, ...]:
    """What stands in the way of reading the image, as far as it is known, the most important first.

    Direction and lighting by ``truth.angle`` and ``truth.contrast``, the region by the share of the target's box and
    the image's size. Raises ``RowFault`` (not_applicable) for a sample without an image.
    """
    if not sample.images:
        raise RowFault(Reason.NOT_APPLICABLE, "the sample has no image")
    truth, image = sample.truth, sample.images[0]
    turned = abs(((truth.angle or 0) + 180) % 360 - 180)
    small = bool(truth.boxes) and truth.boxes[0].box.area < SMALL_SHARE * image.width * image.height
    found = {
        Operation.DIRECTION: turned > TILTED_DEGREES,
        Operation.LIGHTING: truth.contrast is not None and truth.contrast < FAINT,
        Operation.REGION: small and max(image.width, image.height) > LARGE_SIDE,
    }
    return tuple(operation for operation, stands in found.items() if stands)
