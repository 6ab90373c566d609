"""Memory addresses in what the code printed: they differ from run to run, and no reader wants them.

`<matplotlib.lines.Line2D object at 0x7f3a5c0d1e50>` becomes `... at 0x7f0000000010>`: the first address of a session is
10, the next 20, and so on (hexadecimal), the same one always the same.
"""

import re

_ADDRESS = re.compile(r"(?<=\bat )0x[0-9a-fA-F]{8,16}\b")
_FIRST, _STEP = 0x7F0000000000, 0x10


class Addresses:
    """Remembers, for one session, which address got which number."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def settle(self, text: str) -> str:
        return _ADDRESS.sub(self._settled, text) if "at 0x" in text else text

    def _settled(self, match: re.Match[str]) -> str:
        number = self._numbers.setdefault(int(match[0], 16), len(self._numbers) + 1)
        return hex(_FIRST + _STEP * number)
