"""Everything here is marked ``soak``: chaos, kills and clusters, hours in all. The fixtures are those of tests/e2e."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import (
    chromium,
    clean_environment,
    instance,
    photos,
    port,
    postgres_server,
    root,
    run,
    slurm,
    undisturbed,
)

__all__ = [
    "chromium",
    "clean_environment",
    "instance",
    "photos",
    "port",
    "postgres_server",
    "root",
    "run",
    "slurm",
    "undisturbed",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:  # of all folders: a path of each would take longer than the rest
        if item.nodeid.startswith("tests/soak/"):
            item.add_marker(pytest.mark.soak)
