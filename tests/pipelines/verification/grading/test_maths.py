"""Expressions, intervals and matrices as they are read: their bounds, and what is one form. No process is asked."""

import pytest

from darkroom.pipelines.verification.grading.maths import (
    as_rows,
    asks_for_a_form,
    in_symbols,
    other_variable,
    read_expression,
    result,
    same_form_of,
    same_spelling,
)


@pytest.mark.parametrize(
    ("text", "spelled", "letters", "name"),
    [
        ("2x+1", "2x+1", "x", ""), ("y=2x+1", "2x+1", "x", "y"), ("f(x)=2x", "2x", "x", "f"), ("2=x", "2=x", "x", ""),
        ("ab", "ab", "ab", ""), ("sin x", r"\sinx", "x", ""), ("pi", r"\pi", "", ""), ("inf", r"\infty", "", ""),
        (r"\frac{1}{2}", "1/2", "", ""), ("x^{2}", "x^2", "x", ""), ("x²", "x^2", "x", ""), ("3×5", "3*5", "", ""),
        ("√2", r"\sqrt2", "", ""), ("sqrt(x)", r"\sqrt{x}", "x", ""), ("x = y + x", "y+x", "y", "x"),
    ],
)  # fmt: skip
def test_an_expression_is_read_with_its_variables_and_what_it_is_assigned_to(text, spelled, letters, name):
    expression = read_expression(text)
    assert expression is not None
    assert (expression.spelled, "".join(sorted(expression.letters)), expression.name) == (spelled, letters, name)


@pytest.mark.parametrize("text", ["", "  ", "1 2", "1. 2", "1 .2", "xyz", r"\foo", "x=1=2", "2=x=1", "x = =", "?"])
def test_anything_else_is_no_expression(text):
    assert read_expression(text) is None


@pytest.mark.parametrize(
    ("largest", "too_large"),
    [
        ("1" * 20, "1" * 21), ("(" * 8 + "x" + ")" * 8, "(" * 9 + "x" + ")" * 9),
        ("+".join(["x^2"] * 6), "+".join(["x^2"] * 7)),
        ("x^999", "x^1000"),
        ("x^{-999}", "x^{-1000}"), ("x".ljust(200), "x".ljust(201)), ("+" * 100 + "x", "+" * 101 + "x"),
        ("x^2", "x^2^2"),
        ("x^{2}", "x^{2^2}"), ("x^2+y^3", "x^y^3"), ("{x^2}", "{x^{y^2}}"),
    ],
)  # fmt: skip
def test_an_expression_is_bounded_in_digits_depth_powers_exponents_and_length(largest, too_large):
    assert read_expression(largest) is not None
    assert read_expression(too_large) is None


@pytest.mark.parametrize(
    ("answer", "expected", "same"),
    [
        ("3×5", "3*5", True),
        ("3*5", "15", False),
        ("1/2", r"\frac{1}{2}", True),
        ("", "x", False),
        ("x", "", False),
        ("x", "y", False),
    ],
)
def test_one_form_is_spelled_in_one_way(answer, expected, same):
    assert same_spelling(answer, expected) is same


@pytest.mark.parametrize(
    ("question", "asks"),
    [("Simplify it.", True), ("Round it.", True), ("As a fraction?", True), ("In base 2?", True), ("How many?", False)],
)
def test_a_question_may_ask_for_one_form(question, asks):
    assert asks_for_a_form(question) is asks


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("negative infinity", "-∞"), ("x is greater than 3", "x > 3"), ("x is at least 3", "x ≥ 3"),
        ("one half", "1/2"),
        ("two", "2"), ("2 x", "2 x"), ("$x$", "x"), ("{x | -2 <= x < 4}", "-2 <= x < 4"),
        (r"\{x | -2 <= x < 4\}", "-2 <= x < 4"),
        ("{1, 2}", r"\{1, 2\}"), ("12 square units", "12"), ("f(x) = 2", "y = 2"), ("x times y", "x*y"),
        ("all real numbers", "ℝ"),
        ("twelve birds", "12 birds"),
    ],
)  # fmt: skip
def test_words_of_an_expression_are_symbols(text, symbols):
    assert in_symbols(text) == symbols


@pytest.mark.parametrize(("n_chars", "is_read"), [(200, True), (201, False)])
def test_words_of_a_long_text_stay_as_they_are(n_chars, is_read):
    assert in_symbols("x plus 1".ljust(n_chars)).startswith("x+1" if is_read else "x plus 1")


