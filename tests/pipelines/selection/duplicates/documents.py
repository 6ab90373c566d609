"""Documents of one template that are different images, and what people do to an image that stays the same.

    python -m tests.pipelines.selection.duplicates.documents            # cases written before the code (SEEN)
    python -m tests.pipelines.selection.duplicates.documents held_out  # or held_out_later

A kind is one template; its items differ in what is filled in, drawn or marked. The sets share no kind. Prints of
each set how many distinct images are taken for another, and of every change how many changed ones are found.
"""

from __future__ import annotations

import io
import random
import sys
from collections.abc import Callable, Iterator

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageOps

from darkroom.pipelines.demo.images.material import font, photograph_image
from darkroom.pipelines.selection.duplicates.look_search import near_looks
from darkroom.pipelines.selection.duplicates.looks import look_of

NAMES = ("Maria Keller", "Jon Aldrich", "Amina Yusuf", "Pavel Novak", "Lena Sorensen", "Tom Okafor", "Ines Duarte")
STREETS = ("Mill Lane", "Harbour Road", "Station Street", "Oak Avenue", "Bridge Row", "Church Walk", "North Parade")
WORDS = (
    "north",
    "south",
    "mill",
    "harbour",
    "depot",
    "union",
    "valley",
    "bridge",
    "garden",
    "market",
    "park",
    "river",
    "stone",
    "copper",
    "linen",
    "cedar",
)
INK = ((25, 30, 110), (20, 20, 30), (60, 20, 90), (10, 60, 120))


def hand(image: Image.Image, at: tuple[float, float], text: str, chance: random.Random, height: float = 24) -> None:
    """Writing: Hershey's script, slanted, uneven, in ink."""
    pixels = np.asarray(image).copy()
    face = chance.choice((cv2.FONT_HERSHEY_SCRIPT_SIMPLEX, cv2.FONT_HERSHEY_SCRIPT_COMPLEX))
    x, colour, scale = at[0], chance.choice(INK), height / 28 * chance.uniform(0.85, 1.15)
    for letter in text:
        place = (round(x), round(at[1] + height + chance.uniform(-2, 2)))
        cv2.putText(pixels, letter, place, face, scale, colour, chance.choice((1, 2)), cv2.LINE_AA)
        x += cv2.getTextSize(letter, face, scale, 1)[0][0] + chance.uniform(-1, 2)
    image.paste(Image.fromarray(pixels))


def _filling(chance: random.Random) -> list[str]:
    day, house, number = chance.randint(1, 28), chance.randint(1, 220), chance.randint(100000, 999999)
    month, year = chance.randint(1, 12), chance.randint(1950, 2024)
    return [
        chance.choice(NAMES),
        f"{house} {chance.choice(STREETS)}",
        f"{day:02}/{month:02}/{year}",
        str(number),
        f"{chance.randint(20, 990)}.{chance.randint(0, 99):02}",
        " ".join(chance.sample(WORDS, 3)),
    ]


def _lined(title: str, labels: tuple[str, ...], chance: random.Random) -> Image.Image:
    """A form with a line for each field."""
    image = Image.new("RGB", (850, 1100), "white")
    draw, letters = ImageDraw.Draw(image), font("DejaVuSans", 18)
    draw.text((60, 50), title, "black", font("DejaVuSans-Bold", 30))
    draw.text((60, 96), "Please write clearly and in capital letters. Return this form by post.", "black", letters)
    for n, (label, value) in enumerate(zip(labels, _filling(chance), strict=True)):
        y = 170 + 120 * n
        draw.text((60, y), f"{n + 1}. {label}", "black", letters)
        draw.line((60, y + 76, 790, y + 76), "black", 2)
        hand(image, (90, y + 32), value, chance, 30)
    draw.text((60, 1010), "Signed:", "black", letters)
    hand(image, (180, 990), chance.choice(NAMES), chance, 34)
    return image


