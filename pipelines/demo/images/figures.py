"""Problems in words that a drawing helps with: areas, crossings, lattice points, intervals, mirror images, distances.

Answers are exact, from integers. Each row carries a program that draws its problem to scale and prints nothing, and how
the answer is read off the drawing (``pipelines/records/samples.py``).
"""

from collections.abc import Callable
from fractions import Fraction
from math import gcd, isqrt
from random import Random
from typing import Any

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.images.material import LazyRow, lazy_rows
from darkroom.pipelines.demo.images.maths import problem_row, solution, terms, written
from darkroom.pipelines.sources import SourceRow

WORDS = data_beside(__file__)
N_OF_EACH = 5
Problem = tuple[str, dict[str, Any]]
"""The answer, and the values that the question and the drawing's program name."""


def figures(seed: int) -> list[LazyRow]:
    """``N_OF_EACH`` problems of each kind, not made yet."""
    return lazy_rows("figure", _row, [*KINDS] * N_OF_EACH, seed)


def _row(row: str, kind: str, seed: int) -> SourceRow:
    answer, values = KINDS[kind](Random(f"{seed}/{row}"))
    words = WORDS[kind]
    words = words | {"seen": words["seen"].format(**values)}
    details = {"drawing_helps": True, "worked": solution(words, values, drawn=True)}
    return problem_row(row, words["question"].format(**values), answer, details, category="geometry")


def _polygon_area(rng: Random) -> Problem:
    corners = [(0, rng.randint(0, 2)), (rng.randint(5, 8), rng.randint(-2, 1))]
    corners += [(rng.randint(7, 10), rng.randint(4, 6)), (rng.randint(2, 4), rng.randint(7, 9))]
    twice = abs(sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in _edges(corners)))
    vertices = ", ".join(f"{name}{corner}" for name, corner in zip("ABCD", corners, strict=True))
    rim = sum(gcd(x2 - x1, y2 - y1) for (x1, y1), (x2, y2) in _edges(corners))
    values = {"corners": corners, "vertices": vertices, "inside": (twice - rim + 2) // 2, "rim": rim}
    return written(Fraction(twice, 2)), values


def _line_and_parabola(rng: Random) -> Problem:
    a, b, c = rng.choice((1, -1)), rng.randint(-3, 3), rng.randint(-4, 4)
    # the discriminant of the difference decides: below, at or above zero in turn
    n_points = rng.choice((0, 1, 2))
    slope = rng.choice([m for m in range(-5, 6) if (b - m) % 2 == 0 and m != 0])
    vertex = Fraction(-((b - slope) ** 2), 4 * a)
    offset = c + int(vertex) + a * (0 if n_points == 1 else rng.randint(2, 6) * (1 if n_points == 2 else -1))
    curves = {"parabola": terms((a, "x²"), (b, "x"), (c, "")), "line": terms((slope, "x"), (offset, ""))}
    curves["met"] = ("runs past the parabola", "touches the parabola", "cuts through both arms of the parabola")[
        n_points
    ]
    return str(n_points), {"a": a, "b": b, "c": c, "slope": slope, "offset": offset, **curves}


def _two_circles(rng: Random) -> Problem:
    first, second = rng.randint(2, 5), rng.randint(2, 5)
    x, y = rng.choice(((3, 4), (4, 3), (6, 8), (8, 6), (5, 0), (0, 2), (1, 1)))
    between = x * x + y * y
    apart, inside = (first + second) ** 2, (first - second) ** 2
    n_points = 2 if inside < between < apart else 1 if between in (apart, inside) else 0
    lie = (
        "one circle inside the other"
        if between < inside
        else "the circles beside each other"
        if between > apart
        else ""
    )
    lie = lie or ("two crossings of the circles" if n_points == 2 else "the circles touching")
    return str(n_points), {"first": first, "second": second, "x": x, "y": y, "lie": lie}


def _lattice_in_triangle(rng: Random) -> Problem:
    corners = [(0, 0), (rng.randint(5, 9), rng.randint(0, 2)), (rng.randint(0, 4), rng.randint(5, 9))]
    twice = abs(sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in _edges(corners)))
    on_edges = sum(gcd(x2 - x1, y2 - y1) for (x1, y1), (x2, y2) in _edges(corners))
    rows = [sum(_is_inside(corners, x, y) for x in range(11)) for y in range(11)]
    values = {"corners": corners, "rows": " + ".join(str(row) for row in rows if row)}
    return str((twice - on_edges + 2) // 2), values


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
    return str(sum(end - start for start, end in stretches)), {
        "intervals": intervals,
        "listed": listed,
        "joined": joined,
    }


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


KINDS: dict[str, Callable[[Random], Problem]] = {
    "polygon_area": _polygon_area,
    "line_and_parabola": _line_and_parabola,
    "two_circles": _two_circles,
    "lattice_in_triangle": _lattice_in_triangle,
    "lattice_in_circle": _lattice_in_circle,
    "covered_length": _covered_length,
    "mirror_image": _mirror_image,
    "distance_to_line": _distance_to_line,
}
