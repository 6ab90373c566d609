"""Selection: exactly so many accepted rows, balanced over categories and difficulties, the same ones every time.

Rows are dealt round robin from their strata, within a stratum in an order that depends on the seed and the row alone:
the rows for a smaller number are among those for a larger one, and a row that is added moves no other out of order.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Literal

from pipelines.records import Sample
from pipelines.records.digest import digest

Axis = Literal["category", "difficulty"]
_TINY, _SMALL = 0.001, 0.01


@dataclass(frozen=True, slots=True)
class Candidate:
    """What selection needs to know of a row."""

    row_id: str
    category: str = ""
    difficulty: str = ""


def select(
    candidates: Sequence[Candidate], n_rows: int, *, balance: Sequence[Axis] = ("category", "difficulty"), seed: int = 0
) -> set[str]:
    """The ids of exactly ``n_rows`` rows, or of all where there are fewer. Raises ``ValueError`` below 0."""
    if n_rows < 0:
        raise ValueError(f"a number of rows is 0 or more; found {n_rows}")
    return set(islice(ordered(candidates, balance=balance, seed=seed), n_rows))


def ordered(
    candidates: Sequence[Candidate], *, balance: Sequence[Axis] = ("category", "difficulty"), seed: int = 0
) -> Iterator[str]:
    """The ids of all rows in the order in which they are selected."""
    strata: dict[Hashable, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        strata[tuple(getattr(candidate, axis) for axis in balance)].append(candidate)
    by_seed = [
        sorted(strata[key], key=lambda candidate: digest([seed, candidate.row_id])) for key in sorted(strata, key=repr)
    ]
    return (candidate.row_id for turn in zip_longest(*by_seed) for candidate in turn if candidate is not None)


def mixture(weights: Mapping[str, int], n_rows: int) -> dict[str, int]:
    """``weights`` scaled to ``n_rows`` in all, to the row (largest remainder): Thyme's mixture at any size (App. B)."""
    total = sum(weights.values())
    if total <= 0:
        return dict.fromkeys(weights, 0)
    exact = {family: n_rows * n / total for family, n in weights.items()}
    quotas = {family: math.floor(share) for family, share in exact.items()}
    by_remainder = sorted(weights, key=lambda family: (quotas[family] - exact[family], family))
    for family in by_remainder[: n_rows - sum(quotas.values())]:
        quotas[family] += 1
    return quotas


def difficulty(sample: Sample) -> str:
    """How small the target is: ``tiny`` below a thousandth of the image, ``small`` below a hundredth."""
    if not sample.images or not sample.truth.boxes:
        return "none"
    target = sample.truth.boxes[0]
    image = sample.images[target.image]
    share = target.box.area / (image.width * image.height)
    return "tiny" if share < _TINY else "small" if share < _SMALL else "large"
