"""PNG files that need not be decoded to be taken in, as sandbox and model decode them anyway."""

import struct
import zlib

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MODES = {(8, 0): "L", (8, 2): "RGB", (8, 6): "RGBA"}
"""By bits of a channel and colour type, of which stored images are kept as they are."""
_PLAIN = {b"IHDR", b"IDAT", b"IEND", b"bKGD", b"cHRM", b"gAMA", b"iCCP", b"pHYs", b"sBIT", b"sRGB", b"tIME"}
"""Chunks that neither turn an image nor make it transparent or animated."""


def plain_png(data: bytes) -> tuple[int, int, str] | None:
    """Width, height and Pillow's mode of a PNG that needs no conversion, each of whose chunks has the right CRC.

    None for any other file. Where the program that wrote a file was wrong its pixels may still not decode.
    """
    if not data.startswith(_SIGNATURE):
        return None
    start, kind, header, has_pixels = len(_SIGNATURE), b"", b"", False
    while kind != b"IEND":
        if start + 12 > len(data):
            return None
        length, kind = struct.unpack_from(">I4s", data, start)
        end = start + 8 + length
        if kind not in _PLAIN or (kind == b"IHDR") is bool(header) or data[end : end + 4] != _crc(data, start + 4, end):
            return None
        header = header or data[start + 8 : end]
        has_pixels |= kind == b"IDAT"
        start = end + 4
    if len(header) != 13 or not has_pixels:
        return None
    width, height, depth, colours = struct.unpack_from(">IIBB", header)
    mode = _MODES.get((depth, colours))
    return (width, height, mode) if mode and width and height else None


def _crc(data: bytes, start: int, end: int) -> bytes:
    return zlib.crc32(memoryview(data)[start:end]).to_bytes(4, "big")
