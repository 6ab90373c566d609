"""Number words: how far they are read, what ends them, and where the text stays as it is."""

import pytest

from darkroom.pipelines.verification.grading.number_words import (
    as_english,
    figures,
    in_digits,
    in_words,
    is_neutral_cjk,
    nth,
)

GERMAN, SPANISH, CHINESE, ENGLISH = "Wie hoch ist der Turm?", "¿Cuántos perros hay?", "图中有几个人?", "How high is it?"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "zero"), (9, "nine"), (19, "nineteen"), (20, "twenty"), (21, "twenty-one"), (30, "thirty"),
        (99, "ninety-nine"), (100, "one hundred"), (101, "one hundred one"), (199, "one hundred ninety-nine"),
        (200, "two hundred"), (999, "nine hundred ninety-nine"), (1000, "one thousand"), (1001, "one thousand one"),
        (1100, "one thousand one hundred"), (9999, "nine thousand nine hundred ninety-nine"),
    ],
)  # fmt: skip
def test_a_number_is_spelled_with_all_its_digits(number, words):
    assert in_words(number) == words
    assert in_digits(words) == str(number)


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        # parts of one, before and behind a number
        ("one and a half", "1 1/2"), ("a half", "1/2"), ("a third", "1/3"), ("one third", "1/3"),
        ("two thirds", "2/3"), ("two-thirds of it", "2/3 of it"), ("seven halves", "7/2"),
        ("3 and a half", "3 1/2"), ("3 and two thirds cups", "3 2/3 cups"), ("two and a half metres", "2 1/2 metres"),
        ("half an hour", "1/2 hour"), ("half of an hour", "1/2 hour"), ("half of a pie", "1/2 pie"),
        ("an hour and a half", "1 1/2 hour"), ("a metre and a half", "1 1/2 metre"),
        ("two and three quarters", "2 3/4"),
        # dozens
        ("a dozen eggs", "12 eggs"), ("dozen", "12"), ("half a dozen", "6"), ("two dozen eggs", "24 eggs"),
        # decimals
        ("one point five", "1.5"), ("three point one four m", "3.14 m"), ("zero point oh", "0 point oh"),
        # years
        ("eighteen ninety-five", "1895"), ("nineteen eighty-four", "1984"), ("thirteen ninety-five", "1395"),
        ("twenty ninety-five", "2095"), ("nineteen ten", "1910"), ("twenty ninety-nine", "2099"),
        # a sign
        ("minus two", "-2"), ("Negative 3", "-3"), ("plus five", "5"), ("positive two", "2"),
        # multiplied
        ("12k", "12000"), ("1.2 million", "1200000"), ("1,200 thousand", "1200000"), ("-2 million", "-2000000"),
        ("$5 million", "$5000000"), ("5M", "5000000"), ("5B", "5000000000"), ("twelve hundred", "1200"),
        ("two million people", "2000000 people"), ("-12 hundred", "-1200"),
        # what ends a number
        ("one hundred and", "100 and"), ("one hundred and a man", "100 and a man"), ("two and a dog", "2 and a dog"),
        ("a hundred and one birds", "101 birds"), ("ten-year", "10-year"),
        ("nineteen oh five", "1905"), ("twelve oh five", "12 oh 5"),
        ("one hundred thousand two hundred and three", "100203"), ("ONE", "1"), (" two", "2"), ("two ", "2 "),
        # two measures
        ("five hours and ten minutes", "5 hours 10 minutes"), ("five feet, two inches", "5 feet 2 inches"),
        ("an hour and ten minutes", "1 hour 10 minutes"), ("six feet two", "6 feet 2"),
    ],
)  # fmt: skip
def test_number_words_at_the_beginning_are_read(text, digits):
    assert in_digits(text) == digits


@pytest.mark.parametrize(
    "text",
    [
        "", "a", "I", "and", "a man", "a b", "minus x", "positive", "no two", "oh five",
        # two numbers
        "one two", "twelve thirteen", "five and six", "twelve two",
        # no years: the century below thirteen or above twenty, the year below ten
        "twelve ninety-five", "twenty-one ninety-five", "nineteen nine", "eleven eleven",
        # letters that are units, apart
        "12 k", "1.2 m", "5 M", "5 B", "12km",
    ],
)  # fmt: skip
def test_any_other_text_stays_as_it_is(text):
    assert in_digits(text) == text


