"""``python -m darkroom_studio.routes FILE``: writes every route of this Label Studio and of the plug-in, one a line.

Named as the access table names them; the table lists them all (tests/soak/test_annotation_access.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
from django.urls import get_resolver


def routes() -> list[str]:
    return sorted({route.removeprefix("^") for route in _walk(get_resolver())})


def _walk(resolver: Any) -> Iterator[str]:
    """As ``URLResolver.resolve`` puts the routes together."""
    for pattern in resolver.url_patterns:
        if hasattr(pattern, "url_patterns"):
            yield from (resolver._join_route(str(pattern.pattern), route) for route in _walk(pattern))
        else:
            yield str(pattern.pattern)


if __name__ == "__main__":
    django.setup()
    Path(sys.argv[1]).write_text("\n".join(routes()) + "\n")  # Label Studio prints lines of its own
