"""The part of a long video that a row is about: its times in the row, and the times in the row's texts.

    segment: {start: begin, end: end}                  # columns
    segment: {start: 0, end: asked_at, times: film}    # or seconds; times in texts count from the film's beginning

A column has seconds (``90.5``, also as text) or a clock time (``1:30.5``, ``00:01:30``). The part that is kept begins
at a key frame (``storage/video_cuts.py``), its clock at 0: the question gets a line with the times that were asked, and
clock times in the row's texts are moved to it. Times in words or seconds (``after 90 s``) stay as they are.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field

from darkroom.pipelines.records.reject_reasons import Reason, RowError

if TYPE_CHECKING:
    from darkroom.pipelines.storage.video_cuts import VideoCut

_TIME = re.compile(r"\A(?:(?:(\d{1,2}):(?=[0-5]\d:))?(\d{1,3}):(?=[0-5]\d\b))?(\d{1,9}(?:[.,]\d{1,9})?)\Z")
_IN_TEXT = re.compile(r"(?<![\d:.,])(?:(\d{1,2}):)?(\d{1,3}):([0-5]\d(?:\.\d{1,3})?)(?![\d:])")
_UNEVEN = 0.1
"""Seconds by which a part may begin earlier or end later than asked without a word."""

Seconds = Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]


class VideoSegment(BaseModel, extra="forbid", frozen=True):
    """Columns with the times of a row's part of its videos, or the same seconds for all rows."""

    start: str | Seconds
    end: str | Seconds
    times: Literal["film", "segment", "other"] | None = None
    """What clock times in texts count from: the film's beginning, ``start``, or neither (a clock in the image)."""

    def span(self, row: Mapping[str, Any], value_at: Callable[[Mapping[str, Any], str], Any]) -> tuple[float, float]:
        """The times of a row's part in seconds. Raises ``RowError``."""
        start, end = (_seconds(value_at(row, of), of) if isinstance(of, str) else of for of in (self.start, self.end))
        if start >= end:
            raise RowError(Reason.MALFORMED_ROW, f"the part of the video ends at {end:g} s, and begins at {start:g} s")
        return start, end

    def moved(self, text: str, cuts: "Sequence[VideoCut]") -> str:
        """A text with its clock times on the kept part's clock. Raises ``RowError`` where they may mean two things."""
        return text if self.times == "other" else _IN_TEXT.sub(lambda time: self._moved(time, cuts), text)

    def _moved(self, time: re.Match[str], cuts: "Sequence[VideoCut]") -> str:
        if self.times is None or len(cuts) != 1:
            meanings = "from the beginning of the film or of the part, or is of neither"
            remedy = "state `times: film`, `segment` or `other` in the mapping's `segment`"
            raise RowError(Reason.MALFORMED_ROW, f"the time {time[0]} in a text counts {meanings}: {remedy}")
        kept = round(_clock_seconds(time) + (cuts[0].start if self.times == "segment" else 0) - cuts[0].kept_start)
        if kept < 0:
            raise RowError(Reason.MALFORMED_ROW, f"the time {time[0]} in a text is before the part of the film")
        minutes, seconds = divmod(kept, 60)
        return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}" if time[1] else f"{minutes:02}:{seconds:02}"


def asked_part(cuts: "Sequence[VideoCut]") -> str:
    """A line for the question that names the part of each video that was asked, where more is kept; empty if none."""
    return "".join(
        f"\nOnly {part.start - part.kept_start:.1f} to {part.end - part.kept_start:.1f} seconds of video {n} count."
        for n, part in enumerate(cuts, 1)
        if part.start - part.kept_start > _UNEVEN or part.kept_end - part.end > _UNEVEN
    )


def _clock_seconds(time: re.Match[str]) -> float:
    hours, minutes, seconds = (float((part or "0").replace(",", ".")) for part in time.groups())
    return (hours * 60 + minutes) * 60 + seconds


def _seconds(value: Any, column: str) -> float:
    time = _TIME.match(value.strip()) if isinstance(value, str) else None
    seconds = _clock_seconds(time) if time else value
    if type(seconds) in (int, float) and 0 <= seconds < math.inf:
        return float(seconds)
    what = f"column {column!r}: expected seconds, or a time like 00:01:30, found {str(value)[:60]!r}"
    raise RowError(Reason.WRONG_TYPE, what)
