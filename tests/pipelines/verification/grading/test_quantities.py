"""Quantities: how they are read, when two are one, and what a question changes about that."""

from fractions import Fraction

import pytest

from darkroom.pipelines.verification.grading.numeric import (
    MAX_NUMBER_CHARS,
    PER_CENT,
    UNITS,
    as_number,
    none_as_zero,
    read_quantity,
    same_form,
    same_number,
    same_quantity,
    same_span,
    spellings,
    units_of,
    with_unit,
    without_about,
    without_parts,
)


def read(text: str):
    quantity = read_quantity(text)
    if quantity is None:
        return None
    unit = quantity.unit.names[0] if quantity.unit else ""
    return str(quantity.value), quantity.n_digits, quantity.n_decimals, unit or quantity.noun


@pytest.mark.parametrize(
    ("text", "value", "n_digits", "n_decimals", "unit"),
    [
        ("12", "12", 2, None, ""), ("12.0", "12", 3, 1, ""), ("0.050", "1/20", 2, 3, ""), ("0", "0", 0, None, ""),
        ("+5", "5", 1, None, ""), ("-5", "-5", 1, None, ""), (".5 kg", "1/2", 1, 1, "kg"), ("7.", "7", 1, None, ""),
        ("1,234.5", "2469/2", 5, 1, ""), ("12 500", "12500", 5, None, ""), ("1'000", "1000", 4, None, ""),
        # exact ones have no digits that could be rounded
        ("3/4", "3/4", 0, None, ""), ("-1 1/2", "-3/2", 0, None, ""), ("1½", "3/2", 0, None, ""),
        ("½", "1/2", 0, None, ""), (r"-2\frac{1}{2}", "-5/2", 0, None, ""), (r"\frac{-1}{2}", "-1/2", 0, None, ""),
        ("0 1/2", "1/2", 0, None, ""),
        # powers of ten move the decimals
        ("-2e3", "-2000", 1, None, ""), ("2e-3", "1/500", 1, None, ""), ("1.25e2", "125", 3, 0, ""),
        ("1.25e-1", "1/8", 3, 3, ""), (r"6.02\times 10^{3}", "6020", 3, -1, ""), ("3×10⁸", "300000000", 1, None, ""),
        # units and what is counted
        ("12 %", "12", 2, None, "%"), (r"12\%", "12", 2, None, "%"), ("$12", "12", 2, None, "$"),
        ("-$12", "-12", 2, None, "$"), ("$-12", "-12", 2, None, "$"), (r"\$5", "5", 1, None, "$"),
        ("R$ 5", "5", 1, None, "R$"), ("5 R$", "5", 1, None, "R$"), ("€ 5.50", "11/2", 3, 2, "€"),
        ("12-foot", "12", 2, None, "ft"), (r"12\text{ cm}", "12", 2, None, "cm"), (r"45^\circ", "45", 2, None, "°"),
        ("12 square  metres", "12", 2, None, "m²"), ("5′", "5", 1, None, "ft"), ("5′′", "5", 1, None, "in"),
        ("12 apples", "12", 2, None, "apples"), ("12 Red apples", "12", 2, None, "red apples"),
        ("3 1/2 in", "7/2", 0, None, "in"),
        # case tells short names apart
        ("5 mL", "5", 1, None, "ml"), ("5 L", "5", 1, None, "l"), ("5 Metres", "5", 1, None, "m"),
        ("5 KM", "5", 1, None, "km"), ("5 Cm", "5", 1, None, "cm"),
    ],
)  # fmt: skip
def test_a_quantity_is_its_value_its_digits_and_its_unit(text, value, n_digits, n_decimals, unit):
    assert read(text) == (value, n_digits, n_decimals, unit)


