"""Whether a question asks for something small at one place of an image: CodeV's dense tool rewards are for these alone.

CodeV (§4.3) keeps the tool reward near 0 elsewhere, and gives no rule for which tasks these are.
"""

from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.visibility import SMALL_SHARE


def asks_visual_search(sample: Sample, stated: bool | None = None) -> bool | None:
    """By the known places of its targets, else as its source states; False without an image, None where unknown."""
    if not sample.images:
        return False
    areas = [image.width * image.height for image in sample.images]
    shares = [target.box.area / areas[target.image] for target in sample.truth.boxes if target.image < len(areas)]
    return min(shares) <= SMALL_SHARE if shares else stated
