"""Problems in words that a drawing helps with: areas, crossings, lattice points, intervals, mirror images, distances.

Answers are exact, from integers. Each row carries the program that draws its problem to scale
(``pipelines/records/samples.py``).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import gcd, isqrt
from random import Random
from typing import NamedTuple

from pipelines.demo.images import drawings
from pipelines.demo.images.material import LazyRow
from pipelines.records import Truth
from pipelines.records.samples import ReferenceSolution
from pipelines.sources import SourceRow

N_OF_EACH = 5
Point = tuple[int, int]


class Problem(NamedTuple):
    """A question, its answer, the drawing's program, why one draws, and what is seen then."""

    question: str
    answer: str
    program: str
    idea: str
    seen: str


def figures(seed: int) -> list[LazyRow]:
    """``N_OF_EACH`` problems of each kind, not made yet."""
    numbered = enumerate(KINDS * N_OF_EACH)
    return [LazyRow(f"figure/{number:02d}", partial(_row, number, kind, seed)) for number, kind in numbered]


def _row(number: int, kind: Callable[[Random], Problem], seed: int) -> SourceRow:
    row = f"figure/{number:02d}"
    problem = kind(Random(f"{seed}/{row}"))
    solution = ReferenceSolution(
        idea=problem.idea, steps=(), programs=(problem.program,), seen=problem.seen, drawn=True
    )
    return SourceRow(
        row=row,
        images=(),
        question=problem.question,
        answer=problem.answer,
        truth=Truth(details=json.dumps({"drawing_helps": True, "worked": solution.as_json()}, sort_keys=True)),
        category="geometry",
        license="Apache-2.0",
    )


def _polygon_area(rng: Random) -> Problem:
    corners = [(0, rng.randint(0, 2)), (rng.randint(5, 8), rng.randint(-2, 1))]
    corners += [(rng.randint(7, 10), rng.randint(4, 6)), (rng.randint(2, 4), rng.randint(7, 9))]
    twice = abs(sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in zip(corners, [*corners[1:], corners[0]], strict=True)))
    vertices = ", ".join(f"{name}{corner}" for name, corner in zip("ABCD", corners, strict=True))
    return Problem(
        question=f"What is the area of the quadrilateral with the vertices {vertices}, taken in this order?",
        answer=_written(Fraction(twice, 2)),
        program=drawings.AREA.format(corners=corners),
        idea="The area of a polygon on a grid can be read off its corners, if their order is clear.",
        seen="the quadrilateral with its corners in order, which does not cross itself",
    )


def _line_and_parabola(rng: Random) -> Problem:
    a, b, c = rng.choice((1, -1)), rng.randint(-3, 3), rng.randint(-4, 4)
    # the discriminant of the difference decides: below, at or above zero in turn
    n_points = rng.choice((0, 1, 2))
    slope = rng.choice([m for m in range(-5, 6) if (b - m) % 2 == 0 and m != 0])
    vertex = Fraction(-((b - slope) ** 2), 4 * a)
    offset = c + int(vertex) + a * (0 if n_points == 1 else rng.randint(2, 6) * (1 if n_points == 2 else -1))
    return Problem(
        question=f"In how many points do the parabola y = {_terms((a, 'x²'), (b, 'x'), (c, ''))} and the line "
        f"y = {_terms((slope, 'x'), (offset, ''))} intersect?",
        answer=str(n_points),
        program=drawings.CROSSINGS.format(a=a, b=b, c=c, slope=slope, offset=offset),
        idea="Whether the line misses, touches or crosses the parabola shows when both are plotted together.",
        seen="how often the line meets the parabola",
    )


def _two_circles(rng: Random) -> Problem:
    first, second = rng.randint(2, 5), rng.randint(2, 5)
    x, y = rng.choice(((3, 4), (4, 3), (6, 8), (8, 6), (5, 0), (0, 2), (1, 1)))
    between = x * x + y * y
    apart, inside = (first + second) ** 2, (first - second) ** 2
    n_points = 2 if inside < between < apart else 1 if between in (apart, inside) else 0
    return Problem(
        question=f"A circle has its centre at (0, 0) and the radius {first}, another has its centre at ({x}, {y}) and "
        f"the radius {second}. How many points do the two circles have in common?",
        answer=str(n_points),
        program=drawings.CIRCLES.format(first=first, second=second, x=x, y=y),
        idea="Two circles can lie apart, touch, cross or lie inside each other, which a drawing to scale tells apart.",
        seen="how the circles lie",
    )


