"""A console that shows control characters (`\\x1b` as `␛`) instead of passing them to the terminal: what a session
printed could move the cursor, set the window's title, turn the direction or hide a line."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_SHOWN = str.maketrans(
    {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"}
    | {0x7F: "␡"}
    | dict.fromkeys((*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\N{REPLACEMENT CHARACTER}")
    | dict.fromkeys((0x61C, 0x200E, 0x200F), "\N{REPLACEMENT CHARACTER}")
)

_LEAST_COLUMNS = 60
"""A table that is made narrower loses columns, the name of the row first; a terminal wraps what is wider than it."""


class SafeConsole(Console):
    """For text that a session, a model or a data set wrote. Colours are those of the command alone."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.columns = self.width
        """Of the terminal, for what is no table."""
        if self.width < _LEAST_COLUMNS:
            self.width = _LEAST_COLUMNS

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=segment.text.translate(_SHOWN))
