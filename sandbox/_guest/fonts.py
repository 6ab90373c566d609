"""The same faces on every machine: DejaVu, which comes with matplotlib, and a larger one that lies here.

Darkroom Sans is DejaVu Sans (Latin, Greek, Cyrillic, Arabic, Hebrew) with Chinese, Japanese and Korean of Droid Sans
Fallback. A face that the code names and that is not there, such as arial.ttf or a path of another system, gives the
nearest one, with a note. Text of which a face lacks a character is drawn by Darkroom Sans.
"""

import os
import re
from functools import cache
from typing import Any

import cv2
import matplotlib
import numpy as np
from matplotlib import font_manager
from matplotlib.ft2font import FT2Font
from PIL import Image, ImageDraw, ImageFont

from darkroom.sandbox._guest.messages import note

_FALLBACK = os.path.join(os.path.dirname(__file__), "fonts", "DarkroomSans.ttf")
_FAMILIES = ("DejaVu Sans", "Darkroom Sans")
_DEJAVU = os.path.join(matplotlib.get_data_path(), "fonts", "ttf", "DejaVu")
_LAST_LATIN = 0x17F
_HERSHEY_PIXELS = 30
"""Height of a line that `cv2.putText` writes at a scale of 1."""
_plain_face = ImageFont.truetype


def install() -> None:
    """Take the place of the system's faces in matplotlib, Pillow and `cv2.putText`."""
    manager: Any = font_manager.fontManager
    manager.ttflist[:] = [entry for entry in manager.ttflist if entry.fname.startswith(matplotlib.get_data_path())]
    manager.addfont(_FALLBACK)
    find = manager._find_fonts_by_props

    def find_with_fallback(prop: Any, *args: Any, **options: Any) -> list[Any]:
        wanted = font_manager.FontProperties._from_any(prop).copy()  # type: ignore[attr-defined]
        known, families = {entry.name for entry in manager.ttflist}, dict.fromkeys(_FAMILIES)
        for family in reversed(wanted.get_family()):
            names = manager._expand_aliases(family) if family in font_manager.font_family_aliases else [family]
            if known.isdisjoint(names):
                note(f"the sandbox has no font {', '.join(names)}: {_FAMILIES[0]} is used")
            else:
                families = {family: None} | families
        wanted.set_family(list(families))
        return list(dict.fromkeys(find(wanted, *args, **options)))

    manager._find_fonts_by_props = find_with_fallback
    setattr(font_manager.FontProperties, "set_file", _set_file)  # noqa: B010
    ImageFont.truetype = _face
    for name in ("getmask2", "getbbox", "getlength"):
        setattr(ImageFont.FreeTypeFont, name, _drawn_by_a_face_that_can(getattr(ImageFont.FreeTypeFont, name)))
    _install_put_text()


def _face(font: Any, size: float = 10, *args: Any, **options: Any) -> ImageFont.FreeTypeFont:
    return _plain_face(_there(font), size, *args, **options)


def _set_file(properties: font_manager.FontProperties, file: Any) -> None:
    """Set a file, which rules out all other faces; for one that is not there none, so that any character is drawn."""
    there = _there(file)
    properties._file = there if there is None or there == file else None  # type: ignore[attr-defined]


def _there(font: Any) -> Any:
    """The font itself; for a file that is not there, the nearest face of ours."""
    if not isinstance(font, str | os.PathLike) or os.path.isfile(font):
        return font
    wanted = os.path.basename(os.fspath(font))
    ours = _nearest(wanted)
    if os.path.splitext(wanted)[0] != os.path.splitext(os.path.basename(ours))[0]:
        note(f"the sandbox has no font {wanted}: {os.path.basename(ours)} is used")
    return ours


def _nearest(name: str) -> str:
    """The file of DejaVu that is most like the named one."""
    lower = name.lower()
    face = "Serif" if re.search("times|serif|georgia|roman", lower) and "sans" not in lower else "Sans"
    face = "SansMono" if re.search("mono|cour|consol", lower) else face
    style = "Bold" if re.search(r"bold|bd\.|black|heavy", lower) else ""
    if re.search("italic|oblique", lower):
        style += "Italic" if face == "Serif" else "Oblique"
    return f"{_DEJAVU}{face}{'-' * bool(style)}{style}.ttf"


def _drawn_by_a_face_that_can(method: Any) -> Any:
    def drawn(self: ImageFont.FreeTypeFont, text: Any, *args: Any, **options: Any) -> Any:
        return method(_able(self, text), text, *args, **options)

    return drawn


def _able(font: ImageFont.FreeTypeFont, text: Any) -> ImageFont.FreeTypeFont:
    """Choose the font itself, or the fallback where it lacks a character of the text."""
    if not isinstance(text, str) or text.isascii():
        return font
    path = font.path if isinstance(font.path, str) else None
    is_complete = _characters(path).issuperset(ord(character) for character in text if not character.isspace())
    return font if is_complete else _plain_face(_FALLBACK, font.size)


@cache
def _characters(path: str | None) -> frozenset[int]:
    """List the characters of a face; the one that Pillow brings, which has no path, is Latin."""
    return frozenset(FT2Font(path).get_charmap() if path else range(_LAST_LATIN + 1))


def _install_put_text() -> None:
    put_text, text_size = cv2.putText, cv2.getTextSize

    def put(
        img: Any, text: Any, org: Any, fontFace: Any, fontScale: Any, color: Any, *args: Any, **options: Any
    ) -> Any:
        if not isinstance(text, str) or text.isascii() or not isinstance(img, np.ndarray) or img.dtype != np.uint8:
            return put_text(img, text, org, fontFace, fontScale, color, *args, **options)
        mask = Image.new("L", img.shape[1::-1])
        ImageDraw.Draw(mask).text(tuple(org), text, 255, _of_scale(fontScale), anchor="ls")
        if box := mask.getbbox():
            part, shown = img[box[1] : box[3], box[0] : box[2]], np.asarray(mask.crop(box), np.float32) / 255
            n_channels = img.shape[2] if img.ndim > 2 else 1
            colors = [*color, 0, 0, 0][:n_channels] if isinstance(color, tuple | list) else [color] * n_channels
            weight = shown.reshape(*shown.shape, *[1] * (img.ndim - 2))
            part[:] = np.rint(part * (1 - weight) + np.array(colors if img.ndim > 2 else colors[0]) * weight)
        return img

    def size_of(text: Any, fontFace: Any, fontScale: Any, thickness: Any) -> Any:
        if not isinstance(text, str) or text.isascii():
            return text_size(text, fontFace, fontScale, thickness)
        left, top, right, bottom = _of_scale(fontScale).getbbox(text, anchor="ls")
        return (round(right - left), round(-top)), round(max(bottom, 0))

    setattr(cv2, "putText", put)  # noqa: B010  # an overloaded function cannot be assigned in types
    setattr(cv2, "getTextSize", size_of)  # noqa: B010


def _of_scale(scale: float) -> ImageFont.FreeTypeFont:
    return _plain_face(_FALLBACK, max(1, round(scale * _HERSHEY_PIXELS)))
