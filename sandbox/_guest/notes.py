"""What the sandbox tells the code's author beside what the code prints."""

import sys
from functools import cache


@cache
def note(text: str) -> None:
    """Print a note, once per session."""
    if sys.stderr is not None:
        sys.stderr.write(f"note: {text}\n")
