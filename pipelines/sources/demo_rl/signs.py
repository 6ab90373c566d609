"""Plates and boards with print of all sizes: what they say, and what they list from top to bottom."""

from __future__ import annotations

from itertools import permutations
from random import Random

from pipelines.geometry import Box
from pipelines.sources.demo.choices import Choices
from pipelines.sources.demo.material import font
from pipelines.sources.demo_rl.sheet import COLOURS, INK, PAPER, SIZE, Asked, Sheet, sheet, write

WORDS = ("HARBOUR", "STATION", "GARDEN", "MARKET", "LIBRARY", "BRIDGE", "MUSEUM", "FOUNTAIN", "TOWER", "ORCHARD")
GOODS = ("lantern", "compass", "violin", "saddle", "kettle", "blanket", "trumpet", "ladder", "basket", "mirror")
_PRINT = (9, 12, 18, 30, 46)
"""Heights of letters, in pixels."""
_PAIRS = tuple(permutations(("red", "blue", "green", "violet"), 2))
_HEADINGS = ("LENT", "SOLD", "FOUND", "LOST")
_READ = (
    "What is written on the {colour} plate, beside the {other} one?",
    "There are a {colour} plate and a {other} one. What does the {colour} one say?",
    "Read the {colour} plate, not the {other} one: what is on it?",
    "Which text does the plate in {colour} bear, while another is {other}?",
)


def plate(rng: Random, n: int) -> Asked:
    """What a plate says: a word, a code, or both."""
    on = sheet(rng)
    colour, other = _PAIRS[n % len(_PAIRS)]
    text, beside = _text(rng, n), _text(rng, n + 1)
    box = _hang(on, text, colour, _PRINT[n % 5], rng, upper=bool(n % 2))
    _hang(on, beside, other, 14, rng, upper=not n % 2)
    question = _READ[(n + n // len(_PAIRS)) % len(_READ)].format(colour=colour, other=other)
    return Asked(on.picture, question, Choices((), text), "OCR", (f"{colour} plate", box), on.license)


def board(rng: Random, n: int) -> Asked:
    """Which goods a board lists, from top to bottom."""
    on, heading = sheet(rng), _HEADINGS[n % len(_HEADINGS)]
    goods = rng.sample(GOODS, 3 + n % 3)
    size = (12, 17, 24)[n % 3]
    wide, high = size * 8, (len(goods) + 1) * size * 2
    x, y = rng.randint(4, SIZE[0] - wide - 4), rng.randint(4, SIZE[1] - high - 4)
    on.draw.rectangle((x, y, x + wide - 1, y + high - 1), fill=PAPER, outline=INK, width=2)
    write(on.draw, (x + wide / 2, y + size), heading, size)
    for place, word in enumerate(goods, 1):
        write(on.draw, (x + wide / 2, y + size * (2 * place + 1)), word, size)
    return Asked(
        on.picture,
        f"Which {len(goods)} things does the board name below {heading}, from top to bottom?",
        Choices((), ", ".join(goods)),
        "list",
        ("board", Box(x, y, x + wide, y + high)),
        on.license,
        {"grader": {"kind": "list", "is_ordered": True}},
    )


def _text(rng: Random, n: int) -> str:
    code = f"{rng.choice('BDFHKMRTX')}{rng.randrange(10, 99)}-{rng.randrange(100, 999)}"
    word = rng.choice(WORDS)
    return (word, code, f"{word} {rng.randrange(11, 99)}")[n % 3]


def _hang(on: Sheet, text: str, colour: str, size: int, rng: Random, *, upper: bool) -> Box:
    """Puts a plate into the upper or the lower half; where it is."""
    wide = round(font("DejaVuSans-Bold", size).getlength(text)) + size
    high = size * 2
    half = SIZE[1] // 2
    x = rng.randint(2, max(2, SIZE[0] - wide - 2))
    y = rng.randint(2, half - high - 2) + (0 if upper else half)
    box = Box(x, y, min(x + wide, SIZE[0]), y + high)
    on.draw.rectangle((box.x1, box.y1, box.x2 - 1, box.y2 - 1), fill=COLOURS[colour])
    write(on.draw, ((box.x1 + box.x2) / 2, (box.y1 + box.y2) / 2), text, size, PAPER)
    return box
