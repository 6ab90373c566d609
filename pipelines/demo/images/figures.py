r"""Problems with a diagram that has to be read, and problems in words that a drawing helps with.

Of ``diagrams``, lengths stand in the image and not in the question; some answers are no decimal numbers
(``36 - 9\pi``), so that grading by math-verify meets real rows. ``figures`` ask for areas, crossings, lattice points,
intervals, mirror images and distances; answers are exact, from integers. Each row carries a program that draws its
problem to scale and prints nothing, and how the answer is read off the drawing (``pipelines/records/samples.py``).
"""

from collections.abc import Callable
from fractions import Fraction
from math import gcd, isqrt
from random import Random
from typing import Any, NamedTuple

from PIL import Image, ImageDraw

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.images import material
from darkroom.pipelines.demo.images.maths import problem_row, solution, terms, written
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.storage.media_validation import encode

WORDS = data_beside(__file__)
SIZE = (480, 360)
INK, TINT, PAPER = (30, 40, 60), (196, 214, 236), (255, 255, 255)
N_OF_EACH = 5
"""Problems of each kind of figure."""


class Drawn(NamedTuple):
    """An image, the answer, and the values that question and solution name."""

    image: Image.Image
    answer: str
    values: dict[str, Any]


def diagrams(seed: int) -> list[material.LazyRow]:
    """One problem of each kind, not drawn yet."""
    return material.lazy_rows("diagram", _diagram_row, DIAGRAMS, seed)


def _diagram_row(row: str, kind: str, seed: int) -> SourceRow:
    image, answer, values = DIAGRAMS[kind](Random(f"{seed}/{row}"))
    details, images = {"worked": solution(WORDS[kind], values)}, (encode(image, "PNG"),)
    return problem_row(row, WORDS[kind]["question"], answer, details, category="maths", images=images)


def _right_triangle(rng: Random) -> Drawn:
    a, b, c = rng.choice(((3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29)))
    times = rng.randint(2, 5)
    a, b, c = a * times, b * times, c * times
    image, draw = _sheet()
    draw.polygon(((90, 290), (390, 290), (90, 80)), fill=TINT, outline=INK, width=3)
    draw.rectangle((90, 268, 112, 290), outline=INK, width=2)
    _label(draw, (55, 185), str(a))
    _label(draw, (240, 310), str(b))
    _label(draw, (255, 165), "x")
    return Drawn(image, str(c), {"a": a, "b": b, "square": a * a + b * b})


def _square_less_circle(rng: Random) -> Drawn:
    radius = rng.randint(2, 9)
    image, draw = _sheet()
    draw.rectangle((130, 60, 350, 280), fill=TINT, outline=INK, width=3)
    draw.ellipse((130, 60, 350, 280), fill=PAPER, outline=INK, width=3)
    _label(draw, (240, 300), str(2 * radius))
    side, square = 2 * radius, radius**2
    answer = f"{side**2} - {square if radius > 1 else ''}\\pi"
    return Drawn(image, answer, {"side": side, "area": side**2, "radius": radius, "square": square})


def _trapezoid(rng: Random) -> Drawn:
    top, bottom, height = rng.randint(3, 9), rng.randint(10, 18), rng.randint(3, 9)
    image, draw = _sheet()
    draw.polygon(((160, 80), (320, 80), (410, 280), (70, 280)), fill=TINT, outline=INK, width=3)
    draw.line((200, 80, 200, 280), fill=INK, width=2)
    _label(draw, (240, 55), str(top))
    _label(draw, (240, 305), str(bottom))
    _label(draw, (225, 180), str(height))
    return Drawn(image, written(Fraction((top + bottom) * height, 2)), {"top": top, "bottom": bottom, "height": height})


