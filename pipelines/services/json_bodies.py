"""Text that clients send."""

from typing import Annotated

from pydantic import AfterValidator


def _whole(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"no text: half of a pair of surrogates (character {error.start})") from error
    return text


WholeText = Annotated[str, AfterValidator(_whole)]
"""Text that an answer or a ledger can hold: without half of a pair of surrogates."""
