"""A request that is made with many seeds: what they share is spelled and hashed once.

    asked = Seeded("policy", {"messages": […], "stop": []})
    asked.key(7) == act_key("policy", {"messages": […], "seed": 7, "stop": []})     # for a tenth of the time

A request of thousands of characters and eight votes would otherwise be spelled sixteen times.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pipelines.digest import canonical

FIELD = "seed"


class Seeded:
    """``request``, to which only ``seed`` is missing, as an act of ``kind``."""

    def __init__(self, kind: str, request: Mapping[str, Any]) -> None:
        before = {name: value for name, value in request.items() if name < FIELD}
        after = {name: value for name, value in request.items() if name > FIELD}
        head, self._tail = _around(canonical(before), canonical(after), f'"{FIELD}":', ",")
        self._hash = hashlib.sha256(f'{{"kind":{canonical(kind)},"request":{head}'.encode("utf-8", "surrogatepass"))
        self._text = _around(spelled(before), spelled(after), f'"{FIELD}": ', ", ")

    def key(self, seed: int) -> str:
        """The key of the act with this seed."""
        found = self._hash.copy()
        found.update(f"{seed}{self._tail}}}".encode("utf-8", "surrogatepass"))
        return found.hexdigest()

    def text(self, seed: int) -> str:
        """The request with this seed as the ledger keeps it."""
        head, tail = self._text
        return f"{head}{seed}{tail}"


def spelled(request: Mapping[str, Any]) -> str:
    """A request as the ledger keeps it. ASCII: a model may write what no database takes."""
    return json.dumps(request, sort_keys=True)


def _around(before: str, after: str, field: str, comma: str) -> tuple[str, str]:
    """What stands before and after the value of ``field`` in an object that has the members of all three."""
    head = f"{before[:-1]}{comma if before != '{}' else ''}{field}"
    return head, f"{comma}{after[1:]}" if after != "{}" else "}"
