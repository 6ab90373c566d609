"""Problems that a drawing helps with: figures, curves, ways, sets and moments. Answers are exact, from integers."""

from fractions import Fraction
from itertools import product
from random import Random

from darkroom.pipelines.demo.images.maths import terms
from darkroom.pipelines.demo.rl_questions.questions import Computed, problem_kinds

_TRIPLES = ((3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29))


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


CONSTRUCTIONS = problem_kinds(
    __file__,
    {
        "corner_area": _corner_area,
        "chord": _chord,
        "ladder": _ladder,
        "cut_corners": _cut_corners,
        "angles": _angles,
        "folded_line": _folded_line,
        "distances": _distances,
        "between_curves": _between_curves,
        "under_an_arch": _under_an_arch,
        "ways": _ways,
        "rectangles": _rectangles,
        "walk": _walk,
        "appointment": _appointment,
        "sets": _sets,
    },
)
