"""Declaration of the samples that a family is for, in facts that a source's mapping sets.

Applicability(images=True, box=True).objection(sample)      # "it has no box in its first image"
"""

from dataclasses import dataclass

from darkroom.pipelines.records import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Applicability:
    """A family's samples; None: with or without. ``also`` says in words what makes others of them unsuitable."""

    images: bool | None = None
    videos: bool | None = None
    box: bool = False
    """Whether the first target's box must be in the first image."""
    categories: tuple[str, ...] = ()
    """Words of which the category must have one, in any case; with ``box``, one of the two conditions is enough."""
    also: str = ""

    def objection(self, sample: Sample) -> str:
        """Why the sample is not one of them; empty where it is."""
        for name, wanted, media in (("an image", self.images, sample.images), ("a video", self.videos, sample.videos)):
            if wanted is not None and bool(media) != wanted:
                return f"it has {_no(name) if wanted else name}"
        category = sample.category.casefold()
        has_category = any(word in category for word in self.categories)
        has_box = bool(sample.truth.boxes) and sample.truth.boxes[0].image == 0
        if (self.box and has_box) or has_category or not (self.box or self.categories):
            return ""
        lacks = ["no box in its first image"] if self.box else []
        lacks += [f"the category {sample.category!r}, without {self._words}"] if self.categories else []
        return f"it has {' and '.join(lacks)}"

    @property
    def in_words(self) -> str:
        """Sample facts for people: ``an image; a box in the first image, or a category with `ocr```; else ``any``."""
        media = (("an image", self.images), ("a video", self.videos))
        parts = [name if wanted else _no(name) for name, wanted in media if wanted is not None]
        target = ["a box in the first image"] if self.box else []
        target += [f"a category with {self._words}"] if self.categories else []
        return "; ".join([*parts, *([", or ".join(target)] if target else [])]) or "any"

    @property
    def _words(self) -> str:
        return " or ".join(f"`{word}`" for word in self.categories)


def _no(name: str) -> str:
    return f"no {name.partition(' ')[2]}"
