"""Routes on a grid that are to be told in a sentence: free text, for a judge."""

from __future__ import annotations

from random import Random

from pipelines.sources.demo.choices import Choices
from pipelines.sources.demo_rl.sheet import COLOURS, INK, Asked, sheet, write

_STEPS = {"right": (1, 0), "left": (-1, 0), "up": (0, -1), "down": (0, 1)}
_TURNS = {"right": ("up", "down"), "left": ("up", "down"), "up": ("left", "right"), "down": ("left", "right")}
_PAINTS = tuple(COLOURS)


def route(rng: Random, n: int) -> Asked:
    """How a route of three legs runs from its dot to its cross."""
    on, first = sheet(rng), tuple(_STEPS)[n % 4]
    second = rng.choice(_TURNS[first])
    legs = (first, second, rng.choice(_TURNS[second]))
    places = [(0, 0)]
    for leg, length in zip(legs, (rng.randint(2, 3), 2, rng.randint(1, 2)), strict=True):
        (x, y), (right, down) = places[-1], _STEPS[leg]
        places.append((x + right * length, y + down * length))
    middle = [(min(along) + max(along)) / 2 for along in zip(*places, strict=True)]
    line = [(240 + (x - middle[0]) * 56, 180 + (y - middle[1]) * 56) for x, y in places]
    paint = _PAINTS[n % len(_PAINTS)]
    on.draw.line(line, fill=COLOURS[paint], width=6)
    (x, y), end = line[0], line[-1]
    on.draw.ellipse((x - 9, y - 9, x + 9, y + 9), fill=INK)
    write(on.draw, end, "×", 34)
    return Asked(
        on.picture,
        f"Describe in one sentence how the {paint} route runs from the dot to the cross.",
        Choices((), "It goes {}, turns {} after that and at the end runs {} until the cross.".format(*legs)),
        "description",
        None,
        on.license,
        {"grader": {"kind": "judged"}},
    )
