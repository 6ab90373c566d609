"""Problems that a drawing adds little to: transformations, counting by formula, reckoning. Answers are exact."""

from __future__ import annotations

from fractions import Fraction
from math import comb, factorial, gcd, lcm, prod
from random import Random

from pipelines.demo.rl_questions.questions import ProblemKind, WordProblem, terms, worded

_PRIMES = (5, 7, 11, 13, 17, 19)
_WORDS = ("LEVEL", "COFFEE", "PEPPER", "BALLOON", "PAPAYA", "TOMORROW", "CINNAMON", "SUCCESS")


def _equation(rng: Random, n: int) -> WordProblem:
    x, a, c = rng.randint(-9, 12), rng.randint(5, 9), rng.randint(1, 4)
    b = rng.randint(-20, 20)
    left_side, right = terms((a, "x"), (b, "")), terms((c, "x"), ((a - c) * x + b, ""))
    wordings = ("Solve for x: {left} = {right}", "For which x are the values of {left} and {right} equal?")
    return WordProblem("algebra", worded(wordings, n, left=left_side, right=right), str(x))


def _symmetric(rng: Random, n: int) -> WordProblem:
    x, y = rng.randint(2, 9), rng.randint(-6, 12)
    wordings = (
        "The numbers x and y satisfy x + y = {sum} and xy = {product}. What is x² + y²?",
        "Two numbers have the sum {sum} and the product {product}. Find the sum of their cubes.",
    )
    answer = x**3 + y**3 if n % 2 else x**2 + y**2
    return WordProblem("algebra", worded(wordings, n, sum=x + y, product=x * y), str(answer))


def _value(rng: Random, n: int) -> WordProblem:
    a, b, c, x = rng.randint(2, 5), rng.choice((-7, -4, -3, 3, 6)), rng.randint(-9, 9), rng.choice((-3, -2, 4, 5))
    polynomial = terms((a, "x³"), (b, "x"), (c, ""))
    wordings = ("Evaluate {polynomial} at x = {x}.", "What does {polynomial} come to when x is {x}?")
    return WordProblem("algebra", worded(wordings, n, polynomial=polynomial, x=x), str(a * x**3 + b * x + c))


def _two_unknowns(rng: Random, n: int) -> WordProblem:
    pen, book = rng.randint(2, 9), rng.randint(6, 20)
    few, many = rng.randint(2, 4), rng.randint(5, 7)
    wordings = (
        "{few} pens and {many} notebooks cost {first} coins together, {many} pens and {few} notebooks {second}. How "
        "many coins does one notebook cost?",
        "From {few}p + {many}q = {first} and {many}p + {few}q = {second}, find q.",
    )
    first, second = few * pen + many * book, many * pen + few * book
    return WordProblem("algebra", worded(wordings, n, few=few, many=many, first=first, second=second), str(book))


def _series(rng: Random, n: int) -> WordProblem:
    start, step, count = rng.randint(1, 12), rng.randint(2, 9), rng.randint(12, 40)
    total = count * (2 * start + (count - 1) * step) // 2
    wordings = (
        "An arithmetic progression begins {a}, {b}, {c}. What is the sum of its first {count} terms?",
        "Somebody saves {a} coins in the first week and {step} more in each week than in the week before. How many "
        "coins are saved after {count} weeks?",
    )
    values = {"a": start, "b": start + step, "c": start + 2 * step, "step": step, "count": count}
    return WordProblem("algebra", worded(wordings, n, **values), str(total))


def _roots(rng: Random, n: int) -> WordProblem:
    small = rng.randint(-8, 3)
    large = small + rng.randint(2, 9)
    quadratic = terms((1, "x²"), (-small - large, "x"), (small * large, ""))
    wordings = (
        "Give all solutions of {quadratic} = 0, separated by commas.",
        "Which numbers x make {quadratic} zero? List them.",
    )
    return WordProblem("algebra", worded(wordings, n, quadratic=quadratic), f"{small}, {large}")


def _power_remainder(rng: Random, n: int) -> WordProblem:
    base, exponent, modulus = rng.randint(2, 12), rng.randint(30, 400), rng.choice(_PRIMES)
    base += base % modulus == 0
    wordings = (
        "What is the remainder when {base}^{exponent} is divided by {modulus}?",
        "Find the smallest non-negative integer that leaves the same remainder as {base}^{exponent} modulo {modulus}.",
    )
    values = {"base": base, "exponent": exponent, "modulus": modulus}
    return WordProblem("number_theory", worded(wordings, n, **values), str(pow(base, exponent, modulus)))


