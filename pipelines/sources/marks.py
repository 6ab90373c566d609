"""Marks of images in a row's texts: where a question shows which image, in one spelling, counted against its files.

    placed(["Is the square in <image> larger than the one in <|image|>?"], 2)   # "… in <image> larger than … <image>?"
    placed(["Which is blue, <image 1> or <image 2>?"], 2)    # "Which is blue, image 1 <image> or image 2 <image>?"
    placed(["Compare <image 2> with <image 1>."], 2)         # "Compare image 2 with image 1.": the images come first

Read are ``<image>``, ``<image 1>``, ``<image_1>``, ``<|image_1|>``, ``<img>path</img>``, ``<ImageHere>`` and Qwen's
``<|image_pad|>``, in any case. A number that comes again is the words ``image 1``. Marks of videos are removed.
"""

import re
from collections.abc import Sequence

from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.samples import IMAGE_MARK

_MARK = re.compile(
    r"(?:<\|vision_start\|>)?(?:<\|image_pad\|>)+(?:<\|vision_end\|>)?|<ImageHere>|<img>[^<>\n]{1,300}</img>"
    r"|<image(?:[ _-]?(\d{1,3}))?>|<\|image(?:[ _-]?(\d{1,3}))?\|>",
    re.IGNORECASE,
)
_VIDEO = re.compile(
    r"<video(?:_?\d+)?>|(?:<\|vision_start\|>)?(?:<\|video_pad\|>)+(?:<\|vision_end\|>)?", re.IGNORECASE
)
_LEADING = re.compile(rf"(?:\s*(?:image \d+ )?{IMAGE_MARK})+", re.IGNORECASE)
_BLANKS = re.compile(r"[ \t]{2,}")


def placed(texts: Sequence[str], n_images: int) -> list[str]:
    """The texts, which follow each other, with ``<image>`` wherever one of ``n_images`` stands, in their order. Raises
    ``RowError`` (missing_image, malformed_row) where there are more or fewer marks than images."""
    numbers = [_number(mark) for text in texts for mark in _MARK.finditer(text)]
    numbered = [number for number in numbers if number is not None]
    n_plain, from_zero = numbers.count(None), 0 in numbered
    mentioned = [number + from_zero for number in dict.fromkeys(numbered)]
    if max(mentioned, default=0) > n_images or (numbers and n_plain != n_images and not (numbered and not n_plain)):
        n_marks = max(n_plain, *mentioned, 0)
        evidence = f"the text shows {n_marks} images, the row has {n_images}"
        reason = Reason.MISSING_IMAGE if n_marks > n_images else Reason.MALFORMED_ROW
        raise RowError(reason, f"{evidence}; `image_marks: drop` shows all of them first")
    unseen = set(numbered) if mentioned == [*range(1, n_images + 1)] and not n_plain else set()

    def spelled(mark: re.Match[str]) -> str:
        number = _number(mark)
        words = "" if number is None else f"image {number + from_zero}"
        if number is None or number in unseen:
            unseen.discard(number or 0)
            return f"{words} {IMAGE_MARK}" if words and n_images > 1 else IMAGE_MARK
        return words

    return [_MARK.sub(spelled, without_marks(text, [_VIDEO])) for text in texts]


def images_first(text: str) -> str:
    """The text without its marks if all stand at its beginning, or all at its end: images are shown before it."""
    n_marks = text.count(IMAGE_MARK)
    leading = _LEADING.match(text)
    if leading and leading[0].count(IMAGE_MARK) == n_marks:
        return _BLANKS.sub(" ", text[leading.end() :])
    stem = text
    for _ in range(n_marks):
        stem = stem.rstrip().removesuffix(IMAGE_MARK)
    return text if stem == text or IMAGE_MARK in stem else _BLANKS.sub(" ", stem)


def without_marks(text: str, marks: Sequence[re.Pattern[str]] = (_MARK, _VIDEO)) -> str:
    """The text without any mark, and without the double blanks that these leave."""
    for mark in marks:
        text = _BLANKS.sub(" ", mark.sub(" ", text)) if mark.search(text) else text
    return text


def _number(mark: re.Match[str]) -> int | None:
    return next((int(digits) for digits in mark.groups() if digits), None)