@pytest.mark.parametrize(
    ("text", "rows", "as_vector"),
    [
        (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", ["12", "34"], ["12", "34"]),
        ("[[1, 2], [3, 4]]", ["12", "34"], ["12", "34"]),
        ("((1,2),(3,4))", ["12", "34"], ["12", "34"]), ("[1 2; 3 4]", ["12", "34"], ["12", "34"]),
        ("[1;2]", ["1", "2"], ["1", "2"]),
        ("[[1, 2]]", ["12"], ["1", "2"]), ("[[1],[2]]", ["1", "2"], ["1", "2"]), ("(1, 2)", [], ["1", "2"]),
        ("⟨1, 2⟩", [], ["1", "2"]),
        # of unequal length, or with an empty cell
        ("[1 2; 3]", [], []), ("[[1, 2], [3]]", [], []), ("[[1,],[2,3]]", [], []), ("x", [], []), ("", [], []),
        ("(1, , 2)", [], []),
    ],
)  # fmt: skip
def test_a_matrix_has_rows_of_one_length_and_a_vector_is_a_column(text, rows, as_vector):
    assert as_rows(text) == [[*row] for row in rows]
    assert as_rows(text, is_vector=True) == [[*row] for row in as_vector]


@pytest.mark.parametrize(("n_chars", "is_read"), [(400, True), (401, False)])
def test_a_matrix_is_no_longer_than_twice_an_expression(n_chars, is_read):
    assert bool(as_rows("[[1, 2]]".ljust(n_chars))) is is_read


@pytest.mark.parametrize(
    ("answer", "expected", "same"),
    [
        ("x > 3", "(3, ∞)", True), ("(3, ∞)", "x > 3", True), ("x >= 3", "[3, ∞)", True), ("x > 3", "x >= 3", False),
        ("3 < x", "x > 3", True),
        ("3 <= x", "x >= 3", True), ("3 > x", "x < 3", True), ("3 >= x", "x <= 3", True), ("3 >= x", "x >= 3", False),
        ("x < 3", "(-∞, 3)", True), ("x <= 3", "(-∞, 3]", True), ("x <= 3", "(-∞, 3)", False),
        ("x < 3", "(3, ∞)", False),
        ("-2 < x <= 4", "(-2, 4]", True), ("-2 < x < 4", "(-2, 4]", False), ("-2 <= x < 4", "[-2, 4)", True),
        ("-2 <= x < 4", "(-2, 4)", False),
        ("(2, 4]", "(2.0, 4]", True), ("(2, 5]", "(2, 4]", False), ("(3, 4]", "[3, 4]", False),
        ("x ∈ (3, 4]", "(3, 4]", True),
        ("+3 < x", "x > 3", True), ("x > 3.14", "x > 3.14159", False), ("x > a", "x > a", True),
        ("x > a", "x > b", False),
        # another variable, or none
        ("y > 3", "x > 3", False), ("y > 3", "(3, ∞)", True), ("(3, ∞)", "y > 3", True),
        ("5", "x > 3", None), ("x > 3", "5", None), ("x = 2", "x = 2", None),
        # the length of both
        ("x > 3", "x > 3".ljust(200), True), ("x > 3", "x > 3".ljust(201), None), ("x > 3".ljust(201), "x > 3", None),
    ],
)  # fmt: skip
def test_intervals_have_the_same_ends_and_hold_or_lack_them_alike(answer, expected, same):
    assert same_form_of(answer, expected) is same


@pytest.mark.parametrize("answer", ["x=1, z=2", "y=1, x=2", "a=1, b=2 and c=3"])
def test_coordinates_follow_one_another(answer):
    assert same_form_of(answer, "(1, 2)") is None


@pytest.mark.parametrize(
    ("text", "question", "last"),
    [
        ("7^2 = 49", "What is 7^2?", "49"), ("Area = 16π", "What is the area?", "16π"),
        ("a = b = 5", "What is it?", "5"),
        ("x = 5", "What is it?", "5"), ("x = 5", "Please find y.", None), ("x = 5", "Please find x.", "5"),
        ("= 5", "q", "5"),
        ("abc = 5", "What is abc?", "5"), ("ab = 5", "What is ab?", None), ("∠A = 5", "What is ∠A?", "5"),
        ("∠B = 5", "What is ∠A?", None),
        ("∠B = 5", "∠B is 3. What is ∠A?", None), ("5 = 5", "q", None),
        # no side, none before it, none behind it, too many
        ("5", "q", None), ("", "q", None), ("x =", "q", None), ("a = b = c = 5", "q", None),
        ("x = 5".ljust(200), "q", "5"), ("x = 5".ljust(201), "q", None),
    ],
)  # fmt: skip
def test_the_last_side_is_the_result_of_what_the_question_has(text, question, last):
    assert result(text, question) == last


@pytest.mark.parametrize(
    ("name", "question", "is_other"),
    [
        ("x", "Please find y.", True),
        ("y", "Please find y.", False),
        ("x", "Which?", False),
        ("y", "solve for x and find y", False),
    ],
)
def test_a_question_may_ask_for_another_variable(name, question, is_other):
    assert other_variable(name, question) is is_other