def _divisors(rng: Random, n: int) -> WordProblem:
    value = prod(prime ** rng.randint(1, 4 - place) for place, prime in enumerate((2, 3, rng.choice((5, 7)))))
    count = sum(value % divisor == 0 for divisor in range(1, value + 1))
    wordings = ("How many positive divisors does {value} have?", "Count the positive integers that divide {value}.")
    return WordProblem("number_theory", worded(wordings, n, value=value), str(count))


def _common(rng: Random, n: int) -> WordProblem:
    shared = rng.randint(3, 14)
    first, second = shared * rng.choice((4, 5, 7, 9)), shared * rng.choice((11, 13, 6, 8))
    wordings = (
        "What is the greatest common divisor of {one} and {other}?",
        "Two lamps blink every {one} and every {other} seconds and have just blinked together. After how many seconds "
        "do they do so again?",
    )
    answer = lcm(first, second) if n % 2 else gcd(first, second)
    return WordProblem("number_theory", worded(wordings, n, one=first, other=second), str(answer))


def _zeros(rng: Random, n: int) -> WordProblem:
    value = rng.randint(20, 140)
    zeros = sum(value // 5**power for power in (1, 2, 3))
    wordings = (
        "With how many zeros does {value}! end when it is written in the decimal system?",
        "What is the largest k for which 10^k divides the product of the whole numbers from 1 to {value}?",
    )
    return WordProblem("number_theory", worded(wordings, n, value=value), str(zeros))


def _committee(rng: Random, n: int) -> WordProblem:
    people, seats = rng.randint(7, 13), rng.randint(2, 5)
    wordings = (
        "In how many ways can {seats} of {people} people be chosen for a committee?",
        "A pizzeria offers {people} toppings. How many different pizzas with exactly {seats} of them are possible?",
    )
    return WordProblem("combinatorics", worded(wordings, n, people=people, seats=seats), str(comb(people, seats)))


def _letters(_: Random, n: int) -> WordProblem:
    word = _WORDS[n % len(_WORDS)]
    count = factorial(len(word)) // prod(factorial(word.count(letter)) for letter in set(word))
    wordings = (
        "How many different strings can be formed from all the letters of {word}?",
        "The letters of {word} are shuffled. How many distinguishable results are there?",
    )
    return WordProblem("combinatorics", worded(wordings, n, word=word), str(count))


def _urn(rng: Random, n: int) -> WordProblem:
    red, white = rng.randint(3, 8), rng.randint(4, 9)
    total = red + white
    same = Fraction(red * (red - 1), total * (total - 1))
    wordings = (
        "An urn holds {red} red and {white} white balls. Two are taken out without putting back. With what probability "
        "are both red?",
        "Of {total} light bulbs in a box {red} are broken. Somebody takes two at once. What is the probability that "
        "both are broken?",
    )
    return WordProblem("probability", worded(wordings, n, red=red, white=white, total=total), str(same))


def _derivative(rng: Random, n: int) -> WordProblem:
    a, b, x = rng.randint(2, 6), rng.choice((-8, -5, 3, 7)), rng.randint(-3, 4)
    function = terms((a, "x³"), (b, "x²"), (rng.randint(1, 9), ""))
    wordings = (
        "Let f(x) = {function}. What is the derivative of f at x = {x}?",
        "Differentiate g(t) = {in_t} and give the value of g'({x}).",
    )
    question = worded(wordings, n, function=function, in_t=function.replace("x", "t"), x=x)
    return WordProblem("calculus", question, str(3 * a * x * x + 2 * b * x))


def _composition(rng: Random, n: int) -> WordProblem:
    a, b, c, x = rng.randint(2, 6), rng.randint(-7, 7), rng.randint(1, 9), rng.randint(-3, 5)
    linear, square = terms((a, "x"), (b, "")), terms((1, "x²"), (-c, ""))
    wordings = (
        "If f(x) = {linear} and g(x) = {square}, what is g(f({x}))?",
        "A machine turns x into {linear}, a second one turns x into {square}. The number {x} goes through the first "
        "and then through the second. What comes out?",
    )
    question = worded(wordings, n, linear=linear, square=square, x=x)
    return WordProblem("functions", question, str((a * x + b) ** 2 - c))


RECKONINGS: tuple[ProblemKind, ...] = (
    _equation,
    _symmetric,
    _value,
    _two_unknowns,
    _series,
    _roots,
    _power_remainder,
    _divisors,
    _common,
    _zeros,
    _committee,
    _letters,
    _urn,
    _derivative,
    _composition,
)
