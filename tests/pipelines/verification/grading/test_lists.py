"""Lists: where they are split, which order counts, and what pairs with what."""

import pytest

from darkroom.pipelines.verification.grading.lists import (
    MAX_ELEMENTS,
    both_signs,
    elements,
    paired,
    same_element,
    same_list,
    solutions,
    tight,
    variable,
)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("red, green and blue", ("red", "green", "blue")), ("red; green, x; blue", ("red", "green, x", "blue")),
        ("[1, 2]", ("1", "2")), ("{a, b}", ("a", "b")), (r"\{a, b\}", ("a", "b")),
        ("(1, 2), (3, 4)", ("(1, 2)", "(3, 4)")),
        ("[(1, 2), (3, 4)]", ("(1, 2)", "(3, 4)")), ("(a)(b)", ("(a)(b)",)), ("- red\n- green", ("red", "green")),
        ("1. red\n\n2. green\n", ("red", "green")), ("a\nb,", ("a", "b")), ("both red and green", ("red", "green")),
        ("1,200, 3", ("1,200", "3")), ("1,200", ("1,200",)), ("1,2,3", ("1", "2", "3")),
        ("red, and blue", ("red", "blue")),
        ("salt & pepper", ("salt", "pepper")), ("a", ("a",)),
        # an element is empty
        ("red,", ()), ("red,,blue", ()), (", red", ()), ("", ()),
    ],
)  # fmt: skip
def test_a_list_is_split_outside_of_brackets(text, parts):
    assert elements(text) == parts


def test_an_and_parts_elements_unless_it_is_told_not_to():
    assert elements("salt and pepper, oil") == ("salt", "pepper", "oil")
    assert elements("salt and pepper, oil", at_and=False) == ("salt and pepper", "oil")
    assert elements("both a and b", at_and=False) == ("both a and b",)
    assert elements("a, and b", at_and=False) == ("a", "b")


def test_sixty_four_elements_are_a_list_and_one_more_is_none():
    assert MAX_ELEMENTS == 64
    assert len(elements(", ".join("a" * 64))) == 64
    assert elements(", ".join("a" * 65)) == ()
    steps = [f"step {letter}{more}" for letter in "abcdefgh" for more in "abcdefgh"]
    assert same_list(" > ".join(steps), ", ".join(steps), is_ordered=True)
    assert not same_list(" > ".join([*steps, "x"]), ", ".join([*steps, "x"]), is_ordered=True)


@pytest.mark.parametrize(
    ("text", "values", "name"),
    [
        ("x = -2 or x = 5", ("-2", "5"), "x"), ("x_1 = -2, x_2 = 5", ("-2", "5"), "x"),
        ("x ∈ {-2, 5}", ("-2", "5"), "x"),
        ("x = ±4", ("+4", "-4"), "x"), ("x = 2", ("2",), "x"), ("x = 2, 3", ("2", "3"), "x"),
        ("$x = 2$ and $x=3$", ("2", "3"), "x"), ("x = 2, y = 3", (), "x"), ("2, 3", (), ""), ("x =", (), "x"),
        ("", (), ""),
    ],
)  # fmt: skip
def test_solutions_are_the_values_of_one_variable(text, values, name):
    assert solutions(text) == values
    assert variable(text) == name


@pytest.mark.parametrize(
    ("parts", "signed"),
    [
        (["±4", "5"], ("+4", "-4", "5")),
        ([r"\pm 4"], ("+ 4", "- 4")),
        ([], ()),
        (["", "4"], ()),
        (["4", "-4"], ("4", "-4")),
    ],
)
def test_a_value_of_both_signs_is_two(parts, signed):
    assert both_signs(parts) == signed


@pytest.mark.parametrize(
    ("text", "form"),
    [("(1; 4)", "(1,4)"), ("[1; 4 ]", "[1,4]"), ("1; 4", "1;4"), ("$(1, 4)$", "(1,4)"), ("", "-"), (" ", "-")],
)
def test_a_point_has_one_form(text, form):
    assert tight(text) == form


