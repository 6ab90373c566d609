"""The small things that a scene's question is about: plates, tags, signs, badges, clocks, dotted cards, bar cards. Each
is drawn at ``DETAIL`` times its size and reduced; its text is 15 to 20 pixels high, so that it can be read at native
resolution and cannot in an overview of 640 pixels."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import NamedTuple

from PIL import Image, ImageChops, ImageDraw

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.images.material import font, texture

Colour = tuple[int, int, int]
DETAIL = 3
BOLD = "DejaVuSans-Bold"
INK: Colour = (38, 33, 30)
WORDS = data_beside(__file__)
COLOURS: dict[str, Colour] = {name: tuple(rgb) for name, rgb in WORDS["colours"].items()}
ENAMELS: dict[str, Colour] = {name: tuple(rgb) for name, rgb in WORDS["enamels"].items()}


class Target(NamedTuple):
    """A drawn thing (RGBA, cropped to what is drawn), what it is, what a question asks of it, how it is named."""

    image: Image.Image
    label: str
    value: str
    look: str
    options: tuple[str, ...] = ()


def plates(rng: Random, n: int) -> list[Target]:
    """Engraved number plates of one metal, four digits each."""
    metals = (((196, 164, 98), (74, 54, 22)), ((188, 190, 192), (62, 64, 70)), ((226, 222, 210), INK))
    metal, engraving = rng.choice(metals)
    numbers = map(str, rng.sample(range(1013, 9899), n))
    kind = "number plate"
    return [Target(_plate(f"No. {number}", metal, engraving), kind, number, kind) for number in numbers]


def price_tags(rng: Random, n: int) -> list[Target]:
    """Paper tags on a string, each with another price."""
    prices = [f"${cents // 100}.{cents % 100:02d}" for cents in rng.sample(range(1105, 9895, 5), n)]
    return [Target(_tag(price), "price tag", price, "price tag") for price in prices]


def street_signs(rng: Random, n: int) -> list[Target]:
    """Enamel signs with a street's name."""
    looks = rng.choices(sorted(ENAMELS), k=n)
    streets = rng.sample(WORDS["streets"], n)
    wrong = [street for street in WORDS["streets"] if street not in streets]
    return [
        Target(_sign(street, ENAMELS[look]), "street sign", street, look, tuple(rng.sample(wrong, 3)))
        for street, look in zip(streets, looks, strict=True)
    ]


def badges(rng: Random, n: int) -> list[Target]:
    """Up to twelve cream buttons with a coloured symbol; the second shares the first's colour, the third its symbol."""
    colours, symbols = rng.sample(sorted(COLOURS), 6), rng.sample(sorted(WORDS["symbols"]), 6)
    alike = [(colours[0], symbols[0]), (colours[0], symbols[1]), (colours[1], symbols[0])]
    rest = [pair for pair in itertools.product(colours, symbols) if pair not in alike]
    return [
        Target(_badge(symbol, COLOURS[colour]), "badge", colour, f"{colour} {symbol}", _others(rng, COLOURS, colour))
        for colour, symbol in (alike + rng.sample(rest, 9))[:n]
    ]


def dotted_cards(rng: Random, n: int) -> list[Target]:
    """White cards with 4 to 11 dots."""
    targets = []
    for count in rng.sample(range(4, 12), n):
        first = rng.randint(count - 3, count)
        options = tuple(str(number) for number in range(first, first + 4))
        targets.append(Target(_dotted_card(rng, count), "dotted card", str(count), "dotted card", options))
    return targets


def pictogram_signs(rng: Random, n: int) -> list[Target]:
    pictograms = WORDS["pictograms"]
    paint = rng.choice(((236, 206, 84), (232, 230, 222), (186, 208, 222)))
    return [
        Target(_pictogram(pictograms[name], paint), "pictogram sign", name, "sign", _others(rng, pictograms, name))
        for name in rng.sample(sorted(pictograms), n)
    ]


def bar_cards(rng: Random, n: int) -> list[Target]:
    """Cards with a bar chart of five named bars, one of them clearly the highest."""
    targets = []
    for words in rng.sample(WORDS["chart_words"], n):
        heights = rng.sample((30, 36, 42, 48, 54), 5)
        best = rng.randrange(5)
        heights[best] = 66
        targets.append(Target(_bar_card(words, heights), "bar chart", words[best], "bar chart", tuple(words)))
    return targets