def test_a_short_name_in_another_case_is_no_unit():
    for text in ("5 KM", "5 Cm", "5 MM"):
        quantity = read_quantity(text)
        assert quantity is not None
        assert quantity.unit is None


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("5 ft 11 in", 71, "in"), ("5'6\"", 66, "in"), ("5 ft 11", 71, "in"),
        ("1 hour and 30 minutes", 90, "min"), ("1h30", 90, "min"),
        ("1 h 30 min 10 s", 5410, "s"), ("2 h 1/2 min", Fraction(241, 2), "min"), ("10:30 min", 630, "s"),
    ],
)  # fmt: skip
def test_measures_of_one_dimension_add_up_in_the_smaller_unit(text, value, unit):
    quantity = read_quantity(text)
    assert quantity is not None
    assert (quantity.value, quantity.unit, quantity.n_digits, quantity.n_decimals) == (value, UNITS[unit], 0, None)


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "007", "00.5", "12th", "1st", "12 nd", "12 a", "12 very red apples", "1.2.3", "1/2/3", "1/2.5", "1/0",
        "12,5", "1,23,456", "12 13", "12–", "--5", "5 in 11 ft", "5 ft 5 ft", "5 ft 11 kg", "5 ft x",
        "1 h 1 min 1 s 1 ms",
    ],
)  # fmt: skip
def test_anything_else_is_no_quantity(text):
    assert read_quantity(text) is None


@pytest.mark.parametrize(("n_chars", "is_one"), [(MAX_NUMBER_CHARS, True), (MAX_NUMBER_CHARS + 1, False)])
def test_no_number_is_longer_than_sixty_characters(n_chars, is_one):
    assert MAX_NUMBER_CHARS == 60
    assert (read_quantity("1" * n_chars) is not None) is is_one
    span = f"1-{'2' * (n_chars - 2)}"
    assert (same_span(span, span, question="") is not None) is is_one


@pytest.mark.parametrize(
    ("answer", "expected", "same"),
    [
        # three digits and two decimals of one, and the other within half a unit of its last place
        ("3.14", "3.14159", True), ("3.1", "3.14159", False), ("0.12", "0.123", False), ("0.333", "1/3", True),
        ("0.33", "1/3", False), ("3.145", "3.14", True), ("3.1451", "3.14", False), ("3.135", "3.14", True),
        ("3.1349", "3.14", False), ("31.4", "31.42", False), ("5.00", "5.001", True), ("5.00", "5.01", False),
        ("1.005", "1.00", True), ("1.00", "0.999", True), ("3", "3.14", False), ("0.100", "0.1004", True),
        # a whole number is no other rounded, and neither is a value of as many decimals
        ("5", "5.001", False), ("5.001", "5", False), ("5.01", "5.02", False), ("12.30", "12.3", True),
    ],
)  # fmt: skip
def test_one_may_be_the_other_rounded(answer, expected, same):
    quantities = read_quantity(answer), read_quantity(expected)
    assert same_quantity(*quantities) is same
    assert same_quantity(*quantities[::-1]) is same


def test_where_an_exact_value_is_wanted_or_the_units_differ_nothing_is_rounded():
    rounded, exact = read_quantity("3.14"), read_quantity("3.14159")
    assert not same_quantity(rounded, exact, is_exact=True)
    assert not same_quantity(read_quantity("1.57"), exact, factor=2)
    third = read_quantity("1/3")
    assert same_quantity(read_quantity("33.33"), third, factor=Fraction(1, 100))
    assert not same_quantity(read_quantity("33.34"), third, factor=Fraction(1, 100))
    assert not same_quantity(read_quantity("33"), third, factor=Fraction(1, 100))
    assert not same_quantity(read_quantity("33.33"), third, factor=Fraction(1, 100), is_exact=True)
    assert same_quantity(read_quantity("1.570795"), exact, factor=2)
    assert same_quantity(rounded, rounded, is_exact=True)


@pytest.mark.parametrize(
    ("answer", "expected", "tolerance", "same"),
    [
        ("105", "100", 0.05, True), ("106", "100", 0.05, False), ("95", "100", 0.05, True), ("94", "100", 0.05, False),
        ("-105", "-100", 0.05, True), ("101", "100", 0, False), ("0.1", "0", 0.5, False),
    ],
)  # fmt: skip
def test_a_tolerance_includes_its_edge_on_both_sides(answer, expected, tolerance, same):
    assert same_quantity(read_quantity(answer), read_quantity(expected), tolerance=tolerance) is same