def _boxed(title: str, labels: tuple[str, ...], chance: random.Random) -> Image.Image:
    """A form of boxes with much print and little writing."""
    image = Image.new("RGB", (900, 640), (250, 248, 238))
    draw, letters, small = ImageDraw.Draw(image), font("DejaVuSans", 14), font("DejaVuSans", 11)
    draw.rectangle((0, 0, 900, 60), fill=(30, 70, 120))
    draw.text((30, 14), title, "white", font("DejaVuSans-Bold", 26))
    for n, (label, value) in enumerate(zip(labels, _filling(chance), strict=True)):
        x, y = 30 + 430 * (n % 2), 90 + 110 * (n // 2)
        draw.rectangle((x, y, x + 410, y + 90), outline="black", width=2)
        draw.text((x + 8, y + 4), label, "black", letters)
        hand(image, (x + 20, y + 36), value, chance, 22)
    for n in range(8):
        note = "The information above is kept for five years and is shared with nobody outside of this office"
        draw.text((30, 430 + 22 * n), f"§{n + 1} {note}, as section {n + 11} provides.", "black", small)
    return image


def _scanned(form: Image.Image, chance: random.Random) -> Image.Image:
    """On paper, under uneven light."""
    rng = np.random.default_rng(chance.randrange(2**32))
    turned = form.rotate(chance.uniform(-0.6, 0.6), Image.Resampling.BICUBIC, fillcolor=(245, 243, 236))
    light = np.linspace(chance.uniform(0.8, 0.9), 1, form.width)[None, :, None]
    pixels = np.asarray(turned) * light + rng.normal(0, 4, (form.height, form.width, 1))
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


FIELDS = ("Name", "Address", "Date of birth", "Number", "Amount", "Remarks")


def _bars(title: str, n: int, *, values: bool, colour: str, chance: random.Random) -> Image.Image:
    image = Image.new("RGB", (720, 480), "white")
    draw, small = ImageDraw.Draw(image), font("DejaVuSans", 14)
    draw.text((60, 16), title, "black", font("DejaVuSans-Bold", 20))
    draw.line((60, 60, 60, 420, 690, 420), "black", 2)
    for tick in range(0, 101, 20):
        draw.text((28, 410 - tick * 3.4), str(tick), "black", small)
        draw.line((60, 420 - tick * 3.4, 690, 420 - tick * 3.4), (220, 220, 220))
    step = 620 / n
    for at in range(n):
        value = chance.randint(10, 99)
        draw.rectangle((70 + step * at, 420 - 3.4 * value, 60 + step * (at + 0.7), 419), colour)
        draw.text((74 + step * at, 428), WORDS[at], "black", small)
        if values:
            draw.text((76 + step * at, 400 - 3.4 * value), str(value), "black", small)
    return image


def _one_bar(chance: random.Random) -> Image.Image:
    """All bars alike but for one."""
    other, state = chance.randint(0, 5), random.Random(5)
    image = _bars("Visitors by gate", 6, values=True, colour="seagreen", chance=state)
    draw, value, x = ImageDraw.Draw(image), chance.randint(10, 99), 70 + 620 / 6 * other
    draw.rectangle((x - 6, 64, x + 74, 418), "white")
    draw.rectangle((x, 420 - 3.4 * value, x + 62, 419), "seagreen")
    draw.text((x + 6, 400 - 3.4 * value), str(value), "black", font("DejaVuSans", 14))
    return image


def _letter(chance: random.Random) -> Image.Image:
    """A page of one letter-head."""
    image = Image.new("RGB", (760, 1000), "white")
    draw, letters = ImageDraw.Draw(image), font("DejaVuSerif", 16)
    draw.text((60, 40), "Harbour & Sons, Shipping Agents", "black", font("DejaVuSerif-Bold", 28))
    draw.text((60, 80), "12 Quay Street · telephone 555 0199 · established 1887", "black", letters)
    draw.line((60, 110, 700, 110), "black", 2)
    for n in range(30):
        draw.text((60, 140 + 26 * n), " ".join(chance.choice(WORDS) for _ in range(10)), "black", letters)
    return image


def _streets(seed: int) -> Image.Image:
    image, state = Image.new("RGB", (800, 600), (238, 235, 226)), random.Random(seed)
    draw = ImageDraw.Draw(image)
    draw.polygon([(0, 400), (260, 360), (420, 480), (800, 430), (800, 520), (400, 560), (0, 490)], (170, 205, 230))
    for _ in range(26):
        x, y = state.randint(0, 800), state.randint(0, 600)
        draw.line((x, 0, x + state.randint(-200, 200), 600), "white", state.choice((4, 8)))
        draw.line((0, y, 800, y + state.randint(-120, 120)), (252, 240, 190), state.choice((4, 8)))
    for _ in range(16):
        draw.text((state.randint(0, 700), state.randint(0, 570)), state.choice(STREETS), "grey", font("DejaVuSans", 13))
    return image


def _marked_map(chance: random.Random) -> Image.Image:
    """One town, other places marked."""
    image = _streets(1)
    draw = ImageDraw.Draw(image)
    for n in range(5):
        x, y = chance.randint(30, 740), chance.randint(30, 540)
        draw.ellipse((x - 13, y - 13, x + 13, y + 13), fill=(210, 40, 40), outline="black")
        draw.text((x - 5, y - 9), "ABCDE"[n], "white", font("DejaVuSans-Bold", 15))
    return image


def _regions(chance: random.Random) -> Image.Image:
    """One country, other figures: shades of the regions, and the figures on them."""
    image, state = Image.new("RGB", (700, 560), "white"), random.Random(9)
    draw = ImageDraw.Draw(image)
    columns, rows = [20, 150, 300, 430, 560, 680], [60, 180, 300, 420, 540]
    corners = [[(x + state.randint(-25, 25), y + state.randint(-25, 25)) for x in columns] for y in rows]
    draw.text((20, 10), "Unemployment by region, per cent", "black", font("DejaVuSans-Bold", 20))
    for row in range(4):
        for column in range(5):
            value = chance.randint(20, 99)
            around = [corners[row][column], corners[row][column + 1], corners[row + 1][column + 1]]
            draw.polygon([*around, corners[row + 1][column]], (255 - 2 * value, 255 - value, 255), "black")
            x, y = corners[row][column]
            draw.text((x + 45, y + 48), f"{value / 10}", "black", font("DejaVuSans", 16))
    return image


def _receipt(chance: random.Random) -> Image.Image:
    image = Image.new("RGB", (420, 800), (250, 250, 248))
    draw, letters = ImageDraw.Draw(image), font("DejaVuSansMono", 16)
    draw.text((90, 20), "CORNER MARKET", "black", font("DejaVuSansMono-Bold", 24))
    draw.text((60, 60), "Open every day from 7 to 22", "black", letters)
    draw.line((20, 100, 400, 100), "black", 2)
    for n in range(14):
        price = f"{chance.randint(1, 30)}.{chance.randint(0, 99):02}"
        draw.text((20, 120 + 36 * n), f"{chance.choice(WORDS):<12}", "black", letters)
        draw.text((320, 120 + 36 * n), f"{price:>6}", "black", letters)
    draw.text((20, 660), "TOTAL        thank you, come again", "black", letters)
    return image


def _points(chance: random.Random) -> Image.Image:
    image = Image.new("RGB", (640, 480), "white")
    draw = ImageDraw.Draw(image)
    draw.text((140, 12), "Height and weight of participants", "black", font("DejaVuSans-Bold", 18))
    draw.line((60, 50, 60, 430, 610, 430), "black", 2)
    for n in range(8):
        draw.text((56 + 70 * n, 436), str(140 + 8 * n), "black", font("DejaVuSans", 13))
    for _ in range(40):
        x, y = chance.randint(75, 600), chance.randint(60, 420)
        draw.ellipse((x - 5, y - 5, x + 5, y + 5), "darkorange", "black")
    return image


def _pie(chance: random.Random) -> Image.Image:
    image, start = Image.new("RGB", (600, 480), "white"), 0.0
    draw = ImageDraw.Draw(image)
    draw.text((150, 14), "Spending of the household", "black", font("DejaVuSans-Bold", 20))
    cuts = sorted(chance.sample(range(20, 341), 5))
    colours = ("steelblue", "darkorange", "seagreen", "firebrick", "mediumpurple", "gold")
    for n, (end, colour) in enumerate(zip([*cuts, 360], colours, strict=True)):
        draw.pieslice((60, 70, 420, 430), start, end, colour, "white")
        draw.rectangle((450, 120 + 40 * n, 470, 140 + 40 * n), colour)
        draw.text((480, 120 + 40 * n), f"{WORDS[n]} {(end - start) / 3.6:.0f} %", "black", font("DejaVuSans", 15))
        start = float(end)
    return image


def _weather(chance: random.Random) -> Image.Image:
    """One coast, other temperatures and signs."""
    image = Image.new("RGB", (720, 560), (180, 212, 238))
    draw = ImageDraw.Draw(image)
    coast = [(120, 60), (400, 40), (620, 160), (580, 330), (650, 470), (400, 530), (220, 460), (80, 300)]
    draw.polygon(coast, (205, 222, 170), "black")
    places = [(220, 120), (420, 110), (540, 200), (330, 250), (200, 320), (480, 350), (360, 450)]
    for n, (x, y) in enumerate(places):
        draw.text((x - 20, y + 20), WORDS[n].title(), "black", font("DejaVuSans", 14))
        draw.text((x + 14, y - 12), f"{chance.randint(-5, 35)}°", "black", font("DejaVuSans-Bold", 22))
        colour = chance.choice(("gold", "grey", "white", "royalblue"))
        draw.ellipse((x - 22, y - 14, x + 6, y + 14), colour, "black")
    return image


def _exam(chance: random.Random) -> Image.Image:
    """One sheet of questions with other crosses."""
    image = Image.new("RGB", (800, 1000), "white")
    draw, letters = ImageDraw.Draw(image), font("DejaVuSans", 15)
    draw.text((50, 30), "Examination 2: mark one answer in every row", "black", font("DejaVuSans-Bold", 24))
    for row in range(18):
        y = 100 + 48 * row
        draw.text((50, y), f"{row + 1:2}. Which of these is called {WORDS[row % 16]}?", "black", letters)
        for column in range(4):
            x = 480 + 75 * column
            draw.rectangle((x, y, x + 22, y + 22), outline="black", width=2)
            draw.text((x + 28, y + 2), "ABCD"[column], "black", letters)
        x = 480 + 75 * chance.randint(0, 3)
        draw.line((x - 4, y - 4, x + 26, y + 26), (20, 30, 120), 4)
        draw.line((x - 4, y + 26, x + 26, y - 4), (20, 30, 120), 4)
    return image


def _parcel(chance: random.Random) -> Image.Image:
    """A label of a parcel, photographed: grain, light and a turn."""
    image = Image.new("RGB", (700, 500), (236, 230, 214))
    draw, letters = ImageDraw.Draw(image), font("DejaVuSans-Bold", 18)
    draw.rectangle((20, 20, 680, 480), outline="black", width=4)
    draw.text((40, 36), "EXPRESS PARCEL SERVICE", "black", font("DejaVuSans-Bold", 32))
    for n, label in enumerate(("TO", "STREET", "WEIGHT", "No.")):
        draw.text((40, 120 + 85 * n), label, "black", letters)
        draw.line((150, 165 + 85 * n, 660, 165 + 85 * n), "black", 2)
    name, street, _, number, weight, _ = _filling(chance)
    for n, value in enumerate((name, street, f"{weight} kg", number)):
        hand(image, (170, 115 + 85 * n), value, chance, 32)
    return _scanned(image, chance)


def _calendar(chance: random.Random) -> Image.Image:
    """One month, other days marked and other notes."""
    image = Image.new("RGB", (840, 640), "white")
    draw, letters = ImageDraw.Draw(image), font("DejaVuSans", 15)
    draw.text((320, 16), "September 2025", "black", font("DejaVuSans-Bold", 24))
    for day in range(30):
        x, y = 20 + 115 * (day % 7), 70 + 110 * (day // 7)
        draw.rectangle((x, y, x + 112, y + 106), outline="grey")
        draw.text((x + 6, y + 4), str(day + 1), "black", letters)
    for day in chance.sample(range(30), 6):
        x, y = 20 + 115 * (day % 7), 70 + 110 * (day // 7)
        hand(image, (x + 6, y + 40), chance.choice(WORDS), chance, 20)
    return image


def _seats(chance: random.Random) -> Image.Image:
    """One hall, other seats taken."""
    image = Image.new("RGB", (760, 560), (245, 245, 245))
    draw = ImageDraw.Draw(image)
    draw.rectangle((180, 20, 580, 60), "grey")
    draw.text((350, 28), "STAGE", "white", font("DejaVuSans-Bold", 20))
    for row in range(9):
        draw.text((20, 100 + 48 * row), "ABCDEFGHI"[row], "black", font("DejaVuSans", 18))
        for column in range(12):
            x, y = 60 + 56 * column, 94 + 48 * row
            draw.rounded_rectangle(
                (x, y, x + 40, y + 36), 6, "firebrick" if chance.random() < 0.3 else "seagreen", "black"
            )
    return image


def _floor_plan(chance: random.Random) -> Image.Image:
    """One flat, other furniture."""
    image = Image.new("RGB", (800, 600), "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((40, 40, 760, 560), outline="black", width=8)
    for line in ((300, 40, 300, 330), (300, 330, 40, 330), (520, 560, 520, 260), (520, 260, 760, 260)):
        draw.line(line, "black", 6)
    for n, at in enumerate(((120, 50), (480, 50), (100, 350), (600, 280))):
        draw.text(at, ("Bedroom", "Living room", "Kitchen", "Bath")[n], "black", font("DejaVuSans", 18))
    for _ in range(7):
        x, y, size = chance.randint(60, 660), chance.randint(90, 480), chance.randint(30, 70)
        shape = chance.choice((draw.ellipse, draw.rectangle))
        shape((x, y, x + size, y + size * 2 // 3), (225, 215, 200), "black", 2)
    return image


def _time_sheet(chance: random.Random) -> Image.Image:
    """A table of hours, by hand."""
    image = Image.new("RGB", (780, 700), "white")
    draw, letters = ImageDraw.Draw(image), font("DejaVuSans", 15)
    draw.text((40, 20), "Weekly time sheet, Department of Works", "black", font("DejaVuSans-Bold", 22))
    for row in range(8):
        for column in range(4):
            x, y = 40 + 175 * column, 80 + 72 * row
            draw.rectangle((x, y, x + 175, y + 72), outline="black")
            if not row or not column:
                days = ("Day", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
                draw.text(
                    (x + 10, y + 10), days[row] if not column else ("", "From", "To", "Hours")[column], "black", letters
                )
            else:
                value = f"{chance.randint(6, 19)}:{chance.choice(('00', '15', '30', '45'))}"
                hand(image, (x + 30, y + 24), value, chance, 24)
    return image


def _crossword(chance: random.Random) -> Image.Image:
    """One grid, other letters."""
    image, state = Image.new("RGB", (640, 640), "white"), random.Random(4)
    draw, letters = ImageDraw.Draw(image), font("DejaVuSans", 26)
    for row in range(12):
        for column in range(12):
            x, y = 20 + 50 * column, 20 + 50 * row
            is_black = state.random() < 0.2
            draw.rectangle((x, y, x + 50, y + 50), "black" if is_black else None, "black")
            if not is_black:
                draw.text((x + 14, y + 10), chance.choice("ABCDEFGHIKLMNOPRSTUVW"), "black", letters)
    return image


def _identity_card(chance: random.Random) -> Image.Image:
    """One card, other people: print and a drawn portrait."""
    image = Image.new("RGB", (640, 400), (214, 226, 240))
    draw, letters = ImageDraw.Draw(image), font("DejaVuSans", 18)
    draw.rectangle((0, 0, 640, 56), fill=(20, 60, 110))
    draw.text((20, 12), "CITY LIBRARY · MEMBER CARD", "white", font("DejaVuSans-Bold", 24))
    draw.rectangle((30, 90, 200, 320), "white", "black")
    tone = tuple(chance.randint(90, 220) for _ in range(3))
    draw.ellipse((75, 120 + chance.randint(0, 20), 155, 230), tone, "black")
    draw.pieslice((50, 230, 180, 390), 180, 360, tuple(chance.randint(20, 200) for _ in range(3)))
    name, street, date, number, _, _ = _filling(chance)
    for n, (label, value) in enumerate((("Name", name), ("Address", street), ("Born", date), ("Number", number))):
        draw.text((230, 90 + 62 * n), label, "grey", font("DejaVuSans", 13))
        draw.text((230, 108 + 62 * n), value, "black", letters)
    return image


def _lines(chance: random.Random) -> Image.Image:
    """Three lines over twelve months."""
    image = Image.new("RGB", (720, 460), "white")
    draw, small = ImageDraw.Draw(image), font("DejaVuSans", 13)
    draw.text((200, 10), "Rainfall at three stations, in mm", "black", font("DejaVuSans-Bold", 18))
    draw.rectangle((60, 50, 690, 410), outline="black")
    for n, month in enumerate("JFMAMJJASOND"):
        draw.text((80 + 53 * n, 416), month, "black", small)
    for n, colour in enumerate(("steelblue", "firebrick", "seagreen")):
        level, points = chance.randint(100, 360), []
        for month in range(12):
            level = min(400, max(60, level + chance.randint(-70, 70)))
            points.append((84 + 53 * month, level))
        draw.line(points, colour, 3)
        draw.text((620, 60 + 18 * n), WORDS[n], colour, small)
    return image


def _survey(chance: random.Random) -> Image.Image:
    """One questionnaire: circles around one of five answers, and a written remark."""
    image = Image.new("RGB", (820, 1000), "white")
    draw, letters = ImageDraw.Draw(image), font("DejaVuSans", 16)
    draw.text((50, 30), "How satisfied are you with our service?", "black", font("DejaVuSans-Bold", 26))
    for row in range(12):
        y = 110 + 58 * row
        draw.text((50, y), f"{row + 1}. The {WORDS[row]} was clean and easy to reach", "black", letters)
        for column in range(5):
            draw.text((520 + 56 * column, y), str(column + 1), "black", letters)
        x = 520 + 56 * chance.randint(0, 4)
        draw.ellipse((x - 14, y - 9, x + 24, y + 29), outline=(30, 40, 140), width=3)
    hand(image, (60, 860), " ".join(chance.sample(WORDS, 4)), chance, 30)
    return image


SEEN: dict[str, tuple[int, Callable[[random.Random], Image.Image]]] = {
    "lined form": (12, lambda chance: _lined("Application for a library card", FIELDS, chance)),
    "boxed form": (12, lambda chance: _boxed("Claim for travel expenses", FIELDS, chance)),
    "scanned form": (12, lambda chance: _scanned(_lined("Registration of a bicycle", FIELDS, chance), chance)),
    "eight bars": (16, lambda chance: _bars("Sales by branch", 8, values=False, colour="steelblue", chance=chance)),
    "four bars": (16, lambda chance: _bars("Votes by party", 4, values=True, colour="firebrick", chance=chance)),
    "one other bar": (12, _one_bar),
    "letters": (12, _letter),
    "marked map": (12, _marked_map),
    "regions": (12, _regions),
}
HELD_OUT: dict[str, tuple[int, Callable[[random.Random], Image.Image]]] = {
    "receipt": (12, _receipt),
    "exam sheet": (12, _exam),
    "parcel label": (12, _parcel),
    "scanned boxed form": (12, lambda chance: _scanned(_boxed("Change of address", FIELDS, chance), chance)),
    "points": (16, _points),
    "pie": (16, _pie),
    "weather map": (12, _weather),
    "calendar": (12, _calendar),
    "seats": (12, _seats),
    "floor plan": (12, _floor_plan),
}
"""Looked at once, and ``_INK`` was made stricter for the exam sheets."""
HELD_OUT_LATER: dict[str, tuple[int, Callable[[random.Random], Image.Image]]] = {
    "time sheet": (12, _time_sheet),
    "crossword": (12, _crossword),
    "identity card": (12, _identity_card),
    "lines": (16, _lines),
    "scanned survey": (12, lambda chance: _scanned(_survey(chance), chance)),
}
"""Drawn when nothing was changed any more."""


def items(kinds: dict[str, tuple[int, Callable[[random.Random], Image.Image]]]) -> Iterator[tuple[str, Image.Image]]:
    """Every image of every kind, each another one."""
    for kind, (n, drawn) in kinds.items():
        for seed in range(n):
            yield kind, drawn(random.Random(f"{kind} {seed}"))


def _jpeg(image: Image.Image, quality: int) -> Image.Image:
    file = io.BytesIO()
    image.convert("RGB").save(file, "JPEG", quality=quality)
    return Image.open(file).convert("RGB")


def _captioned(image: Image.Image) -> Image.Image:
    copy = image.copy()
    draw, size = ImageDraw.Draw(copy), max(12, image.width // 18)
    draw.rectangle(
        (image.width // 3, image.height // 2, image.width // 3 + 8 * size, image.height // 2 + 2 * size), "black"
    )
    draw.text(
        (image.width // 3 + size, image.height // 2 + size // 2), "SAMPLE 2026", "white", font("DejaVuSans", size)
    )
    return copy


def _cut(image: Image.Image, share: float) -> Image.Image:
    left, top = round(image.width * share / 3), round(image.height * share * 2 / 3)
    return image.crop((left, top, left + round(image.width * (1 - share)), top + round(image.height * (1 - share))))


CHANGES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "JPEG 40": lambda image: _jpeg(image, 40),
    "half the size": lambda image: image.resize((image.width // 2, image.height // 2), Image.Resampling.BILINEAR),
    "larger, JPEG": lambda image: _jpeg(image.resize((image.width * 5 // 4, image.height * 5 // 4)), 75),
    "cut by 3 %": lambda image: _cut(image, 0.03),
    "cut by 8 %": lambda image: _cut(image, 0.08),
    "brighter": lambda image: ImageEnhance.Brightness(image).enhance(1.25),
    "darker, contrast": lambda image: ImageEnhance.Contrast(ImageEnhance.Brightness(image).enhance(0.8)).enhance(1.2),
    "turned by 1°": lambda image: image.rotate(1, Image.Resampling.BICUBIC, fillcolor=(255, 255, 255)),
    "caption": _captioned,
    "quarter turn": lambda image: image.rotate(90, expand=True),
    "bordered": lambda image: ImageOps.expand(image, border=max(image.size) // 20, fill=(40, 40, 40)),
}


def screenshot(image: Image.Image) -> Image.Image:
    """The image in a window on a desktop."""
    shown = image.resize((round(image.width * 420 / image.height), 420), Image.Resampling.BILINEAR)
    desktop = Image.new("RGB", (max(960, shown.width + 120), 600), (54, 92, 128))
    draw = ImageDraw.Draw(desktop)
    draw.rectangle((50, 60, 70 + shown.width, 580), (240, 240, 240))
    draw.rectangle((50, 60, 70 + shown.width, 96), (70, 70, 80))
    draw.text((70, 66), "Viewer: File  Edit  View  Help", "white", font("DejaVuSans", 18))
    desktop.paste(shown, (60, 120))
    return desktop


def collage(images: list[Image.Image]) -> Image.Image:
    """Four images in one."""
    sheet = Image.new("RGB", (1000, 800), "white")
    for n, image in enumerate(images):
        sheet.paste(ImageOps.contain(image, (480, 380)), (10 + 500 * (n % 2), 10 + 400 * (n // 2)))
    return sheet


def photographs() -> list[Image.Image]:
    return [photograph_image(name) for name in ("astronaut", "cat", "coffee", "rocket")]


def main(name: str = "seen") -> None:
    of_set = list(items({"seen": SEEN, "held_out": HELD_OUT, "held_out_later": HELD_OUT_LATER}[name]))
    looks = [look_of(image) for _, image in of_set]
    false = near_looks(looks)
    by_kind = {kind: sum(of_set[twin.index][0] == kind for twin in false) for kind, _ in of_set}
    print(f"{name}: {len(false)} of {len(of_set)} distinct images are taken for another;", by_kind)
    print("   of other kinds:", sum(of_set[twin.index][0] != of_set[twin.of][0] for twin in false))
    some = [(at, kind, image) for at, (kind, image) in enumerate(of_set) if at % 4 == 0]
    for change, changed in CHANGES.items():
        found = near_looks([*looks, *(look_of(changed(image)) for _, _, image in some)])
        right = {
            twin.index for twin in found if twin.index >= len(looks) and twin.of == some[twin.index - len(looks)][0]
        }
        hit = {twin.index for twin in found if twin.index >= len(looks)}
        missed = [some[at][1] for at in range(len(some)) if len(looks) + at not in right]
        print(
            f"   {change}: {len(right)} of {len(some)} found, {len(hit) - len(right)} as another;", missed, flush=True
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
