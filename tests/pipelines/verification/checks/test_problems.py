"""Checks on computed and drawn problems: what passes, and every way of failing, each for its own flaw."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageDraw

from darkroom.pipelines.records import Observation, Round
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.verification.checks import (
    answer_judged,
    answer_verified,
    drawing_needed,
    figure_rendered,
    output_supports_answer,
    program_computes,
    solution_stays_hidden,
)
from darkroom.pipelines.verification.judges import EmbeddedJudge, PolicyJudge
from tests.pipelines.scripted import Scripted


def computed(code: str, printed: str, *, status: str = "ok") -> Round:
    return Round("I compute it.", code, Observation(status, printed))


@pytest.fixture
def make_problem(make_case):
    """A problem with the answer 42, solved by one program."""

    def make(code="print(6 * 7)", printed="42", *, answer="42", given=None, **case):
        rounds = case.pop("rounds", (computed(code, printed),))
        made = make_case(rounds=rounds, question="What is it?", answer=given or answer, hint={}, **case)
        return replace(made, sample=replace(made.sample, answer=answer, category="maths"))

    return make


# --- the output


@pytest.mark.parametrize(
    ("printed", "answer"),
    [
        ("42", "42"),
        ("x = 42", "42"),
        ("the value is 42, as hoped", "42"),
        ("42.0", "42"),
        ("3.14159265", "3.1416"),
        ("7/12", r"\frac{7}{12}"),
        ("2*sqrt(3)", r"2\sqrt{3}"),
        ("36 - 9*pi", r"36 - 9\pi"),
        ("area: 9*(4 - pi)", r"36 - 9\pi"),
        ("a\n" * 100 + "42", "42"),
        ("image: (3, -1)", "(3, -1)"),
    ],
)
def test_printed_output_supports_the_answer_by_value(make_problem, printed, answer):
    assert output_supports_answer(make_problem(printed=printed, answer=answer)).passed


@pytest.mark.parametrize("printed", ["", "41", "-42", "420", "4 2", "done", "[41, 43]", "42\n" + "a\n" * 100, "forty"])
def test_output_without_the_answer_supports_nothing(make_problem, printed):
    found = output_supports_answer(make_problem(printed=printed))
    assert (found.passed, found.reason) == (False, "unsupported")


def test_a_rollout_without_programs_is_unsupported(make_problem):
    assert output_supports_answer(make_problem(rounds=())).reason == "unsupported"


def test_output_of_any_round_supports_the_answer(make_problem):
    rounds = (computed("print(6 * 7)", "42"), computed("print('fine')", "fine"))
    assert output_supports_answer(make_problem(rounds=rounds)).passed


def test_with_choices_the_right_choices_value_is_looked_for(make_problem):
    case = make_problem(printed="42", answer="B", choices=("A. 41", "B. 42"))
    assert output_supports_answer(case).passed
    wrong = make_problem(printed="41", answer="B", choices=("A. 41", "B. 42"))
    assert output_supports_answer(wrong).reason == "unsupported"


def test_a_long_output_is_searched_in_bounded_time(make_problem):
    case = make_problem(printed="1 2 3 4 5 6 7 8 9\n" * 5000, answer=r"2\sqrt{3}")
    assert output_supports_answer(case).reason == "unsupported"


@pytest.mark.parametrize(
    "code",
    [
        "print(6 * 7)",
        "from math import gcd\nprint(gcd(84, 126))",
        "total = 0\nfor n in range(7):\n    total += 6\nprint(total)",
        "numbers = [42, 7]\nprint('largest:', max(numbers))",
        "print(f'{6 * 7} apples')",
    ],
)
def test_a_program_that_computes_passes(make_problem, code):
    assert program_computes(make_problem(code)).passed


@pytest.mark.parametrize(
    "code",
    [
        "print(42)",
        "print('42')",
        "print('answer: 42')",
        "x = 6 * 7\nprint(f'x = 42')",
        "answer = 42\nprint(answer)",
        "pass",
        "broken(",
        "\x00",
    ],
)
def test_a_program_that_says_what_it_was_told_fails(make_problem, code):
    assert program_computes(make_problem(code)).reason == "not_computed"


# --- the solution


@pytest.mark.parametrize(
    "said",
    [
        {"thought": "The given solution uses Euclid's algorithm."},
        {"thought": "According to the solution, we divide."},
        {"thought": "As the reference solution shows, it is even."},
        {"thought": "I convert the solution into code."},
        {"thought": "We were told that it is 42."},
        {"thought": "The solution states that x is 42."},
        {"thought": "The derivation above gives x."},
        {"final_thought": "This matches the expected answer."},
        {"final_thought": "It agrees with the ground truth."},
        {"final_thought": "The solution provided says so."},
        {"code": "# from the worked solution\nprint(6 * 7)"},
        {"code": "expected_answer = 42\nprint(6 * 7 == expected_answer)"},
        {"code": "print('as in the solution', 6 * 7)"},
    ],
)
def test_a_solution_that_shows_is_found_where_it_shows(make_case, said):
    found = solution_stays_hidden(make_case(**said))
    assert (found.passed, found.reason) == (False, "hint_mentioned")


@pytest.mark.parametrize(
    "said",
    [
        {"thought": "The equation has exactly one solution, which I look for."},
        {"thought": "The solution is given by Cramer's rule."},
        {"thought": "The given numbers are 12 and 18."},
        {"final_thought": "The only solution gives x = 42."},
        {"final_thought": "The correct answer is 42."},
        {"code": "solutions = solve(equation, x)\nprint(solutions[0])"},
        {"code": "# check the result\nassert 6 * 7 == 42"},
    ],
)
def test_solutions_of_equations_are_no_leak(make_case, said):
    assert solution_stays_hidden(make_case(**said)).passed


# --- the figure


def drawing(*, width: int = 320, height: int = 240) -> Image.Image:
    image = Image.new("RGB", (width, height), "white")
    pen = ImageDraw.Draw(image)
    pen.polygon(((60, 200), (260, 200), (100, 50)), outline="black")
    return image


def framed() -> Image.Image:
    """What plt.subplots() shows when nothing is plotted: a frame and ticks."""
    image = Image.new("RGB", (640, 480), "white")
    pen = ImageDraw.Draw(image)
    pen.rectangle((80, 57, 576, 427), outline="black")
    for x in range(80, 577, 99):
        pen.line((x, 427, x, 432), fill="black")
        pen.text((x - 8, 436), "0.2", fill="black")
    return image


def dotted() -> Image.Image:
    image = Image.new("RGB", (320, 240), "white")
    ImageDraw.Draw(image).text((150, 110), "42", fill="black")
    return image


def test_a_drawing_of_the_programs_own_passes(make_case):
    found = figure_rendered(make_case(crop=drawing()))
    assert found.passed
    assert found.score > 0.001


@pytest.mark.parametrize(
    "image",
    [
        Image.new("RGB", (200, 200), "white"),
        Image.new("RGB", (200, 200), "black"),
        Image.new("L", (640, 480), 128),
        Image.fromarray(np.tile(np.arange(256, dtype=np.uint8), (256, 1))),
        Image.fromarray(np.random.default_rng(0).integers(250, 255, (200, 200), dtype=np.uint8)),
        framed(),
        dotted(),
        drawing().resize((40, 30)),
        Image.new("RGB", (1, 1)),
    ],
    ids=["white", "black", "grey", "gradient", "faint noise", "empty axes", "a number", "tiny", "one pixel"],
)
def test_an_image_that_shows_nothing_is_no_figure(make_case, image):
    found = figure_rendered(make_case(crop=image))
    assert (found.passed, found.reason) == (False, "figure_blank")


def test_every_figure_that_came_back_counts(make_case, store):
    good = make_case(crop=drawing()).trajectory.rounds[0]
    blank = store.add_pixels(Image.new("RGB", (200, 200), "white"))
    found = figure_rendered(make_case(rounds=(good, Round("", "", Observation("ok", "", images=(blank,))))))
    assert found.reason == "figure_blank"
    assert "image 2" in found.detail


def test_a_rollout_that_showed_nothing_has_no_figure(make_case):
    assert figure_rendered(make_case(crop=None)).reason == "no_image"
    assert figure_rendered(make_case(rounds=())).reason == "no_image"


@pytest.mark.parametrize("scale", [1, 2])
def test_an_image_of_the_question_is_no_figure(make_case, make_image, scale):
    given = make_image(3, 640, 480)
    found = figure_rendered(make_case(crop=given.resize((640 // scale, 480 // scale))))
    assert (found.passed, found.reason) == (False, "not_drawn")


# --- the answer


def test_an_answer_of_the_same_value_is_verified(make_problem):
    found = answer_verified(make_problem(answer=r"\sqrt{12}", given=r"2\sqrt{3}"))
    assert (found.passed, found.score) == (True, 1.0)
    assert found.detail.startswith("maths")


@pytest.mark.parametrize("given", ["41", "42 or 43", "not 42", "6 * 7", "42%", "x" * 100_000])
def test_another_answer_is_not_verified(make_problem, given):
    assert answer_verified(make_problem(given=given)).reason == "wrong_answer"


def voter_of(verdict: str) -> Scripted:
    return Scripted(lambda turn: f'{{"reason": "so", "verdict": {verdict}}}')


def judged(case, voter=None):
    return asyncio.run(answer_judged(case, PolicyJudge(voter, n_votes=3) if voter else EmbeddedJudge()))


def test_the_embedded_judge_grades(make_problem):
    assert judged(make_problem()).passed
    assert judged(make_problem(answer="a red bicycle", given="a bicycle, red")).reason == "wrong_answer"


def test_a_judge_is_asked_only_where_no_rule_can_tell(make_problem):
    voter = voter_of("true")
    assert judged(make_problem(), voter).passed
    assert judged(make_problem(given="41"), voter).reason == "wrong_answer"
    assert judged(make_problem(answer="A", given="B", choices=("A. 1", "B. 2")), voter).reason == "wrong_answer"
    assert judged(make_problem(answer="a red bicycle", given="x" * 5000), voter).reason == "wrong_answer"
    assert voter.turns == []


@pytest.mark.parametrize(("verdict", "passes"), [("true", True), ("false", False)])
def test_most_votes_of_the_judge_decide_on_words(make_problem, verdict, passes):
    found = judged(make_problem(answer="a red bicycle", given="a bicycle, red"), voter_of(verdict))
    assert found.passed is passes


def test_answers_of_which_none_is_a_vote_decide_nothing(make_problem):
    with pytest.raises(RowError, match="no_vote: none of 3 answers is a vote"):
        judged(make_problem(answer="a red bicycle", given="a bicycle, red"), voter_of("maybe"))


# --- the drawing's need


DRAWN = "import matplotlib.pyplot as plt\nplt.plot([0, 42], [0, 1], 'ro')\nplt.title('the curve')\nplt.show()"


@pytest.mark.parametrize("printed", ["", "points marked", "x from 0 to 50"])
def test_a_drawing_that_nobody_could_do_without_passes(make_problem, printed):
    assert drawing_needed(make_problem(DRAWN, printed)).passed


@pytest.mark.parametrize("printed", ["42", "area: 42.0", "discriminant: 9\npoints: 42", "so it is 42, as drawn"])
def test_an_answer_that_was_printed_needed_no_drawing(make_problem, printed):
    found = drawing_needed(make_problem(DRAWN, printed))
    assert (found.passed, found.reason) == (False, "answer_printed")


@pytest.mark.parametrize("text", ["42", "area = 42", "Area: 42.0"])
def test_an_answer_that_the_code_writes_into_the_drawing_is_told_not_seen(make_problem, text):
    found = drawing_needed(make_problem(DRAWN.replace("the curve", text), ""))
    assert (found.passed, found.reason) == (False, "answer_printed")


def test_the_numbers_of_the_problem_may_stand_in_code_and_drawing(make_problem):
    assert drawing_needed(make_problem(DRAWN.replace("the curve", "radius 5, centre (42, 1)"), "")).passed