def _bars(rng: Random) -> Drawn:
    values = [rng.randint(11, 95) for _ in range(5)]
    image, draw = _sheet()
    for n, (name, value) in enumerate(zip(("Mon", "Tue", "Wed", "Thu", "Fri"), values, strict=True)):
        x = 60 + 78 * n
        draw.rectangle((x, 300 - 2 * value, x + 50, 300), fill=TINT, outline=INK, width=2)
        _label(draw, (x + 25, 288 - 2 * value), str(value))
        _label(draw, (x + 25, 320), name)
    mean = Fraction(sum(values), len(values))
    return Drawn(image, written(mean), {"values": values, "listed": ", ".join(map(str, values)), "sum": sum(values)})


def _sheet() -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("RGB", SIZE, PAPER)
    return image, ImageDraw.Draw(image)


def _label(draw: ImageDraw.ImageDraw, centre: tuple[int, int], text: str) -> None:
    draw.text(centre, text, fill=INK, font=material.font("DejaVuSans", 22), anchor="mm")


_DRAWN = (_right_triangle, _square_less_circle, _trapezoid, _bars)
DIAGRAMS: dict[str, Callable[[Random], Drawn]] = {draw.__name__.strip("_"): draw for draw in _DRAWN}
Problem = tuple[str, dict[str, Any]]
"""The answer, and the values that the question and the drawing's program name."""


def figures(seed: int) -> list[material.LazyRow]:
    """``N_OF_EACH`` problems of each kind, not made yet."""
    return material.lazy_rows("figure", _figure_row, [*FIGURES] * N_OF_EACH, seed)


def _figure_row(row: str, kind: str, seed: int) -> SourceRow:
    answer, values = FIGURES[kind](Random(f"{seed}/{row}"))
    words = WORDS[kind]
    words = words | {"seen": words["seen"].format(**values)}
    details = {"drawing_helps": True, "worked": solution(words, values, drawn=True)}
    return problem_row(row, words["question"].format(**values), answer, details, category="geometry")


def _polygon_area(rng: Random) -> Problem:
    corners = [(0, rng.randint(0, 2)), (rng.randint(5, 8), rng.randint(-2, 1))]
    corners += [(rng.randint(7, 10), rng.randint(4, 6)), (rng.randint(2, 4), rng.randint(7, 9))]
    vertices = ", ".join(f"{name}{corner}" for name, corner in zip("ABCD", corners, strict=True))
    area, rim, inside = _measured(corners)
    return written(area), {"corners": corners, "vertices": vertices, "inside": inside, "rim": rim}


def _line_and_parabola(rng: Random) -> Problem:
    a, b, c = rng.choice((1, -1)), rng.randint(-3, 3), rng.randint(-4, 4)
    # the discriminant of the difference decides: below, at or above zero in turn
    n_points = rng.choice((0, 1, 2))
    slope = rng.choice([m for m in range(-5, 6) if (b - m) % 2 == 0 and m != 0])
    vertex = Fraction(-((b - slope) ** 2), 4 * a)
    offset = c + int(vertex) + a * (0 if n_points == 1 else rng.randint(2, 6) * (1 if n_points == 2 else -1))
    curves = {"parabola": terms((a, "x²"), (b, "x"), (c, "")), "line": terms((slope, "x"), (offset, ""))}
    curves["met"] = ("runs past", "touches", "cuts through both arms of")[n_points] + " the parabola"
    return str(n_points), {"a": a, "b": b, "c": c, "slope": slope, "offset": offset, **curves}


def _two_circles(rng: Random) -> Problem:
    first, second = rng.randint(2, 5), rng.randint(2, 5)
    x, y = rng.choice(((3, 4), (4, 3), (6, 8), (8, 6), (5, 0), (0, 2), (1, 1)))
    between = x * x + y * y
    apart, inside = (first + second) ** 2, (first - second) ** 2
    n_points = 2 if inside < between < apart else 1 if between in (apart, inside) else 0
    none = "one circle inside the other" if between < inside else "the circles beside each other"
    lie = (none, "the circles touching", "two crossings of the circles")[n_points]
    return str(n_points), {"first": first, "second": second, "x": x, "y": y, "lie": lie}