CM, PCT = "How wide is it in centimetres?", "What percentage is blue?"
APPLES, SPANISH = "How many red apples are there?", "¿Cuántos perros negros hay?"


@pytest.mark.parametrize(
    ("answer", "expected", "question", "same"),
    [
        # a unit that only one has
        ("12", "12 cm", CM, True), ("12", "12 cm", "How wide?", False), ("12 cm", "12", CM, True),
        ("12 m", "1200", CM, True), ("12", "12 cm", "In centimetres or metres?", False),
        ("12", "12 cm", "In kilograms?", False), ("60 min", "1 h", "", True), ("60 min", "1 km", "", False),
        # temperatures
        ("12 degrees", "12 °C", "", True), ("12 °", "12 cm", "", False), ("12 °F", "12 °C", "", False),
        # money
        ("$5", "€5", "", False), ("5", "$5", "What is it?", True), ("$5", "5", "What is it?", False),
        ("$5", "5", "What is the price?", True), ("$5", "5", "What is the price in euros?", False),
        ("$5", "5", "What is the price in $?", True), ("$5", "5", "What percentage is the tax?", False),
        # percentages
        ("2/5", "40%", "", True), ("-2/5", "-40%", "", True), ("3/2", "150%", "", True), ("0.4", "40%", "", True),
        ("1", "1%", "", False), ("1", "100%", PCT, False), ("2/5", "40%", PCT, True), ("0.4", "40%", PCT, False),
        ("3/2", "150%", PCT, False),
        ("12%", "0.12", "", True), ("12%", "0.12", PCT, False), ("12", "12%", PCT, True), ("12%", "12", "", False),
        ("9.3%", "9.3", "What is the rate?", True), ("0.3%", "0.3", "What is the rate?", False),
        ("1%", "1", "What is the rate?", False), ("-9%", "-9", "What is the rate?", True),
        # units that only say that there is one
        ("12 units", "12", "What is the area?", True), ("12 units", "12", "What is it?", False),
        ("12", "12 units", "What is the area?", False), ("12 cm", "12", "What is the area?", False),
        # what is counted
        ("12 apples", "12", APPLES, True), ("12 red apples", "12", APPLES, True), ("1 apple", "1", APPLES, True),
        ("12", "12 apples", APPLES, True), ("12 pears", "12", APPLES, False), ("12 pears", "12 apples", APPLES, False),
        ("12 apples", "12 apples", "", True), ("12 red", "12", APPLES, True), ("12 there", "12", APPLES, False),
        ("12 people", "12", "What is the population?", True), ("12 people", "12", "What is it?", False),
        ("12 goats", "12", "What is the population?", False), ("12 persons", "12", "How many people?", True),
        ("12 person", "12", "How many people?", True), ("12 persons", "12", "How many goats?", False),
        ("12 perros", "12", SPANISH, True), ("12 perros negros", "12", SPANISH, True),
        ("12 gatos", "12", SPANISH, False),
        ("12 perros", "12", "How many dogs?", False),
        # an exact value is no decimal
        ("3.14", "3.14159", "Rounded?", True), ("3.14", "3.14159", "Leave the answer exact.", False),
    ],
)  # fmt: skip
def test_the_question_says_which_unit_may_be_left_out(answer, expected, question, same):
    assert same_number(answer, expected, question=question) is same


@pytest.mark.parametrize(("answer", "expected"), [("x", "1"), ("1", "x"), ("x", "x")])
def test_what_is_no_number_is_not_compared(answer, expected):
    assert same_number(answer, expected, question="") is None


