"""Print and scales to be read (rulers, dials and thermometers within five per cent), places and ways to be found."""

import math
from itertools import permutations
from random import Random

from PIL import Image, ImageOps

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.images.material import PHOTOGRAPHS, font, joint_license, lettered, photograph_image
from darkroom.pipelines.demo.rl_questions.questions import (
    COLOURS,
    INK,
    PAINTS,
    PAPER,
    SHOWN,
    SIZE,
    DrawnQuestion,
    Sheet,
    sheet,
    write,
)
from darkroom.pipelines.records.geometry import Box

_WORDS = data_beside(__file__)
_PRINT = (9, 12, 18, 30, 46)
"""Heights of letters, in pixels."""
_PAIRS = tuple(permutations(("red", "blue", "green", "violet"), 2))


def plate(rng: Random, n: int) -> DrawnQuestion:
    """Text of a plate: a word, a code, or both."""
    on = sheet(rng)
    colour, second_colour = _PAIRS[n % len(_PAIRS)]
    text, beside = _text(rng, n), _text(rng, n + 1)
    box = _hang(on, text, colour, _PRINT[n % 5], rng, upper=bool(n % 2))
    _hang(on, beside, second_colour, 14, rng, upper=not n % 2)
    wordings = _WORDS["plate"]
    question = wordings[(n + n // len(_PAIRS)) % len(wordings)].format(colour=colour, other=second_colour)
    return on.asks(question, text, "OCR", (f"{colour} plate", box))


def board(rng: Random, n: int) -> DrawnQuestion:
    """Goods that a board lists, from top to bottom."""
    on, heading = sheet(rng), _WORDS["headings"][n % 4]
    goods = rng.sample(_WORDS["goods"], 3 + n % 3)
    size = (12, 17, 24)[n % 3]
    wide, high = size * 8, (len(goods) + 1) * size * 2
    x, y = rng.randint(4, SIZE[0] - wide - 4), rng.randint(4, SIZE[1] - high - 4)
    on.draw.rectangle((x, y, x + wide - 1, y + high - 1), fill=PAPER, outline=INK, width=2)
    write(on.draw, (x + wide / 2, y + size), heading, size)
    for place, word in enumerate(goods, 1):
        write(on.draw, (x + wide / 2, y + size * (2 * place + 1)), word, size)
    question = f"Which {len(goods)} things does the board name below {heading}, from top to bottom?"
    target, grader = ("board", Box(x, y, x + wide, y + high)), {"kind": "list", "is_ordered": True}
    return on.asks(question, ", ".join(goods), "list", target, grader=grader)


def _text(rng: Random, n: int) -> str:
    code = f"{rng.choice('BDFHKMRTX')}{rng.randrange(10, 99)}-{rng.randrange(100, 999)}"
    word = rng.choice(_WORDS["words"])
    return (word, code, f"{word} {rng.randrange(11, 99)}")[n % 3]


def _hang(on: Sheet, text: str, colour: str, size: int, rng: Random, *, upper: bool) -> Box:
    """Puts a plate into the upper or the lower half; where it is."""
    wide = round(font("DejaVuSans-Bold", size).getlength(text)) + size
    high = size * 2
    half = SIZE[1] // 2
    x = rng.randint(2, max(2, SIZE[0] - wide - 2))
    y = rng.randint(2, half - high - 2) + (0 if upper else half)
    box = on.bar((x, y, min(x + wide, SIZE[0]), y + high), colour)
    write(on.draw, ((box.x1 + box.x2) / 2, (box.y1 + box.y2) / 2), text, size, PAPER)
    return box


TOLERANCE = 0.05


def ruler(rng: Random, n: int) -> DrawnQuestion:
    """Length of a bar along a ruler, in cm."""
    on = sheet(rng)
    colour, step = PAINTS[n % len(PAINTS)], rng.choice((26, 30, 34))
    x, y, n_cm = rng.randint(14, 30), rng.randint(120, 260), 420 // step
    start, length = rng.randint(0, 3), rng.randint(20, 10 * n_cm - 40) / 10
    on.draw.rectangle((x - 8, y, x + n_cm * step + 8, y + 46), fill=PAPER, outline=INK)
    for tenth in range(10 * n_cm + 1):
        at = x + tenth * step / 10
        on.draw.line((at, y, at, y + (18 if tenth % 10 == 0 else 12 if tenth % 5 == 0 else 6)), fill=INK)
        if tenth % 10 == 0:
            write(on.draw, (at, y + 32), str(tenth // 10), 13)
    box = on.bar((round(x + start * step), y - 24, round(x + (start + length) * step), y - 4), colour)
    question = _WORDS["ruler"][n // len(COLOURS) % 2].format(colour)
    return on.asks(question, f"{length:g} cm", "measure", ("bar", box), tolerance=TOLERANCE, unit="cm")


def dial(rng: Random, n: int) -> DrawnQuestion:
    """Speed that a dial shows, in km/h."""
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
    vehicles = _WORDS["vehicles"]
    question = _WORDS["dial"][n // len(vehicles) % 2].format(vehicles[n % len(vehicles)])
    box = Box(x - radius, y - radius, x + radius + 1, y + radius + 1)
    return on.asks(question, f"{speed} km/h", "measure", ("dial", box), tolerance=TOLERANCE, unit="km/h")


def thermometer(rng: Random, n: int) -> DrawnQuestion:
    """Temperature that a thermometer shows, in degrees Celsius."""
    on = sheet(rng)
    step, warmth = rng.choice((3, 5, 6)), rng.randint(8, 38)
    x, bottom = rng.randint(60, SIZE[0] - 60), rng.randint(45 * step + 30, SIZE[1] - 30)
    on.draw.rectangle((x - 32, bottom - 42 * step, x + 32, bottom + 24), fill=PAPER, outline=INK)
    for degree in range(0, 41):
        y, long = bottom - degree * step, degree % 10 == 0
        on.draw.line((x + 4, y, x + (14 if long else 9), y), fill=INK)
        if long:
            write(on.draw, (x + 23, y), str(degree), 9)
    box = on.bar((x - 4, bottom - warmth * step, x + 4, bottom + 12), "red")
    room = _WORDS["rooms"][n % len(_WORDS["rooms"])]
    question = f"A thermometer hangs in the {room}. What does it read, in °C?"
    return on.asks(question, f"{warmth} °C", "measure", ("column", box), tolerance=TOLERANCE, unit="°C")


def _spoke(x: float, y: float, radius: float, share: float) -> tuple[float, float]:
    """A place on the dial: three quarters of the way round, from the lower left."""
    angle = math.radians(135 + 270 * share)
    return x + radius * math.cos(angle), y + radius * math.sin(angle)


_PLACES = ("upper left", "upper right", "lower left", "lower right")


def place_of_a_photograph(rng: Random, n: int) -> DrawnQuestion:
    """In which of four places a photograph is."""
    image, names, boxes, licence = _drawn(rng, 2, n)
    at = names.index(SHOWN[n % len(SHOWN)])
    choices = lettered(_PLACES[at], [place for place in _PLACES if place != _PLACES[at]], place=n, rng=rng)
    phrase = PHOTOGRAPHS[names[at]].phrase
    others = PHOTOGRAPHS[names[(at + 1) % 4]].phrase
    question = f"Where on this sheet is the picture of {phrase}, if one of {others} is beside it?"
    return DrawnQuestion(image, question, choices, "location", licence, target=(phrase, boxes[at]))


def box_of_a_photograph(rng: Random, n: int) -> DrawnQuestion:
    image, names, boxes, licence = _drawn(rng, 2 + n % 2, n)
    at = names.index(SHOWN[n % len(SHOWN)])
    phrase = PHOTOGRAPHS[names[at]].phrase
    question = f"Give the bounding box of the photograph of {phrase} on this sheet, as [x1, y1, x2, y2] in pixels."
    return DrawnQuestion(image, question, str(list(boxes[at])), "location", licence, target=(phrase, boxes[at]))


def _drawn(rng: Random, columns: int, n: int) -> tuple[Image.Image, list[str], list[Box], str]:
    """Two rows of photographs, the ``n``-th among them, on a light or a dark ground; their names and boxes."""
    size = (480, 400)
    image = Image.new("RGB", size, INK if n % 2 else PAPER)
    target = SHOWN[n % len(SHOWN)]
    names = [target, *rng.sample([name for name in SHOWN if name != target], 2 * columns - 1)]
    rng.shuffle(names)
    wide, high, boxes = size[0] // columns, size[1] // 2, []
    for place, name in enumerate(names):
        width, height = rng.randint(wide * 5 // 8, wide - 8), rng.randint(high * 5 // 8, high - 8)
        x = place % columns * wide + rng.randint(4, wide - width - 4)
        y = place // columns * high + rng.randint(4, high - height - 4)
        image.paste(ImageOps.fit(photograph_image(name), (width, height), Image.Resampling.BILINEAR), (x, y))
        boxes.append(Box(x, y, x + width, y + height))
    return image, names, boxes, joint_license(PHOTOGRAPHS[name].license for name in names)


_STEPS = {"right": (1, 0), "left": (-1, 0), "up": (0, -1), "down": (0, 1)}
_TURNS = {"right": ("up", "down"), "left": ("up", "down"), "up": ("left", "right"), "down": ("left", "right")}


def route(rng: Random, n: int) -> DrawnQuestion:
    """Route of three legs from its dot to its cross."""
    on, first = sheet(rng), tuple(_STEPS)[n % 4]
    second = rng.choice(_TURNS[first])
    legs = (first, second, rng.choice(_TURNS[second]))
    places = [(0, 0)]
    for leg, length in zip(legs, (rng.randint(2, 3), 2, rng.randint(1, 2)), strict=True):
        (x, y), (right, down) = places[-1], _STEPS[leg]
        places.append((x + right * length, y + down * length))
    middle = [(min(along) + max(along)) / 2 for along in zip(*places, strict=True)]
    line = [(240 + (x - middle[0]) * 56, 180 + (y - middle[1]) * 56) for x, y in places]
    paint = PAINTS[n % len(PAINTS)]
    on.draw.line(line, fill=COLOURS[paint], width=6)
    (x, y), end = line[0], line[-1]
    on.draw.ellipse((x - 9, y - 9, x + 9, y + 9), fill=INK)
    write(on.draw, end, "×", 34)
    question = f"Describe in one sentence how the {paint} route runs from the dot to the cross."
    answer = "It goes {}, turns {} after that and at the end runs {} until the cross.".format(*legs)
    return on.asks(question, answer, "description", grader={"kind": "judged"})
