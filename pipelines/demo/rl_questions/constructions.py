"""Problems that a drawing helps with: figures, curves, ways, sets and moments. Answers are exact, from integers."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random

from pipelines.demo.rl_questions.questions import ProblemKind, WordProblem, terms, worded

_TRIPLES = ((3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29))


def _corner_area(rng: Random, n: int) -> WordProblem:
    corners = [(0, rng.randint(0, 3)), (rng.randint(4, 9), rng.randint(-3, 2)), (rng.randint(1, 6), rng.randint(5, 9))]
    (ax, ay), (bx, by), (cx, cy) = corners
    twice = abs((bx - ax) * (cy - ay) - (cx - ax) * (by - ay))
    wordings = (
        "Find the area of triangle {names} with {points}.",
        "The points {points} are the corners of a field on a map. Which area, in square units of the map, does it "
        "have?",
        "How large is the region that the three segments between {points} enclose?",
    )
    vertices = zip("PQR" if n % 2 else "ABC", corners, strict=True)
    points = ", ".join(f"{name}({x}, {y})" for name, (x, y) in vertices)
    question = worded(wordings, n, names="PQR" if n % 2 else "ABC", points=points)
    return WordProblem("geometry", question, str(Fraction(twice, 2)))


def _chord(rng: Random, n: int) -> WordProblem:
    times = rng.randint(1, 4)
    half, away, radius = (side * times for side in _TRIPLES[n % 5])
    wordings = (
        "A chord of a circle with radius {radius} is {away} away from the centre. How long is the chord?",
        "In a circle of radius {radius} a straight cut passes the centre at a distance of {away}. Find the length of "
        "the chord that it makes.",
    )
    return WordProblem("geometry", worded(wordings, n, radius=radius, away=away), str(2 * half))


def _ladder(rng: Random, n: int) -> WordProblem:
    times = rng.randint(1, 3)
    foot, top, length = (side * times for side in _TRIPLES[(n + 2) % 5])
    wordings = (
        "A ladder of {length} dm leans against a wall; its foot stands {foot} dm from the wall. How high up does it "
        "touch the wall, in dm?",
        "From the top of a mast a rope of {length} dm is stretched to a peg {foot} dm from the foot of the mast. How "
        "tall is the mast, in dm?",
        "A ramp of {length} dm begins {foot} dm before a vertical step and ends on its edge. What is the height of the "
        "step in dm?",
    )
    return WordProblem("geometry", worded(wordings, n, length=length, foot=foot), str(top))


def _cut_corners(rng: Random, n: int) -> WordProblem:
    side = 2 * rng.randint(2, 9) + 2 * n
    radius = side // 2
    wordings = (
        "From a square of side {side} a quarter of a circle with radius {radius} is cut off at each corner. Give the "
        "exact area that is left.",
        "Four circles of radius {radius} have their centres in the corners of a square of side {side}. What is the "
        "exact area of the region of the square that no circle covers?",
        "A circle touches all four sides of a square of side {side}. Give the exact area between the circle and the "
        "square.",
    )
    return WordProblem(
        "geometry", worded(wordings, n, side=side, radius=radius), rf"{side * side} - {radius * radius}\pi"
    )


def _angles(rng: Random, n: int) -> WordProblem:
    apex = 4 * rng.randint(5, 20) if n % 2 == 0 else 2 * rng.randint(10, 40)
    base = (180 - apex) // 2
    wordings = (
        "In triangle ABC the sides AB and AC are equal and the angle at A is {apex}°. The bisector of the angle at B "
        "meets AC in D. How many degrees does angle ABD have?",
        "Triangle KLM has KL = KM and angle LKM = {apex}°. LM is produced beyond M to N. How many degrees does angle "
        "KMN have?",
    )
    return WordProblem("geometry", worded(wordings, n, apex=apex), str(180 - base if n % 2 else base // 2))


def _folded_line(rng: Random, n: int) -> WordProblem:
    shift, height = rng.randint(2, 6), rng.randint(1, 8)
    # ||x| - shift| = height: two values of |x|, of which those above zero count twice
    n_points = sum(2 if value > 0 else value == 0 for value in {shift + height, shift - height})
    wordings = (
        "In how many points does the line y = {height} meet the graph of y = ||x| - {shift}|?",
        "How many real solutions does ||x| - {shift}| = {height} have?",
    )
    return WordProblem("functions", worded(wordings, n, shift=shift, height=height), str(n_points))


def _distances(rng: Random, n: int) -> WordProblem:
    places = sorted(rng.sample(range(-9, 12), 3))
    wordings = (
        "What is the smallest value that |x - ({a})| + |x - ({b})| + |x - ({c})| takes for real x?",
        "Three houses stand along a straight road at the kilometres {a}, {b} and {c}. For the best place of a well, "
        "what is the sum of its distances to the houses in km?",
    )
    a, b, c = places
    return WordProblem("functions", worded(wordings, n, a=a, b=b, c=c), str(c - a))


def _between_curves(rng: Random, n: int) -> WordProblem:
    slope, factor = rng.randint(2, 7) + n, rng.randint(1, 4)
    area = Fraction(slope**3, 6 * factor**2)
    wordings = (
        "Find the area of the region between the parabola y = {square} and the line y = {line}.",
        "The graphs of y = {square} and y = {line} enclose a region. Which area does it have?",
    )
    square, line = terms((factor, "x²")), terms((slope, "x"))
    return WordProblem("calculus", worded(wordings, n, square=square, line=line), str(area))


def _under_an_arch(rng: Random, n: int) -> WordProblem:
    root = rng.randint(2, 6) + 2 * n
    area = Fraction(4 * root**3, 3)
    wordings = (
        "What area lies between the parabola y = {high} - x² and the x-axis?",
        "An arch has the shape of y = {high} - x², and the x-axis is its floor. What is the area of the opening?",
    )
    return WordProblem("calculus", worded(wordings, n, high=root * root), str(area))


def _ways(rng: Random, n: int) -> WordProblem:
    width, height = rng.randint(3, 6), rng.randint(3, 5)
    closed = (rng.randint(1, width - 1), rng.randint(1, height - 1))
    wordings = (
        "A grid of streets has {width} blocks from west to east and {height} from south to north. In how many ways can "
        "one walk from the south-west corner to the north-east corner, going only east or north, if the crossroads {x} "
        "blocks east and {y} north of the start is closed?",
        "A piece moves on lattice points by (1, 0) or (0, 1). How many paths lead from (0, 0) to ({width}, {height}) "
        "without visiting ({x}, {y})?",
    )
    question = worded(wordings, n, width=width, height=height, x=closed[0], y=closed[1])
    return WordProblem("combinatorics", question, str(n_paths(width, height, closed)))


def n_paths(width: int, height: int, closed: tuple[int, int]) -> int:
    """Paths from (0, 0) to (width, height) by steps right and up that do not visit ``closed``."""
    ways = {(0, 0): 1}
    for x, y in product(range(width + 1), range(height + 1)):
        if (x, y) != (0, 0):
            ways[x, y] = 0 if (x, y) == closed else ways.get((x - 1, y), 0) + ways.get((x, y - 1), 0)
    return ways[width, height]


def _rectangles(rng: Random, n: int) -> WordProblem:
    width, height = rng.randint(3, 6) + n, rng.randint(2, 5)
    squares = sum((width - side) * (height - side) for side in range(min(width, height)))
    every = width * (width + 1) * height * (height + 1) // 4
    wordings = (
        "How many squares of any size can be found in a grid of {width} by {height} unit squares?",
        "A window has {width} by {height} panes. How many rectangles of any size do the bars of this grid show?",
    )
    return WordProblem(
        "combinatorics", worded(wordings, n, width=width, height=height), str(every if n % 2 else squares)
    )


def _walk(rng: Random, n: int) -> WordProblem:
    north, east, distance = _TRIPLES[(n + 1) % 5]
    back, more = rng.randint(1, 6), rng.randint(1, 9)
    wordings = (
        "A surveyor walks {north_more} m north, {east} m east and {more} m south. How many metres is it straight back "
        "to the start?",
        "A drone flies {east_more} m east, {north} m north and then {back} m west. What is its distance from where it "
        "began, in metres?",
    )
    question = worded(
        wordings, n, north_more=north + more, east=east, more=more, north=north, east_more=east + back, back=back
    )
    return WordProblem("geometry", question, str(distance))


def _appointment(rng: Random, n: int) -> WordProblem:
    wait = (15, 20, 10, 12, 24)[n % 5] + rng.choice((0, 1, 2))
    met = 1 - (1 - Fraction(wait, 60)) ** 2
    wordings = (
        "Two friends come to the station at independent random moments between 5 and 6 o'clock, and each waits {wait} "
        "minutes for the other. With what probability do they meet? Give a fraction.",
        "Two real numbers between 0 and 60 are drawn at random. What is the probability, as a ratio of whole numbers, "
        "that they are at most {wait} apart?",
    )
    return WordProblem("probability", worded(wordings, n, wait=wait), str(met))


def _sets(rng: Random, n: int) -> WordProblem:
    n_first, n_second, both, neither = rng.randint(8, 20), rng.randint(8, 20), rng.randint(3, 7), rng.randint(2, 9)
    total = n_first + n_second + both + neither
    wordings = (
        "Of {total} guests {tea} drank tea and {cake} had cake; {neither} did neither. How many had both, tea and "
        "cake?",
        "In a class of {total} pupils {tea} swim and {cake} play chess, while {neither} do neither of the two. How "
        "many do just one of them, not both?",
    )
    question = worded(wordings, n, total=total, tea=n_first + both, cake=n_second + both, neither=neither)
    return WordProblem("combinatorics", question, str(n_first + n_second if n % 2 else both))


CONSTRUCTIONS: tuple[ProblemKind, ...] = (
    _corner_area,
    _chord,
    _ladder,
    _cut_corners,
    _angles,
    _folded_line,
    _distances,
    _between_curves,
    _under_an_arch,
    _ways,
    _rectangles,
    _walk,
    _appointment,
    _sets,
)
