"""A part of a long video, cut out without decoding it: the film's own packets, and so its own pixels.

    cut(Path("lecture.mp4"), 3600.0, 3660.0)     # begins at the key frame at or before 1:00:00

Packets are copied from the key frame at or before ``start`` to the last one that frames before ``end`` need: a new
encoding would begin on time and lose pixels. The film is read by seeking; in memory is what is kept of it, within the
limits of ``media_validation.py``. Sound is left out. Equal films and times give equal bytes.
"""

import io
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage.media_validation import (
    CUT,
    MAX_FRAMES,
    MAX_PIXELS,
    MAX_VIDEO_BYTES,
    too_long,
    video_header,
)
from darkroom.pipelines.storage.row_files import file_digest
from darkroom.sandbox.errors import require_extra

if TYPE_CHECKING:
    from darkroom.sandbox._guest.video_file import VideoFile, VideoPacket

_CONTAINERS = {"mp4": "mp4", "flv": "flv", "wmv": "asf"}
"""Of a part, by the suffix of its film; Matroska for any other."""
_BACK = (0, 10, 60, 600)
"""Seconds before ``start`` to look for its key frame; after that from the film's beginning."""
_ROUNDED = 1.0
"""Seconds by which ``end`` may lie behind the film."""


class VideoCut(NamedTuple):
    """A part, the digest of its film, and its times there in seconds: as asked, and as kept."""

    data: bytes
    parent: str
    start: float
    end: float
    kept_start: float
    kept_end: float

    @property
    def made_by(self) -> str:
        """The times, for the record of the part."""
        kept, asked = f"{self.kept_start:.3f} to {self.kept_end:.3f} s", f"{self.start:.3f} to {self.end:.3f} s"
        return f"ingest: {CUT};{kept} of it;asked {asked}"


def cut(film: Path | bytes, start: float, end: float) -> VideoCut:
    """The part from ``start`` to ``end``, in seconds from the film's first frame. Raises ``RowError``:
    unreadable_video, too_large_video (of what would be kept), malformed_row (no such part)."""
    require_extra("av", "video", "reading videos")
    if isinstance(film, Path) and not film.is_file():  # a pipe blocks
        raise RowError(Reason.MISSING_VIDEO, f"there is no file {film}")
    try:
        with io.BytesIO(film) if isinstance(film, bytes) else film.open("rb") as file:
            data, kept_start, kept_end = _part(file, start, end)
        parent = digest_bytes(film) if isinstance(film, bytes) else _film_digest(film, film.stat().st_mtime_ns)
        return VideoCut(data, parent, start, end, kept_start, kept_end)
    except RowError:
        raise
    except Exception as error:  # whatever a broken file makes a demuxer raise
        raise RowError(Reason.UNREADABLE_VIDEO, f"{type(error).__name__}: {error}") from error


@lru_cache(maxsize=64)
def _film_digest(film: Path, changed_ns: int) -> str:
    """Digest of a whole film, once for its many rows."""
    return file_digest(film)


def _part(file: IO[bytes], start: float, end: float) -> tuple[bytes, float, float]:
    """A part as a file, and its times in the film."""
    from darkroom.sandbox._guest.video_file import VideoFile

    suffix, _ = video_header(file)
    for back in (*_BACK, None):
        with closing(VideoFile(file, max_pixels=MAX_PIXELS)) as film:
            if film.counts_as_stored:
                raise RowError(Reason.UNREADABLE_VIDEO, f"{film.codec_name} in AVI has no times: put it into MP4")
            zero, tick = film.stream.start_time or 0, film.seconds_per_tick
            begin, last = zero + round(start / tick), zero + round(end / tick)
            if back is not None and not film.seek(begin - round(back / tick)):
                continue
            if packets := _packets(film, begin, last, is_from_start=back is None):
                kept_start, kept_end = ((time - zero) * tick for time in (packets[0].pts or 0, _end(packets)))
                return _muxed(film, packets, _CONTAINERS.get(suffix, "matroska")), kept_start, kept_end
    raise RowError(Reason.UNREADABLE_VIDEO, "there is no key frame")


def _packets(film: "VideoFile", start: int, end: int, *, is_from_start: bool) -> "list[VideoPacket]":
    """The packets from the last key frame at or before ``start`` on (in ticks); none where the first is behind it."""
    kept: list[VideoPacket] = []
    n_bytes, latest = 0, 0
    for packet in film.packets():
        if packet.pts is None:
            raise ValueError("its frames carry no times")
        if packet.is_keyframe and (packet.pts <= start or (is_from_start and not kept)):
            kept, n_bytes, latest = [packet], packet.size, packet.pts
        elif not kept and packet.is_keyframe:
            return []
        elif kept and packet.pts > latest and (packet.pts if packet.dts is None else packet.dts) >= end:
            return kept  # it and all behind it are shown after what is kept
        elif kept and packet.pts >= (kept[0].pts or 0):  # an earlier one needs frames before the key frame
            kept.append(packet)
            n_bytes, latest = n_bytes + packet.size, max(latest, packet.pts)
        if n_bytes > MAX_VIDEO_BYTES or len(kept) > MAX_FRAMES:
            raise too_long(f"{len(kept):,} frames, {n_bytes:,} bytes from the key frame before the part")
    if film.fault is not None:
        raise film.fault
    if kept and not start < _end(kept) >= end - _ROUNDED / film.seconds_per_tick:
        seconds = (_end(kept) - (film.stream.start_time or 0)) * film.seconds_per_tick
        what = f"the film ends at {seconds:.3f} s, before the part does: times are seconds, not milliseconds or frames"
        raise RowError(Reason.MALFORMED_ROW, what)
    return kept


def _end(packets: "list[VideoPacket]") -> int:
    return max((packet.pts or 0) + (packet.duration or 0) for packet in packets)


def _muxed(film: "VideoFile", packets: "list[VideoPacket]", container_name: str) -> bytes:
    """A file of the packets, whose clock begins with the first."""
    import av

    buffer, zero = io.BytesIO(), packets[0].pts or 0
    container: Any
    with av.open(buffer, "w", format=container_name, container_options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream_from_template(film.stream)
        for packet in packets:
            packet.pts, packet.dts = (None if time is None else time - zero for time in (packet.pts, packet.dts))
            packet.stream = stream
            container.mux(packet)
    return buffer.getvalue()
