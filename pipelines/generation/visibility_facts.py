"""What a policy may claim of an image, as a part of its prompt: the measurements that ``claims_hold`` compares with.

Nothing of it is a number: a thought must not state what cannot be measured by looking.
"""

from collections.abc import Mapping
from typing import Any

from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.records.visibility import FAINT_LEVELS, SEEN_LEVELS, SEEN_SIDE, Visibility

FACTS_PROMPT = bundled_prompt("visibility_facts")
SLOT = "facts"
"""A prompt that declares this slot is given ``visibility_facts`` of the image that the policy sees."""


def visibility_facts(seen: Visibility) -> str:
    """The facts in words: size, contrast and orientation, and what must not be said of them."""
    return FACTS_PROMPT.render(size=_size(seen), contrast=_contrast(seen), orientation=_orientation(seen))[1]


def facts_of_hint(hint: Mapping[str, Any]) -> str:
    """Those of a draft's hint: of the image as the policy was given it; empty where none was measured."""
    measured = hint.get("visibility_as_given") or hint.get("visibility")
    return visibility_facts(Visibility.from_json(measured)) if measured else ""


def _size(seen: Visibility) -> str:
    if seen.size != "between" or seen.side is None:
        return seen.size
    return "readable" if seen.side >= SEEN_SIDE else "modest"


def _contrast(seen: Visibility) -> str:
    if seen.levels is None:
        return "unknown"
    return "faint" if seen.levels < FAINT_LEVELS else "good" if seen.levels >= SEEN_LEVELS else "middling"


def _orientation(seen: Visibility) -> str:
    return "unknown" if seen.angle is None else "turned" if seen.is_turned else "upright"
