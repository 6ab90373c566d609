"""Matrices that the quick or end-to-end tests sample; `make soak` tries the rest."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import settings


def first_quickly(names: Iterable[Any], *, n_quick: int = 1) -> list[Any]:
    """Parameters: the first ``n_quick`` of ``names`` as they are, the others marked ``soak``."""
    return _rest_soaks(names, lambda number: number < n_quick)


def every_nth(names: Iterable[Any], n: int) -> list[Any]:
    """Parameters: every ``n``-th of ``names`` as it is, from the first on, the others marked ``soak``."""
    return _rest_soaks(names, lambda number: number % n == 0)


def fewer_quickly(n_examples: int) -> int:
    """A fifth of the examples of a property; all of them under the profile of hypothesis that ``make soak`` takes."""
    return n_examples if settings.get_current_profile_name() == "thorough" else n_examples // 5


def _rest_soaks(names: Iterable[Any], stays: Callable[[int], bool]) -> list[Any]:
    return [name if stays(number) else pytest.param(name, marks=pytest.mark.soak) for number, name in enumerate(names)]