def test_a_number_has_as_many_words_as_it_takes_in_four_hundred_characters():
    words = "nine hundred and ninety nine million nine hundred and ninety nine thousand nine hundred and ninety nine"
    assert in_digits(words) == "999999999"
    assert in_digits(f"two {'x' * 396}") == f"2 {'x' * 396}"
    assert in_digits(f"two {'x' * 397}") == f"two {'x' * 397}"


@pytest.mark.parametrize("question", [GERMAN, SPANISH])
@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("18,5", "18.5"), ("18,50 €", "18.50 €"), ("18,500", "18,500"), ("1.250", "1250"), ("1.250.000", "1250000"),
        ("1 250 m", "1250 m"), ("1.250,5", "1250.5"), ("12.5", "12.5"), ("-1.250 m", "-1250 m"),
        ("tres", "3"), ("zwei Hunde", "2 Hunde"), ("once", "11"), ("treinta y dos", "32"),
        ("treinta y dos perros negros", "32 perros negros"), ("y dos", "y dos"), ("los dos", "los dos"),
    ],
)  # fmt: skip
def test_numbers_are_read_as_the_questions_language_writes_them(question, text, english):
    assert as_english(text, question) == english


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("18,5", "18.5"), ("1.250,5", "1250.5"), ("1.250", "1.250"), ("1 250 m", "1 250 m"), ("tres", "tres"),
        ("zwei", "zwei"), ("1,2,3", "1,2,3"), ("18,500", "18,500"),
    ],
)  # fmt: skip
def test_in_english_a_comma_before_one_or_two_digits_is_a_point_and_no_more(text, english):
    assert as_english(text, ENGLISH) == english


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("零", "0"), ("五", "5"), ("九", "9"), ("十", "10"), ("十五", "15"), ("二十", "20"), ("二十三人", "23"),
        ("九十九个人", "99"), ("两个", "2"), ("兩個", "2"), ("12人", "12"), ("5.5", "5.5"), ("5 人。", "5"),
        ("一共五个人", "5"), ("人5", "5"), ("5狗", "5 狗"),
        # no number, two numbers, a denial, other letters before it
        ("五六", "五六"), ("二二十", "二二十"), ("十二三", "十二三"), ("人", "人"), ("5个6", "5个6"),
        ("没有5个", "没有5个"), ("约5", "约5"),
    ],
)  # fmt: skip
def test_a_chinese_number_stands_alone_or_among_words_of_the_question(text, english):
    assert as_english(text, CHINESE) == english


@pytest.mark.parametrize(("n_chars", "is_read"), [(60, True), (61, False)])
def test_a_text_of_more_than_sixty_characters_is_no_number(n_chars, is_read):
    text = "1,5".ljust(n_chars)
    assert (as_english(text, ENGLISH) == text.replace(",", ".")) is is_read
    text = "五".ljust(n_chars)
    assert (as_english(text, CHINESE).strip() == "5") is is_read


@pytest.mark.parametrize(
    ("text", "question", "is_neutral"),
    [
        ("图", "图", True),
        ("狗", "图", False),
        ("没", "没图", False),
        ("", "图", True),
        ("", "How?", False),
        ("。 ", "图", True),
    ],
)
def test_letters_of_the_question_say_nothing_unless_they_deny(text, question, is_neutral):
    assert is_neutral_cjk(text, question) is is_neutral


def test_all_number_words_of_a_text_are_figures():
    assert figures("the third of twelve cats") == "the 3rd of 12 cats"
    assert figures("veintidós perros", "es") == "22 perros"
    assert figures("two \ud800") == "two \ud800", "a lone surrogate is no text"


@pytest.mark.parametrize(
    ("word", "ordinal"),
    [("third", "3th"), ("3rd", "3th"), ("twenty-first", "21th"), ("two", "2"), ("row", "row")],
)
def test_ordinals_have_one_spelling(word, ordinal):
    assert nth(word) == ordinal