def _lattice_in_triangle(rng: Random) -> Problem:
    corners = [(0, 0), (rng.randint(5, 9), rng.randint(0, 2)), (rng.randint(0, 4), rng.randint(5, 9))]
    edges = list(zip(corners, [*corners[1:], corners[0]], strict=True))
    twice = abs(sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in edges))
    on_edges = sum(gcd(x2 - x1, y2 - y1) for (x1, y1), (x2, y2) in edges)
    return Problem(
        question=f"How many points with whole coordinates lie strictly inside the triangle with the vertices "
        f"{corners[0]}, {corners[1]} and {corners[2]}?",
        answer=str((twice - on_edges + 2) // 2),
        program=drawings.LATTICE_TRIANGLE.format(corners=corners),
        idea="With the grid drawn into the triangle, the points inside can be marked and counted.",
        seen="the marked grid points inside the triangle",
    )


def _lattice_in_circle(rng: Random) -> Problem:
    square = rng.randint(5, 40)
    radius = isqrt(square)
    count = sum(2 * isqrt(square - x * x) + 1 for x in range(-radius, radius + 1))
    return Problem(
        question=f"How many points with whole coordinates lie inside or on the circle x² + y² = {square}?",
        answer=str(count),
        program=drawings.LATTICE_CIRCLE.format(square=square),
        idea="Points on the rim are easily missed; drawn on a grid, they show.",
        seen="all grid points that the circle holds",
    )


def _covered_length(rng: Random) -> Problem:
    starts = sorted(rng.sample(range(0, 18), 4))
    intervals = [(start, start + rng.randint(2, 6)) for start in starts]
    rng.shuffle(intervals)
    covered = len({unit for start, end in intervals for unit in range(start, end)})
    listed = ", ".join(f"[{start}, {end}]" for start, end in intervals)
    return Problem(
        question=f"What is the total length of the number line that is covered by the intervals {listed}?",
        answer=str(covered),
        program=drawings.INTERVALS.format(intervals=intervals),
        idea="Where intervals overlap they must not be counted twice; drawn below each other, overlaps are plain.",
        seen="which stretches are covered, and where intervals overlap",
    )


def _mirror_image(rng: Random) -> Problem:
    x, y, c = rng.randint(-6, 6), rng.randint(-6, 6), rng.randint(-3, 3)
    x += y == x + c  # a point on the line would be its own image
    return Problem(
        question=f"The point P({x}, {y}) is reflected across the line y = {_terms((1, 'x'), (c, ''))}. What are the "
        "coordinates of its image? Answer as (x, y).",
        answer=f"({y - c}, {x + c})",
        program=drawings.MIRROR.format(x=x, y=y, c=c),
        idea="A reflection keeps the distance to its line, so image and point lie on one perpendicular.",
        seen="the point and its image on both sides of the line",
    )


def _distance_to_line(rng: Random) -> Problem:
    a, b = rng.choice(((1, 1), (1, 2), (2, 1), (1, 3), (2, 3), (1, -1), (2, -1)))
    x, y, c = rng.randint(-5, 5), rng.randint(-5, 5), rng.randint(-8, 8)
    c += a * x + b * y == c
    apart, square = abs(a * x + b * y - c), a * a + b * b
    share = gcd(apart, square)
    root = f"\\sqrt{{{square}}}"
    top = root if apart == share else f"{apart // share}{root}"
    exact = top if share == square else f"\\frac{{{top}}}{{{square // share}}}"
    return Problem(
        question=f"What is the exact distance of the point ({x}, {y}) from the line "
        f"{_terms((a, 'x'), (b, 'y'))} = {c} in the coordinate plane?",
        answer="0" if not apart else exact,
        program=drawings.DISTANCE.format(a=a, b=b, c=c, x=x, y=y),
        idea="The distance is the length of the perpendicular from the point to the line, which I can construct.",
        seen="the perpendicular and its foot on the line",
    )


def _written(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else str(float(value))


def _terms(*terms: tuple[int, str]) -> str:
    """``2x - 3``: terms that are zero left out."""
    written = ""
    for factor, name in terms:
        if factor:
            size = "" if name and abs(factor) == 1 else str(abs(factor))
            sign = ("-" if factor < 0 else "") if not written else (" - " if factor < 0 else " + ")
            written += f"{sign}{size}{name}"
    return written or "0"


KINDS: tuple[Callable[[Random], Problem], ...] = (
    _polygon_area,
    _line_and_parabola,
    _two_circles,
    _lattice_in_triangle,
    _lattice_in_circle,
    _covered_length,
    _mirror_image,
    _distance_to_line,
)