def _lattice_in_triangle(rng: Random) -> Problem:
    corners = [(0, 0), (rng.randint(5, 9), rng.randint(0, 2)), (rng.randint(0, 4), rng.randint(5, 9))]
    rows = [sum(_is_inside(corners, x, y) for x in range(11)) for y in range(11)]
    _, _, inside = _measured(corners)
    return str(inside), {"corners": corners, "rows": " + ".join(str(row) for row in rows if row)}


def _measured(corners: list[tuple[int, int]]) -> tuple[Fraction, int, int]:
    """Area of a polygon, and how many lattice points are on its edges and inside (Pick's theorem)."""
    twice = abs(sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in _edges(corners)))
    rim = sum(gcd(x2 - x1, y2 - y1) for (x1, y1), (x2, y2) in _edges(corners))
    return Fraction(twice, 2), rim, (twice - rim + 2) // 2


def _lattice_in_circle(rng: Random) -> Problem:
    square = rng.randint(5, 40)
    radius = isqrt(square)
    columns = [2 * isqrt(square - x * x) + 1 for x in range(radius + 1)]
    sides = " + ".join(map(str, columns[1:]))
    return str(columns[0] + 2 * sum(columns[1:])), {"square": square, "middle": columns[0], "sides": sides}


def _covered_length(rng: Random) -> Problem:
    starts = sorted(rng.sample(range(0, 18), 4))
    intervals = [(start, start + rng.randint(2, 6)) for start in starts]
    rng.shuffle(intervals)
    stretches: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if stretches and start <= stretches[-1][1]:
            start, end = stretches[-1][0], max(end, stretches.pop()[1])
        stretches.append((start, end))
    listed = ", ".join(f"[{start}, {end}]" for start, end in intervals)
    joined = " and ".join(f"{start} to {end}" for start, end in stretches)
    values = {"intervals": intervals, "listed": listed, "joined": joined}
    return str(sum(end - start for start, end in stretches)), values


def _mirror_image(rng: Random) -> Problem:
    x, y, c = rng.randint(-6, 6), rng.randint(-6, 6), rng.randint(-3, 3)
    x += y == x + c  # a point on the line would be its own image
    return f"({y - c}, {x + c})", {"x": x, "y": y, "c": c, "line": terms((1, "x"), (c, ""))}


def _distance_to_line(rng: Random) -> Problem:
    a, b = rng.choice(((1, 1), (1, 2), (2, 1), (1, 3), (2, 3), (1, -1), (2, -1)))
    x, y, c = rng.randint(-5, 5), rng.randint(-5, 5), rng.randint(-8, 8)
    c += a * x + b * y == c
    apart, square = abs(a * x + b * y - c), a * a + b * b
    share = gcd(apart, square)
    root = f"\\sqrt{{{square}}}"
    top = root if apart == share else f"{apart // share}{root}"
    exact = top if share == square else f"\\frac{{{top}}}{{{square // share}}}"
    values = {"a": a, "b": b, "c": c, "x": x, "y": y, "line": terms((a, "x"), (b, "y"))}
    values |= {"across": Fraction(apart, abs(a)), "up": Fraction(apart, abs(b))}
    return exact if apart else "0", values


def _is_inside(corners: list[tuple[int, int]], x: int, y: int) -> bool:
    turns = [(x2 - x1) * (y - y1) - (y2 - y1) * (x - x1) for (x1, y1), (x2, y2) in _edges(corners)]
    return min(turns) > 0 or max(turns) < 0


def _edges(corners: list[tuple[int, int]]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    return list(zip(corners, [*corners[1:], corners[0]], strict=True))


_COUNTED = (_line_and_parabola, _two_circles, _lattice_in_triangle, _lattice_in_circle)
_COMPUTED = (_polygon_area, *_COUNTED, _covered_length, _mirror_image, _distance_to_line)
FIGURES: dict[str, Callable[[Random], Problem]] = {compute.__name__.strip("_"): compute for compute in _COMPUTED}
