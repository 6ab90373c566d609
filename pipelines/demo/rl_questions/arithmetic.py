"""Problems that a drawing adds little to: transformations, counting by formula, reckoning. Answers are exact."""

from fractions import Fraction
from math import comb, factorial, gcd, lcm, prod
from random import Random

from darkroom.pipelines.demo.images.maths import terms
from darkroom.pipelines.demo.rl_questions.questions import Computed, problem_kinds

_PRIMES = (5, 7, 11, 13, 17, 19)
_WORDS = ("LEVEL", "COFFEE", "PEPPER", "BALLOON", "PAPAYA", "TOMORROW", "CINNAMON", "SUCCESS")


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


ARITHMETIC = problem_kinds(
    __file__,
    {
        "equation": _equation,
        "symmetric": _symmetric,
        "value": _value,
        "two_unknowns": _two_unknowns,
        "series": _series,
        "roots": _roots,
        "power_remainder": _power_remainder,
        "divisors": _divisors,
        "common": _common,
        "zeros": _zeros,
        "committee": _committee,
        "letters": _letters,
        "urn": _urn,
        "derivative": _derivative,
        "composition": _composition,
    },
)
