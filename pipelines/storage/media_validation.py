"""Probe images and videos before they are trusted.

Accepted as they are: single-frame JPEG, PNG and WebP in modes L, RGB and RGBA, opaque and upright.
Derived (a PNG whose parent is the original): other formats (TIFF, GIF, AVIF, BMP, …: few endpoints take them), EXIF
orientation applied, palette, CMYK and 1-bit images brought to RGB or L, transparent ones laid on white, 16-bit and
float ones scaled from the bits or the range in use. Refused with a reason: empty (also one colour once on white),
unreadable (also every format that is not in ``FORMATS`` nor, by the extra ``heic``, HEIC: Pillow would run Ghostscript
on an EPS file; and values that 8 bits cannot show), truncated, animated, larger than ``MAX_PIXELS``. A PNG or GIF that
lacks only its end mark holds
every pixel and is accepted.

Videos are probed with the very reader of the sandbox, so the number of frames in a prompt is the number that code
finds, and each of them decodes. Refused with a reason: 0 bytes, no video in one of ``VIDEO_FORMATS`` (FFmpeg would
follow a playlist to other files), a frame that does not decode, more than the limits. Videos keep the bytes they came
in; nothing is derived.
"""

import io
import re
import threading
import tomllib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from darkroom import sandbox
from darkroom.pipelines.records import Sample, VideoRef
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.sandbox._guest.video import VideoReader
from darkroom.sandbox.errors import require_extra

MAX_PIXELS = sandbox.Limits.max_pixels
"""What the sandbox can open: a larger image would be paid for and then fail there."""
LARGEST_PIXELS = 200_000_000
"""What is decoded here at all, for people to look at."""

PLAIN_MODES = frozenset({"L", "RGB", "RGBA"})
FORMATS = ("AVIF", "BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")  # JPEG includes MPO
PLAIN_FORMATS = frozenset({"JPEG", "MPO", "PNG", "WEBP"})
_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_FOREIGN: list[tuple[str, str, str]] = _DATA["foreign"]
"""Files that people have in place of images: how they begin, what they are, what to do."""
VIDEO_FORMATS: dict[str, str] = _DATA["video_formats"]
"""FFmpeg's readers that may look at a file, and how a file of each kind is called."""
_EXIF_ORIENTATION = 0x0112
_SUBFILE, _TIFF_BITS, _DNG = 254, 258, 50706
"""TIFF's tags: whether an image is the reduced one of another, bits of each channel, a digital negative's version."""
_ANY_CASE = re.IGNORECASE | re.DOTALL
_CUT_OFF = re.compile(r"truncated|incomplete|unexpected end", re.IGNORECASE)
_BITS = (8, 10, 12, 14, 16)
"""Bits of a camera's values, in a file of 16."""
_FEWEST_LEVELS = 16
"""Of the 256, between which 98 % of an image's values must lie apart: fewer show next to nothing of it."""
FLATTENED, SCALED, CUT = "flattened on white", "scaled from ", "cut from a longer one"
"""Steps of ``made_by`` that cards name; the bits or the range follow the second. The third is a video's."""


@dataclass(frozen=True, slots=True)
class Probed:
    """An image that can be decoded. ``plain`` holds the pixels to store as a derived image, if any are needed."""

    image: Image.Image
    plain: Image.Image | None
    made_by: str


def probe(data: bytes, *, max_pixels: int = MAX_PIXELS) -> Probed:
    """Decodes ``data`` fully. Raises ``RowError`` with the reason when it is not one sound image."""
    if not data:
        raise RowError(Reason.EMPTY_IMAGE, "the image file has 0 bytes")
    with _quiet():
        try:
            image = Image.open(io.BytesIO(data), formats=_formats())
            _check_header(image, max_pixels)
            image.load()
            plain, steps = _plain(image, data)
        except RowError:
            raise
        except Exception as error:  # whatever a broken file makes a decoder raise
            raise _error(error, data, max_pixels) from error
    return Probed(image, plain, ";".join(steps))