def clocks(rng: Random, n: int) -> list[Target]:
    """Round clocks; the wrong options are other times, the one with both hands swapped among them."""
    targets = []
    for tick in rng.sample([tick for tick in range(144) if tick % 12 not in (0, tick // 12)], n):
        hour, minute = tick // 12 or 12, tick % 12 * 5
        later = (minute + rng.choice((15, 20, 40))) % 60
        times = ((hour, minute), (minute // 5, tick // 12 * 5), (hour % 12 + 1, minute), (hour, later))
        right, *wrong = (f"{hour or 12}:{minute:02d}" for hour, minute in times)
        targets.append(Target(_clock(hour, minute), "clock", right, "clock", tuple(wrong)))
    return targets


MAKERS: dict[str, Callable[[Random, int], list[Target]]] = {
    "plate": plates,
    "tag": price_tags,
    "badge": badges,
    "sign": street_signs,
    "dots": dotted_cards,
    "pictogram": pictogram_signs,
    "bars": bar_cards,
    "clock": clocks,
}


def weathered(target: Target, rng: Random) -> Target:
    """The same thing with dust and wear on it, turned by a degree or two, cropped to what is left visible."""
    image = target.image
    corner = rng.randrange(256), rng.randrange(256)
    dust = texture("gravel").crop((*corner, corner[0] + image.width, corner[1] + image.height))
    grain = dust.point([205 + level * 50 // 255 for level in range(256)])
    worn = ImageChops.multiply(image.convert("RGB"), Image.merge("RGB", (grain, grain, grain)))
    worn.putalpha(image.getchannel("A"))
    turned = worn.rotate(rng.uniform(-2, 2), Image.Resampling.BICUBIC, expand=True)
    solid = turned.getchannel("A").point([255 if level > 96 else 0 for level in range(256)])
    return target._replace(image=turned.crop(solid.getbbox()))


def _others(rng: Random, names: Iterable[str], name: str) -> tuple[str, ...]:
    return tuple(rng.sample([candidate for candidate in sorted(names) if candidate != name], 3))


def _blank(width: int, height: int) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("RGBA", (width * DETAIL, height * DETAIL))
    return image, ImageDraw.Draw(image)


def _scaled(*values: float) -> list[float]:
    return [value * DETAIL for value in values]


def _letter(
    draw: ImageDraw.ImageDraw, at: tuple[float, float], text: str, size: int, ink: Colour, *, face: str = BOLD
) -> None:
    draw.text((at[0] * DETAIL, at[1] * DETAIL), text, fill=ink, font=font(face, size * DETAIL), anchor="mm")


def _text_width(text: str, size: int, *, face: str = BOLD) -> int:
    return math.ceil(font(face, size * DETAIL).getlength(text) / DETAIL)


def _bolts(draw: ImageDraw.ImageDraw, x1: float, x2: float, y: float) -> None:
    for x in (x1, x2):
        draw.ellipse(_scaled(x - 2, y - 2, x + 2, y + 2), fill=(150, 148, 142), outline=(70, 68, 64), width=2)


def _plate(text: str, metal: Colour, engraving: Colour) -> Image.Image:
    width, height = _text_width(text, 15, face="DejaVuSerif") + 34, 28
    image, draw = _blank(width, height)
    draw.rounded_rectangle(_scaled(0, 0, width - 1, height - 1), 2 * DETAIL, fill=_shade(metal, 0.72))
    draw.rounded_rectangle(_scaled(1, 1, width - 2, height - 2), 2 * DETAIL, fill=metal)
    draw.line(_scaled(2, 1.5, width - 3, 1.5), fill=_shade(metal, 1.2), width=2)
    _letter(draw, (width / 2, height / 2), text, 15, engraving, face="DejaVuSerif")
    _bolts(draw, 7, width - 8, height / 2)
    return image.reduce(DETAIL)


def _sign(text: str, paint: Colour) -> Image.Image:
    width, height = _text_width(text, 18) + 36, 36
    image, draw = _blank(width, height)
    draw.rounded_rectangle(_scaled(0, 0, width - 1, height - 1), 5 * DETAIL, fill=paint)
    draw.rounded_rectangle(_scaled(3, 3, width - 4, height - 4), 3 * DETAIL, outline=(214, 212, 204), width=4)
    _letter(draw, (width / 2, height / 2), text, 18, (232, 230, 222))
    _bolts(draw, 9, width - 10, height / 2)
    return image.reduce(DETAIL)


def _tag(price: str) -> Image.Image:
    width, string = _text_width(price, 16) + 30, 26
    height = string + 34
    image, draw = _blank(width, height)
    corners = (0, string + 9, 9, string, width - 1, string, width - 1, height - 1, 9, height - 1, 0, height - 10)
    draw.polygon(_scaled(*corners), fill=(208, 182, 138), outline=(142, 116, 78), width=2)
    draw.ellipse(_scaled(5, string + 14, 11, string + 20), fill=(96, 78, 54))
    draw.line(_scaled(8, string + 17, width * 0.6, 0), fill=(226, 220, 206), width=DETAIL + 1)
    _letter(draw, (width / 2 + 6, string + 17), price, 16, (64, 44, 30))
    return image.reduce(DETAIL)


def _badge(symbol: str, colour: Colour) -> Image.Image:
    size = 36
    image, draw = _blank(size, size)
    draw.ellipse(_scaled(0, 0, size - 1, size - 1), fill=(168, 160, 144))
    draw.ellipse(_scaled(1, 1, size - 2, size - 2), fill=(238, 231, 214))
    _letter(draw, (size / 2 - 0.5, size / 2), WORDS["symbols"][symbol], 22, colour, face="DejaVuSans")
    return image.reduce(DETAIL)


def _dotted_card(rng: Random, count: int) -> Image.Image:
    width, height = 66, 50
    image, draw = _blank(width, height)
    rim = _scaled(0, 0, width - 1, height - 1)
    draw.rounded_rectangle(rim, 3 * DETAIL, fill=(224, 218, 204), outline=(160, 152, 136))
    for cell in rng.sample(range(12), count):
        x, y = 11 + cell % 4 * 14.5 + rng.uniform(-2, 2), 10 + cell // 4 * 14.5 + rng.uniform(-2, 2)
        draw.ellipse(_scaled(x - 3, y - 3, x + 3, y + 3), fill=(60, 52, 84))
    return image.reduce(DETAIL)


def _pictogram(glyph: str, paint: Colour) -> Image.Image:
    size = 46
    image, draw = _blank(size, size)
    draw.rounded_rectangle(_scaled(0, 0, size - 1, size - 1), 5 * DETAIL, fill=paint)
    draw.rounded_rectangle(_scaled(2, 2, size - 3, size - 3), 4 * DETAIL, outline=INK, width=4)
    _letter(draw, (size / 2 - 0.5, size / 2), glyph, 28, INK, face="DejaVuSans")
    return image.reduce(DETAIL)


def _bar_card(words: Sequence[str], heights: Sequence[int]) -> Image.Image:
    width, height = 176, 112
    image, draw = _blank(width, height)
    draw.rectangle(_scaled(0, 0, width - 1, height - 1), fill=(226, 220, 206), outline=(150, 142, 128), width=2)
    for place, (word, tall) in enumerate(zip(words, heights, strict=True)):
        x = 20 + place * 34
        draw.rectangle(_scaled(x - 10, 88 - tall, x + 10, 88), fill=(92, 116, 138))
        _letter(draw, (x, 98), word, 11, INK, face="DejaVuSans")
    draw.line(_scaled(8, 88, width - 8, 88), fill=INK, width=DETAIL)
    return image.reduce(DETAIL)


def _clock(hour: int, minute: int) -> Image.Image:
    size, middle = 68, 33.5
    image, draw = _blank(size, size)
    draw.ellipse(_scaled(0, 0, size - 1, size - 1), fill=(58, 50, 44))
    draw.ellipse(_scaled(4, 4, size - 5, size - 5), fill=(230, 224, 208))
    for tick in range(12):
        inner, outer = (22, 28) if tick % 3 == 0 else (25, 28)
        draw.line(_spoke(middle, tick * 30, inner, outer), fill=INK, width=6 if tick % 3 == 0 else 3)
    draw.line(_spoke(middle, (hour % 12 + minute / 60) * 30, -3, 15), fill=INK, width=11)
    draw.line(_spoke(middle, minute * 6, -4, 25), fill=INK, width=6)
    draw.ellipse(_scaled(middle - 2, middle - 2, middle + 2, middle + 2), fill=(150, 60, 40))
    return image.reduce(DETAIL)


def _spoke(middle: float, degrees: float, inner: float, outer: float) -> list[float]:
    x, y = math.sin(math.radians(degrees)), -math.cos(math.radians(degrees))
    return _scaled(middle + x * inner, middle + y * inner, middle + x * outer, middle + y * outer)


def _shade(colour: Colour, factor: float) -> Colour:
    red, green, blue = (min(255, round(value * factor)) for value in colour)
    return red, green, blue
