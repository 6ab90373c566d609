"""Problems in words: figures, curves, ways and sets, which a drawing helps with, and reckoning, which it hardly does.
Answers are exact, from integers. The table beside this module has the field and the words of each kind."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from math import comb, factorial, gcd, lcm, prod
from random import Random

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.images.material import LazyRow
from darkroom.pipelines.demo.images.maths import problem_row, terms
from darkroom.pipelines.sources import SourceRow

_TABLE = data_beside(__file__)
_TRIPLES = ((3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29))
_PRIMES = (5, 7, 11, 13, 17, 19)
_WORDS = ("LEVEL", "COFFEE", "PEPPER", "BALLOON", "PAPAYA", "TOMORROW", "CINNAMON", "SUCCESS")


Computed = tuple[object, Mapping[str, object]]
"""The answer of a problem, and the values in its wording."""
Computation = Callable[[Random, int], Computed]
"""A function that computes the n-th problem of its kind; the table names the kind like it."""


def problems(name: str, kinds: Sequence[Computation], n_of_each: int, *, suitable: bool, seed: int) -> list[LazyRow]:
    rows = [(f"{name}/{n:02d}-{place:02d}", kind, n) for n in range(n_of_each) for place, kind in enumerate(kinds)]
    return [LazyRow(row, partial(_seeded, row, kind, n, suitable, seed)) for row, kind, n in rows]


def _seeded(row: str, compute: Computation, n: int, suitable: bool, seed: int) -> SourceRow:
    return problem(row, compute, Random(f"{seed}/{row}"), n, suitable=suitable)


def problem(row: str, compute: Computation, rng: Random, n: int, *, suitable: bool) -> SourceRow:
    """The row of the n-th problem of a kind: ``n`` chooses the wording."""
    kind = _TABLE[compute.__name__.strip("_")]
    answer, values = compute(rng, n)
    question = kind["wordings"][n % len(kind["wordings"])].format(**values)
    return problem_row(row, question, str(answer), {"suitable": suitable}, category=kind["category"])


def _corner_area(rng: Random, n: int) -> Computed:
    corners = [(0, rng.randint(0, 3)), (rng.randint(4, 9), rng.randint(-3, 2)), (rng.randint(1, 6), rng.randint(5, 9))]
    (ax, ay), (bx, by), (cx, cy) = corners
    twice = abs((bx - ax) * (cy - ay) - (cx - ax) * (by - ay))
    names = "PQR" if n % 2 else "ABC"
    points = ", ".join(f"{name}({x}, {y})" for name, (x, y) in zip(names, corners, strict=True))
    return Fraction(twice, 2), {"names": names, "points": points}


def _chord(rng: Random, n: int) -> Computed:
    times = rng.randint(1, 4)
    half, away, radius = (side * times for side in _TRIPLES[n % 5])
    return 2 * half, {"radius": radius, "away": away}


def _ladder(rng: Random, n: int) -> Computed:
    times = rng.randint(1, 3)
    foot, top, length = (side * times for side in _TRIPLES[(n + 2) % 5])
    return top, {"length": length, "foot": foot}


def _cut_corners(rng: Random, n: int) -> Computed:
    side = 2 * rng.randint(2, 9) + 2 * n
    radius = side // 2
    return rf"{side * side} - {radius * radius}\pi", {"side": side, "radius": radius}


def _angles(rng: Random, n: int) -> Computed:
    apex = 4 * rng.randint(5, 20) if n % 2 == 0 else 2 * rng.randint(10, 40)
    base = (180 - apex) // 2
    return 180 - base if n % 2 else base // 2, {"apex": apex}


def _folded_line(rng: Random, n: int) -> Computed:
    shift, height = rng.randint(2, 6), rng.randint(1, 8)
    # ||x| - shift| = height: two values of |x|, of which those above zero count twice
    n_points = sum(2 if value > 0 else value == 0 for value in {shift + height, shift - height})
    return n_points, {"shift": shift, "height": height}


def _distances(rng: Random, n: int) -> Computed:
    a, b, c = sorted(rng.sample(range(-9, 12), 3))
    return c - a, {"a": a, "b": b, "c": c}


def _between_curves(rng: Random, n: int) -> Computed:
    slope, factor = rng.randint(2, 7) + n, rng.randint(1, 4)
    return Fraction(slope**3, 6 * factor**2), {"square": terms((factor, "x²")), "line": terms((slope, "x"))}


def _under_an_arch(rng: Random, n: int) -> Computed:
    root = rng.randint(2, 6) + 2 * n
    return Fraction(4 * root**3, 3), {"high": root * root}


def _ways(rng: Random, n: int) -> Computed:
    width, height = rng.randint(3, 6), rng.randint(3, 5)
    x, y = rng.randint(1, width - 1), rng.randint(1, height - 1)
    return n_paths(width, height, (x, y)), {"width": width, "height": height, "x": x, "y": y}


def n_paths(width: int, height: int, closed: tuple[int, int]) -> int:
    """Paths from (0, 0) to (width, height) by steps right and up that do not visit ``closed``."""
    ways = {(0, 0): 1}
    for x, y in product(range(width + 1), range(height + 1)):
        if (x, y) != (0, 0):
            ways[x, y] = 0 if (x, y) == closed else ways.get((x - 1, y), 0) + ways.get((x, y - 1), 0)
    return ways[width, height]


def _rectangles(rng: Random, n: int) -> Computed:
    width, height = rng.randint(3, 6) + n, rng.randint(2, 5)
    squares = sum((width - side) * (height - side) for side in range(min(width, height)))
    every = width * (width + 1) * height * (height + 1) // 4
    return every if n % 2 else squares, {"width": width, "height": height}


def _walk(rng: Random, n: int) -> Computed:
    north, east, distance = _TRIPLES[(n + 1) % 5]
    back, more = rng.randint(1, 6), rng.randint(1, 9)
    legs = {"north_more": north + more, "east_more": east + back}
    return distance, {"north": north, "east": east, "back": back, "more": more, **legs}


def _appointment(rng: Random, n: int) -> Computed:
    wait = (15, 20, 10, 12, 24)[n % 5] + rng.choice((0, 1, 2))
    return 1 - (1 - Fraction(wait, 60)) ** 2, {"wait": wait}


def _sets(rng: Random, n: int) -> Computed:
    n_first, n_second, both, neither = rng.randint(8, 20), rng.randint(8, 20), rng.randint(3, 7), rng.randint(2, 9)
    total = n_first + n_second + both + neither
    answer = n_first + n_second if n % 2 else both
    return answer, {"total": total, "tea": n_first + both, "cake": n_second + both, "neither": neither}


_FIGURES = (_corner_area, _chord, _ladder, _cut_corners, _angles)
_CURVES = (_folded_line, _distances, _between_curves, _under_an_arch)
_COUNTS = (_ways, _rectangles, _walk, _appointment, _sets)
CONSTRUCTIONS = (*_FIGURES, *_CURVES, *_COUNTS)


def _equation(rng: Random, n: int) -> Computed:
    x, a, c = rng.randint(-9, 12), rng.randint(5, 9), rng.randint(1, 4)
    b = rng.randint(-20, 20)
    return x, {"left": terms((a, "x"), (b, "")), "right": terms((c, "x"), ((a - c) * x + b, ""))}


def _symmetric(rng: Random, n: int) -> Computed:
    x, y = rng.randint(2, 9), rng.randint(-6, 12)
    return x**3 + y**3 if n % 2 else x**2 + y**2, {"sum": x + y, "product": x * y}


def _value(rng: Random, n: int) -> Computed:
    a, b, c, x = rng.randint(2, 5), rng.choice((-7, -4, -3, 3, 6)), rng.randint(-9, 9), rng.choice((-3, -2, 4, 5))
    return a * x**3 + b * x + c, {"polynomial": terms((a, "x³"), (b, "x"), (c, "")), "x": x}


def _two_unknowns(rng: Random, n: int) -> Computed:
    pen, book = rng.randint(2, 9), rng.randint(6, 20)
    few, many = rng.randint(2, 4), rng.randint(5, 7)
    first, second = few * pen + many * book, many * pen + few * book
    return book, {"few": few, "many": many, "first": first, "second": second}


def _series(rng: Random, n: int) -> Computed:
    start, step, count = rng.randint(1, 12), rng.randint(2, 9), rng.randint(12, 40)
    total = count * (2 * start + (count - 1) * step) // 2
    return total, {"a": start, "b": start + step, "c": start + 2 * step, "step": step, "count": count}


def _roots(rng: Random, n: int) -> Computed:
    small = rng.randint(-8, 3)
    large = small + rng.randint(2, 9)
    return f"{small}, {large}", {"quadratic": terms((1, "x²"), (-small - large, "x"), (small * large, ""))}


def _power_remainder(rng: Random, n: int) -> Computed:
    base, exponent, modulus = rng.randint(2, 12), rng.randint(30, 400), rng.choice(_PRIMES)
    base += base % modulus == 0
    return pow(base, exponent, modulus), {"base": base, "exponent": exponent, "modulus": modulus}


def _divisors(rng: Random, n: int) -> Computed:
    value = prod(prime ** rng.randint(1, 4 - place) for place, prime in enumerate((2, 3, rng.choice((5, 7)))))
    return sum(value % divisor == 0 for divisor in range(1, value + 1)), {"value": value}


def _common(rng: Random, n: int) -> Computed:
    shared = rng.randint(3, 14)
    first, second = shared * rng.choice((4, 5, 7, 9)), shared * rng.choice((11, 13, 6, 8))
    return lcm(first, second) if n % 2 else gcd(first, second), {"one": first, "other": second}


def _zeros(rng: Random, n: int) -> Computed:
    value = rng.randint(20, 140)
    return sum(value // 5**power for power in (1, 2, 3)), {"value": value}


def _committee(rng: Random, n: int) -> Computed:
    people, seats = rng.randint(7, 13), rng.randint(2, 5)
    return comb(people, seats), {"people": people, "seats": seats}


def _letters(_: Random, n: int) -> Computed:
    word = _WORDS[n % len(_WORDS)]
    count = factorial(len(word)) // prod(factorial(word.count(letter)) for letter in set(word))
    return count, {"word": word}


def _urn(rng: Random, n: int) -> Computed:
    red, white = rng.randint(3, 8), rng.randint(4, 9)
    total = red + white
    return Fraction(red * (red - 1), total * (total - 1)), {"red": red, "white": white, "total": total}


def _derivative(rng: Random, n: int) -> Computed:
    a, b, x = rng.randint(2, 6), rng.choice((-8, -5, 3, 7)), rng.randint(-3, 4)
    function = terms((a, "x³"), (b, "x²"), (rng.randint(1, 9), ""))
    return 3 * a * x * x + 2 * b * x, {"function": function, "in_t": function.replace("x", "t"), "x": x}


def _composition(rng: Random, n: int) -> Computed:
    a, b, c, x = rng.randint(2, 6), rng.randint(-7, 7), rng.randint(1, 9), rng.randint(-3, 5)
    return (a * x + b) ** 2 - c, {"linear": terms((a, "x"), (b, "")), "square": terms((1, "x²"), (-c, "")), "x": x}


_ALGEBRA = (_equation, _symmetric, _value, _two_unknowns, _series, _roots)
_NUMBERS = (_power_remainder, _divisors, _common, _zeros)
_CHOSEN = (_committee, _letters, _urn)
_FUNCTIONS = (_derivative, _composition)
ARITHMETIC = (*_ALGEBRA, *_NUMBERS, *_CHOSEN, *_FUNCTIONS)
