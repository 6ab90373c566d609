"""Rulers, dials and thermometers to be read: numbers with a unit, right within five per cent."""

from __future__ import annotations

import math
from random import Random

from pipelines.geometry import Box
from pipelines.sources.demo.choices import Choices
from pipelines.sources.demo_rl.sheet import COLOURS, INK, PAPER, SIZE, Asked, sheet, write

TOLERANCE = 0.05
_LONG = (
    "The {} bar lies along a ruler with centimetres. How long is the bar, in cm?",
    "By the ruler below it, what is the length of the {} bar in cm?",
)
_FAST = (
    "Which speed does the dial of the {} show, in km/h?",
    "How fast is the {} by its dial, in km/h?",
)
_VEHICLES = ("tram", "van", "scooter", "bus", "tractor", "motorcycle", "lorry", "taxi")
_ROOMS = ("cellar", "greenhouse", "workshop", "kitchen", "attic", "stable", "library", "garage")


def ruler(rng: Random, n: int) -> Asked:
    """How long a bar is that lies along a ruler, in cm."""
    on = sheet(rng)
    colour, step = tuple(COLOURS)[n % len(COLOURS)], rng.choice((26, 30, 34))
    x, y, n_cm = rng.randint(14, 30), rng.randint(120, 260), 420 // step
    start, length = rng.randint(0, 3), rng.randint(20, 10 * n_cm - 40) / 10
    on.draw.rectangle((x - 8, y, x + n_cm * step + 8, y + 46), fill=PAPER, outline=INK)
    for tenth in range(10 * n_cm + 1):
        at = x + tenth * step / 10
        on.draw.line((at, y, at, y + (18 if tenth % 10 == 0 else 12 if tenth % 5 == 0 else 6)), fill=INK)
        if tenth % 10 == 0:
            write(on.draw, (at, y + 32), str(tenth // 10), 13)
    box = Box(round(x + start * step), y - 24, round(x + (start + length) * step), y - 4)
    on.draw.rectangle((box.x1, box.y1, box.x2 - 1, box.y2 - 1), fill=COLOURS[colour])
    question = _LONG[n // len(COLOURS) % 2].format(colour)
    return Asked(on.picture, question, Choices((), f"{length:g} cm"), "measure", ("bar", box), on.license, _read("cm"))


def dial(rng: Random, n: int) -> Asked:
    """Which speed a dial shows, in km/h."""
    on = sheet(rng)
    radius, top = rng.choice((44, 80, 130)), rng.choice((80, 100, 120, 160))
    x, y = rng.randint(radius + 8, SIZE[0] - radius - 8), rng.randint(radius + 8, SIZE[1] - radius - 8)
    speed = rng.randint(top // 5, top - 2)
    on.draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=PAPER, outline=INK, width=3)
    for mark in range(0, top + 1, 10):
        inner = 0.82 if mark % 20 == 0 else 0.9
        on.draw.line((*_spoke(x, y, radius * inner, mark / top), *_spoke(x, y, radius * 0.97, mark / top)), fill=INK)
        if mark % 20 == 0:
            write(on.draw, _spoke(x, y, radius * 0.68, mark / top), str(mark), max(8, radius // 9))
    on.draw.line((x, y, *_spoke(x, y, radius * 0.85, speed / top)), fill=COLOURS["red"], width=3)
    vehicle = _VEHICLES[n % len(_VEHICLES)]
    question = _FAST[n // len(_VEHICLES) % 2].format(vehicle)
    box = Box(x - radius, y - radius, x + radius + 1, y + radius + 1)
    return Asked(
        on.picture, question, Choices((), f"{speed} km/h"), "measure", ("dial", box), on.license, _read("km/h")
    )


def thermometer(rng: Random, n: int) -> Asked:
    """How warm a thermometer says that it is, in degrees Celsius."""
    on = sheet(rng)
    step, warmth = rng.choice((3, 5, 6)), rng.randint(8, 38)
    x, bottom = rng.randint(60, SIZE[0] - 60), rng.randint(45 * step + 30, SIZE[1] - 30)
    on.draw.rectangle((x - 32, bottom - 42 * step, x + 32, bottom + 24), fill=PAPER, outline=INK)
    for degree in range(0, 41):
        y, long = bottom - degree * step, degree % 10 == 0
        on.draw.line((x + 4, y, x + (14 if long else 9), y), fill=INK)
        if long:
            write(on.draw, (x + 23, y), str(degree), 9)
    box = Box(x - 4, bottom - warmth * step, x + 4, bottom + 12)
    on.draw.rectangle((box.x1, box.y1, box.x2 - 1, box.y2 - 1), fill=COLOURS["red"])
    question = f"A thermometer hangs in the {_ROOMS[n % len(_ROOMS)]}. What does it read, in °C?"
    return Asked(on.picture, question, Choices((), f"{warmth} °C"), "measure", ("column", box), on.license, _read("°C"))


def _read(unit: str) -> dict[str, object]:
    return {"tolerance": TOLERANCE, "unit": unit}


def _spoke(x: float, y: float, radius: float, share: float) -> tuple[float, float]:
    """A place on the dial: three quarters of the way round, from the lower left."""
    angle = math.radians(135 + 270 * share)
    return x + radius * math.cos(angle), y + radius * math.sin(angle)