def test_a_tolerance_is_passed_on():
    assert same_number("103", "100", question="", tolerance=0.05)
    assert not same_number("103", "100", question="")


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("How wide is it in centimetres?", {"cm"}), ("In square metres?", {"m²"}), ("In METRES?", {"m"}),
        ("In m?", {"m"}), ("Where is M?", set()), ("How large in inches and kg?", {"in", "kg"}),
        ("Is it in a bar?", set()),
        ("How much in bar?", {"bar"}), ("What is the angle?", {"°"}), ("How large is angle B?", {"°"}),
        ("A diameter?", set()), ("What percentage?", {"%"}),
    ],
)  # fmt: skip
def test_a_question_names_its_units_by_the_longest_spelling(question, names):
    assert units_of(question) == {UNITS[name] for name in names}


def test_units_with_prefixes_are_multiples_of_their_own():
    for name, of, factor in (
        ("kV", "V", 1000), ("milliamperes", "A", Fraction(1, 1000)), ("mega-watt", "W", 10**6),
        ("nm", "m", Fraction(1, 10**9)), ("microseconds", "s", Fraction(1, 10**6)), ("GB", "byte", 10**9),
        ("kilo-hertz", "Hz", 1000),
    ):  # fmt: skip
        unit, own = UNITS[name], UNITS[of]
        assert unit.dimension == own.dimension
        assert unit.factor / own.factor == factor, name
    assert PER_CENT.factor == Fraction(1, 100)


SPAN = "How large is it?"


@pytest.mark.parametrize(
    ("answer", "expected", "same"),
    [
        ("60 x 80 cm", "60 cm by 80 cm", True), ("60 x 80 cm", "60 x 81 cm", False), ("60 x 80", "60 x 80 cm", False),
        ("600 x 800 mm", "60 x 80 cm", True), ("60 x 80 x 90 cm", "60 x 80 cm", False), ("60 cm", "60 x 80 cm", False),
        ("15 to 25 °C", "15-25 °C", True), ("from 15 to 25", "15-25", True), ("between 15 and 25", "15-25", True),
        ("1914-18", "1914-1918", True), ("25-15", "15-25", False), ("60 x 80", "60", None), ("60", "60", None),
        ("1 x 2 x 3 x 4", "1 x 2 x 3 x 4", None), ("1 x 2 x 3", "1 x 2 x 3", True), ("a x b", "a x b", None),
        ("2 to 4 apples", "2-4 apples", True), ("$60-$80", "60-80 $", True),
    ],
)  # fmt: skip
def test_two_or_three_numbers_share_the_last_ones_unit(answer, expected, same):
    assert same_span(answer, expected, question=SPAN) is same


@pytest.mark.parametrize(
    ("answer", "expected", "same"),
    [
        ("3/4", "3/4", True), ("6/8", "3/4", False), ("0.75", "3/4", False), (r"\frac{3}{4}", "3/4", True),
        ("0.67 m", "0.67 metres", True), ("0.670", "0.67", False), ("67 cm", "0.67 m", False), ("1,000", "1000", True),
        ("0.68", "0.67", False), ("x", "0.67", False), ("1.", "1", False), ("-3/4", "3/4", False),
    ],
)  # fmt: skip
def test_one_form_has_the_same_digits(answer, expected, same):
    assert same_form(answer, expected, question="") is same


@pytest.mark.parametrize(
    ("text", "unit", "whole"),
    [
        ("12", "cm", "12 cm"),
        ("12 m", "cm", "12 m"),
        ("12 apples", "cm", "12 apples"),
        ("x", "cm", "x"),
        ("12", "", "12"),
    ],
)
def test_only_a_number_that_names_no_unit_gets_one(text, unit, whole):
    assert with_unit(text, unit) == whole


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("No. 12", "12"), ("#5", "5"), ("exactly 5", "5"), ("(12)", "12"), ("(12", "(12"), ("twelve birds", "12 birds"),
        ("3 out of 8", "3/8"), ("three of eight", "3/8"), ("12 degrees below zero", "-12 degrees"),
        ("twelve (12)", "12"),
        ("12 (thirteen)", "12 (thirteen)"), ("12 (12 cm)", "12 (12 cm)"), ("once", "1 times"), ("twice", "2 times"),
        (r"\frac34", r"\frac{3}{4}"), ("2 euros 80", "2.80 euros"), ("€2 80 cents", "€2.80"), ("12 pieces", "12"),
        ("1990 AD", "1990"), ("5.–", "5"), ("5 times a day", "5 times per day"), ("x (x)", "x (x)"),
    ],
)  # fmt: skip
def test_a_number_is_read_without_what_says_nothing(text, number):
    assert as_number(text) == number