@pytest.mark.parametrize(
    ("answer", "expected", "in_any_order", "in_order"),
    [
        ("a, b", "a, b", True, True), ("b, a", "a, b", True, False), ("a", "a", True, True),
        ("a", "a, b", False, False),
        ("a, b", "a", False, False), ("", "", False, False), ("a, a, b", "a, b, b", False, False),
        ("a, a, b", "a, b, a", True, False), ("a\nb", "a, b", True, True),
        # a pair is no set, and a set has no order of its own
        ("(a, b)", "{a, b}", False, False), ("(a, b)", r"\{a, b\}", False, False), ("{b, a}", "{a, b}", True, False),
        ("(a, b)", "[a, b]", True, True), ("1, 2", "[1, 2]", True, True),
        # the ways to write an order
        ("a -> b -> c", "a, b, c", False, True), ("a - b - c", "a, b, c", True, True),
        ("a then b", "a, b", False, True),
        ("first a, then b, and finally c", "a, b, c", False, True), ("first: a, second: b", "a, b", False, True),
        ("1st a, 2nd b", "a, b", False, True), ("2nd a, 1st b", "a, b", False, False),
        ("1st a, 3rd b", "a, b", False, False), ("first: a, second: b, third: c", "a, b, c", False, True),
        # other ways to write a list
        ("1. a 2. b", "a, b", True, True), ("2. b 1. a", "a, b", True, False), ("(a) x (b) y", "x, y", True, True),
        ("A B C", "A, B, C", True, True), ("A B", "A, B, C", False, False),
        ("red as well as blue", "red, blue", True, False), ("red-and-blue", "red, blue", True, False),
        ("red, blue plus green", "red, blue, green", True, False),
        ("salt and pepper, oil", "salt and pepper, oil", True, True),
        ("red and blue", "red and blue, green", False, False),
        # values of a variable
        ("x = 2 or x = 3", "2, 3", True, True), ("x = 3 or x = 2", "x = 2 or x = 3", True, False),
    ],
)  # fmt: skip
def test_a_list_has_all_elements_and_none_more_in_their_order_where_it_counts(answer, expected, in_any_order, in_order):
    assert same_list(answer, expected) is in_any_order
    assert same_list(answer, expected, is_ordered=True) is in_order


def test_a_list_may_stand_in_a_sentence_of_the_questions_words():
    assert same_list("They are red and blue.", "red, blue", question="Which colours are they?")
    assert not same_list("They are red and blue.", "red, blue", question="Which day?") or same_list(
        "They are red, blue", "red, blue"
    )


@pytest.mark.parametrize(
    ("element", "expected", "tolerance", "same"),
    [
        ("12", "12.0", 0, True), ("103", "100", 0.05, True), ("106", "100", 0.05, False), ("103", "100", 0, False),
        ("red", "Red", 0, True), ("red", "12", 0, False), ("(1,4)", "(1, 4)", 0, True), ("(1;4)", "(1, 4)", 0, True),
        ("red (a colour)", "red", 0, True), ("red (not)", "red", 0, False), ("red (x)", "red (y)", 0, False),
        ("red (x)", "red (x)", 0, True), ("blue (a colour)", "red", 0, False), ("twelve", "12", 0, True),
    ],
)  # fmt: skip
def test_elements_are_compared_as_numbers_where_both_are_and_else_as_words(element, expected, tolerance, same):
    assert same_element(element, expected, question="", tolerance=tolerance) is same


@pytest.mark.parametrize(
    ("parts", "expected", "are_paired"),
    [
        ("ab", "ba", True),
        ("aa", "ab", False),
        ("a", "ab", False),
        ("ab", "a", False),
        ("", "", True),
        ("aab", "aba", True),
    ],
)
def test_each_element_finds_one_of_its_own(parts, expected, are_paired):
    assert paired(parts, expected, str.__eq__) is are_paired


def test_the_first_element_that_fits_is_taken():
    assert paired(["a", "ab"], ["a", "ab"], lambda part, each: each in part)
    assert not paired(["ab", "a"], ["a", "ab"], lambda part, each: each in part)


@pytest.mark.parametrize(
    ("element", "expected", "same"),
    [
        ("A2", "A-2", True), ("A: 2", "A-2", True), ("A → 2", "A-2", True), ("A) 2", "A-2", True),
        ("a-b", "a: b", True),
        ("A-3", "A-2", False), ("B-2", "A-2", False), ("2-A", "A-2", False), ("A-22", "A-2", False),
        ("no", "n-o", False),
        ("△ABC", "ABC", True), ("△ABD", "ABC", False),
    ],
)  # fmt: skip
def test_a_pair_is_one_letter_and_what_goes_with_it(element, expected, same):
    assert same_element(element, expected, question="Which goes with which?", tolerance=0) is same
