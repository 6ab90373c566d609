"""Matrices of which the quick tests try the first names; the end-to-end tests try the rest."""

from collections.abc import Iterable
from typing import Any

import pytest


def first_quickly(names: Iterable[str], *, n_quick: int = 1) -> list[Any]:
    """Parameters: the first ``n_quick`` of ``names`` as they are, the others marked ``e2e``."""
    listed = list(names)
    return [*listed[:n_quick], *(pytest.param(name, marks=pytest.mark.e2e) for name in listed[n_quick:])]