def decode(data: bytes) -> Image.Image:
    """The pixels of an image that was probed before."""
    with _quiet():
        image = Image.open(io.BytesIO(data), formats=_formats())
        image.load()
    return image


def encode(image: Image.Image, format: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


@cache
def _formats() -> tuple[str, ...]:
    """``FORMATS``, and HEIC where the extra is installed."""
    if find_spec("pi_heif") is None:
        return FORMATS
    from pi_heif import register_heif_opener

    register_heif_opener()
    return (*FORMATS, "HEIF")


@contextmanager
def _quiet() -> Iterator[None]:
    """Pillow warns of odd metadata and of large sizes: the first does no harm, the second is checked here."""
    with _PILLOW_LIMIT, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class _PillowLimit:
    """Meanwhile Pillow opens what has ``LARGEST_PIXELS``, and refuses twice as much; its limit is of all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_inside = 0
        self._before: int | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                self._before, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, LARGEST_PIXELS
            self._n_inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                Image.MAX_IMAGE_PIXELS = self._before


_PILLOW_LIMIT = _PillowLimit()


def _error(error: Exception, data: bytes, max_pixels: int) -> RowError:
    if isinstance(error, Image.DecompressionBombError):
        pixels = int(next(iter(re.findall(r"\d+", str(error))), 0))  # Pillow names a limit of its own
        return RowError(Reason.TOO_LARGE_IMAGE, _too_large(f"{pixels:,} pixels", max_pixels))
    if isinstance(error, UnidentifiedImageError):
        known = (kind[1:] for kind in _FOREIGN if re.match(kind[0].encode(), data[:1024], _ANY_CASE))
        name, remedy = next(known, ("", ""))
        what = f"are {name}: {remedy}" if name else "are no image in a known format"
        return RowError(Reason.UNREADABLE_IMAGE, f"{len(data)} bytes {what}")
    reason = Reason.TRUNCATED_IMAGE if _CUT_OFF.search(str(error)) else Reason.UNREADABLE_IMAGE
    return RowError(reason, f"{len(data)} bytes: {type(error).__name__}: {error}")


def _check_header(image: Image.Image, max_pixels: int) -> None:
    pixels = image.width * image.height
    if pixels > max_pixels:
        size = f"{image.width}x{image.height} = {pixels:,} pixels"
        raise RowError(Reason.TOO_LARGE_IMAGE, _too_large(size, max_pixels))
    if image.format == "TIFF" and (image.tag_v2.get(_SUBFILE, 0) & 1 or _DNG in image.tag_v2):  # type: ignore[attr-defined]
        why = "a camera's raw format, of which Pillow reads the small preview: develop it to JPEG"
        raise RowError(Reason.UNREADABLE_IMAGE, why)
    # the further frames of an MPO are depth or gain maps that telephones add to a photograph
    frames = 1 if image.format == "MPO" else getattr(image, "n_frames", 1)
    if frames > 1:
        todo = "save the frame that the question is about as a file of its own"
        raise RowError(Reason.ANIMATED_IMAGE, f"{image.format} with {frames} frames; {todo}")


def _too_large(size: str, max_pixels: int) -> str:
    return f"{size}, the limit is {max_pixels:,}; scale it down first"


def _plain(image: Image.Image, data: bytes) -> tuple[Image.Image | None, list[str]]:
    """The upright, opaque 8-bit form of ``image``, or None when it already is that; and what was done to get there."""
    steps = [] if image.mode in PLAIN_MODES else [f"mode {image.mode}"]
    deep = np.asarray(image) if _is_deep(image) else _deep_colours(image, data)
    plain = eight_bit(image) if deep is None else _scaled(deep, steps)
    if (orientation := image.getexif().get(_EXIF_ORIENTATION, 1)) not in (0, 1):
        steps.append("exif_orientation")
        plain.getexif()[_EXIF_ORIENTATION] = orientation
        plain = ImageOps.exif_transpose(plain)
    if plain.has_transparency_data and plain.convert("RGBA").getchannel("A").getextrema() != (255, 255):
        steps.append(FLATTENED)
        plain = on_white(plain)
    elif plain.mode == "RGBA" and image.mode != "RGBA":
        plain = plain.convert("RGB")
    if deep is not None or FLATTENED in steps:
        pixels = np.asarray(plain.convert("RGB")).reshape(-1, 3)
        if (pixels.max(axis=0) - pixels.min(axis=0) <= 2).all():
            raise RowError(Reason.EMPTY_IMAGE, f"nothing is to be seen: one colour, {', '.join(steps)}")
    if image.format not in PLAIN_FORMATS:
        steps.append(f"format {image.format}")
    return (plain, steps) if steps else (None, steps)


def eight_bit(image: Image.Image) -> Image.Image:
    """The same image in one of ``PLAIN_MODES``."""
    if image.mode in PLAIN_MODES:
        return image
    if _is_deep(image):
        return _scaled(np.asarray(image), [])
    if image.mode in ("P", "PA", "LA", "La", "RGBa") and (image.has_transparency_data or image.mode != "P"):
        return image.convert("RGBA")
    return image.convert("L" if image.mode == "1" else "RGB")


def on_white(image: Image.Image) -> Image.Image:
    """The image over white where it is transparent."""
    if not image.has_transparency_data:
        return image
    rgba = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba).convert("RGB")


def _is_deep(image: Image.Image) -> bool:
    return image.mode in ("I", "F") or image.mode.startswith("I;16")


def _deep_colours(image: Image.Image, data: bytes) -> NDArray[np.uint16] | None:
    """Colours of 16 bits that do not use them all: Pillow keeps the upper 8. None for any other image."""
    bits = {"PNG": data[24:25], "TIFF": getattr(image, "tag_v2", {}).get(_TIFF_BITS, ())}.get(image.format or "", ())
    if image.mode not in ("RGB", "RGBA", "LA") or 16 not in bits:
        return None
    values = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if values is None or values.dtype != np.uint16 or values.ndim != 3 or values[..., :3].max() >= 2 ** _BITS[-2]:
        return None
    return np.asarray(values[..., [2, 1, 0, *range(3, values.shape[2])]])


def _scaled(values: NDArray[Any], steps: list[str]) -> Image.Image:
    """8 bits of deeper values: linear, from the bits in use (16-bit values), else from the range in use. Adds to
    ``steps`` what was in use. Raises ``RowError`` (unreadable_image) where 8 bits show next to nothing."""
    colours = values[..., :3] if values.ndim == 3 else values
    if colours.dtype.kind in "iu" and colours.min() >= 0 and colours.max() <= 65535:
        bits = next(bits for bits in _BITS if colours.max() < 2**bits)
        per_level = (2**bits - 1) / 255
        scaled = np.rint(np.arange(2**bits) / per_level).astype(np.uint8)[colours]
        steps += [f"{SCALED}{bits} bits"] if bits < _BITS[-1] else []
    else:
        finite = colours[np.isfinite(colours)].astype(np.float64)
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
        span = (high - low) or 1.0
        per_level = span / 255
        colours = np.nan_to_num(colours.astype(np.float64), nan=low, posinf=high, neginf=low)
        scaled = np.rint((colours - low) / span * 255).astype(np.uint8)
        steps.append(f"{SCALED}{low:g} to {high:g}")
    least, most = np.percentile(colours.ravel()[:: max(1, colours.size // 1_000_000)], (1, 99))
    if 0 < most - least < _FEWEST_LEVELS * per_level:
        what = f"of values up to {colours.max():g}, 98 % lie between {least:g} and {most:g}"
        raise RowError(Reason.UNREADABLE_IMAGE, f"{what}, too near for 256 levels: scale it to 8 bits before ingest")
    return Image.fromarray(
        np.dstack([scaled, (values[..., 3:] // 257).astype(np.uint8)]) if values.ndim == 3 else scaled
    )


def derived_steps(sample: Sample) -> set[str]:
    """Changes by intake to what a sample shows: ``an image scaled from 12 bits``, ``a video cut from a longer one``."""
    kinds = [("an image", image.made_by) for image in sample.images]
    kinds += [("a video", video.made_by) for video in sample.videos]
    steps = ((kind, step) for kind, made_by in kinds for step in (made_by or "").removeprefix("ingest: ").split(";"))
    return {f"{kind} {step}" for kind, step in steps if step.startswith((FLATTENED, SCALED, CUT))}


MAX_VIDEO_BYTES = 512 * 2**20
MAX_FRAMES = 36_000
"""Twenty minutes at 30 frames per second: every frame is decoded on the way in."""

Thumbnails = NDArray[np.float32]


def probe_video(data: bytes) -> VideoRef:
    """The video; every frame decodes. Raises ``RowError`` (unreadable_video, too_large_video) with what was found."""
    if not data:
        raise RowError(Reason.UNREADABLE_VIDEO, "the video file has 0 bytes")
    if len(data) > MAX_VIDEO_BYTES:
        raise too_long(f"{len(data):,} bytes, the limit is {MAX_VIDEO_BYTES:,}")
    require_extra("av", "video", "reading videos")
    from darkroom.sandbox._guest.video_frames import FrameSource

    try:
        format, n_pixels = video_header(io.BytesIO(data))
        if n_pixels > MAX_PIXELS:
            raise RowError(Reason.TOO_LARGE_VIDEO, f"{n_pixels:,} pixels per frame, the limit is {MAX_PIXELS:,}")
        frames = FrameSource(io.BytesIO(data), max_pixels=MAX_PIXELS)
        n_frames = len(frames.index)
        if not n_frames:
            raise RowError(Reason.UNREADABLE_VIDEO, f"{len(data)} bytes without a frame")
        if n_frames > MAX_FRAMES:
            raise too_long(f"{n_frames:,} frames, the limit is {MAX_FRAMES:,}")
        for number in range(n_frames):
            frames.frame(number)
        height, width = frames.rgb(n_frames - 1).shape[:2]
        fps = round(VideoReader(io.BytesIO(data)).get_avg_fps(), 3)
    except RowError:
        raise
    except Exception as error:  # whatever a broken file makes a decoder raise
        raise RowError(Reason.UNREADABLE_VIDEO, f"{len(data)} bytes: {type(error).__name__}: {error}") from error
    return VideoRef(digest_bytes(data), format, width, height, n_frames, fps)


def too_long(size: str) -> RowError:
    """The error for a video of more bytes or frames than the limits, with the remedy."""
    return RowError(Reason.TOO_LARGE_VIDEO, f"{size}; ask about a shorter part: `segment` in the mapping")


def thumbnails(data: bytes, *, side: int) -> Thumbnails:
    """Every frame of a video that was probed before, in order, as (N, side, side, 3), RGB, 0..255."""
    from darkroom.sandbox._guest.video_frames import FrameSource

    frames = FrameSource(io.BytesIO(data), max_pixels=MAX_PIXELS)
    return np.stack([thumbnail(frames.rgb(number), side=side) for number in range(len(frames.index))])


def thumbnail(pixels: NDArray[np.uint8], *, side: int) -> Thumbnails:
    """One image (H, W, 3) as (side, side, 3)."""
    return np.asarray(cv2.resize(pixels.astype(np.float32), (side, side), interpolation=cv2.INTER_AREA), np.float32)


def video_header(file: IO[bytes]) -> tuple[str, int]:
    """Suffix of a file of its kind, and the pixels of one frame. Raises ``RowError``, or PyAV's errors."""
    import av  # of the extra `video`

    options = {"format_whitelist": ",".join(VIDEO_FORMATS), "protocol_whitelist": "file"}
    opened: Any = av.open(file, "r", container_options=options, metadata_errors="replace")
    with opened as container:
        stream = container.streams.best("video")
        if stream is None:
            raise RowError(Reason.UNREADABLE_VIDEO, f"{container.format.name} without a frame")
        return VIDEO_FORMATS[container.format.name], stream.width * stream.height