@pytest.mark.parametrize(
    ("text", "expected", "question", "unit", "all_of_them"),
    [
        ("12", "12", "", "", ["12"]), ("12", "12", "", "cm", ["12 cm", "12"]), ("12 m", "12", "", "cm", ["12 m"]),
        ("12", "x", "", "cm", ["12 cm"]),
        # millions that are asked for, in either direction
        ("5000000", "5", "How much, in millions?", "", ["5000000", "5"]),
        ("5", "5000000", "How much, in millions?", "", ["5", "5000000"]),
        ("5 km", "5000", "How many thousands of it?", "", ["5 km", "5000 km"]),
        ("5", "6", "In millions?", "", ["5"]), ("5000", "6000", "In thousands?", "", ["5000"]),
        ("-5000", "-5", "In thousands?", "", ["-5000", "-5000000"]), ("1000", "1", "In thousands?", "", ["1000", "1"]),
        ("999", "1", "In thousands?", "", ["999"]),
        # a clock that shows a duration
        ("1:02:03", "3723 s", "", "", ["1:02:03", "3723 s"]), ("02:03", "123 s", "", "", ["02:03", "123 s"]),
        ("02:03", "123", "", "", ["02:03"]),
        # a power of ten for a number of seven digits
        ("10^6", "1000000", "", "", ["10^6", "1e6"]), ("10^6", "1000000", "Is it 10^6?", "", ["10^6"]),
        ("10^5", "100000", "", "", ["10^5"]),
        ("5 pounds", "£5", "", "", ["5 £"]), ("5 pounds", "5 kg", "", "", ["5 pounds"]),
    ],
)  # fmt: skip
def test_a_number_has_the_spellings_that_the_question_allows(text, expected, question, unit, all_of_them):
    assert list(spellings(text, expected, question=question, unit=unit)) == all_of_them


@pytest.mark.parametrize(
    ("text", "expected", "head"),
    [
        ("4 (two men and two women)", "4", "4"), ("3: two men and a woman", "3", "3"),
        ("4 (two men and two women)", "5", None),
        ("4 (four men)", "4", None), ("1 (a man)", "1", None), ("4", "4", None), ("2 (a man, a woman)", "2", "2"),
        ("4 (2 men, 2 women)", "4", "4"), ("3 (two men and an ape)", "2", None),
    ],
)  # fmt: skip
def test_parts_that_add_up_to_the_number_are_left_out(text, expected, head):
    assert without_parts(text, expected) == (text if head is None else head)


@pytest.mark.parametrize(
    ("text", "expected", "written"),
    [
        ("no dogs", "0", "0 dogs"),
        ("None", "0", "0"),
        ("no dogs", "1", "no dogs"),
        ("no dogs, no cats", "0", "0 dogs, no cats"),
        ("no dogs", "-1", "no dogs"),
        ("no dogs", "", "no dogs"),
    ],
)
def test_none_is_a_nought_where_none_are_expected(text, expected, written):
    assert none_as_zero(text, expected) == written


@pytest.mark.parametrize(
    ("text", "expected", "tolerance", "rest"),
    [
        ("about 12.5", "12.5", 0, "12.5"), ("about 12", "12", 0, "about 12"), ("about 12", "12", 0.1, "12"),
        ("~12.5", "12.5", 0, "12.5"), ("about about 12.5", "12.5", 0, "about 12.5"), ("about x", "x", 0, "about x"),
    ],
)  # fmt: skip
def test_about_is_left_out_of_what_was_measured(text, expected, tolerance, rest):
    assert without_about(text, expected, tolerance=tolerance) == rest
