"""Texts: usual short forms, codes to the letter, numbers of places, slips of a reader."""

import pytest

from darkroom.pipelines.verification.grading.text_match import (
    is_to_the_letter,
    reads_the_same,
    same_place,
    same_text,
    same_words,
    similarity,
)


@pytest.mark.parametrize(
    ("answer", "expected", "same"),
    [
        ("red", "Red", True), ("the red", "red", True), ("a red", "the red", True), ("the the red", "red", False),
        ("red!", "red", True), ("!", "!", True), ("", "", False), ("", "red", False), ("5 - 6", "5-6", True),
        ("red cars", "red car", False),
    ],
)  # fmt: skip
def test_words_are_the_same_but_for_case_and_one_article(answer, expected, same):
    assert same_words(answer, expected) is same


@pytest.mark.parametrize(
    ("answer", "expected", "same"),
    [
        # short forms, but not of the first word
        ("Mill St", "Mill Street", True), ("St", "Street", False), ("Mill St no 5", "Mill Street no 5", True),
        ("tv", "television", True),
        ("colour", "color", True), ("table-tennis", "table tennis", True), ("J. R. R. Tolkien", "JRR Tolkien", True),
        ("Austen, Jane", "Jane Austen", True),
        ("www.a.com", "https://a.com/", True),
        ("www.b.com", "https://a.com/", False), ("Zurich", "Zürich", True), ("Zürich", "Zurich", False),
        # numbers in words, in any of their forms
        ("two", "2", True), ("2", "two", True), ("three dogs", "3 dogs", True), ("3rd", "third", True),
        ("twenty-first", "21st", True),
        ("twenty-ninth", "29th", True), ("ninety-first", "91st", True), ("thirtieth", "30th", True),
        ("thirtieth", "31st", False),
        ("twenty-first", "22nd", False), ("14 Mill Lane", "Mill Lane 14", True), ("row 3", "third row", True),
        ("row 4", "third row", False),
        # Roman ones count behind a name
        ("Louis the Fourteenth", "Louis XIV", True), ("Louis 14", "Louis XIV", True), ("Louis XV", "Louis XIV", False),
        ("80", "LXXX", True), ("81", "LXXX", False), ("99", "XCIX", True), ("1", "I", True), ("40", "XL", True),
        ("14th", "XIV", True),
        # a title or a preposition that one of them lacks
        ("Mr Smith Jones", "Smith Jones", True), ("Mr Smith", "Smith", False),
        ("Mr Smith Jones", "Dr Smith Jones", False),
        ("in Paris", "Paris", True), ("Paris", "in Paris", True), ("in Paris", "at Paris", False),
        ("the table", "on the table", True),
        # a second name in brackets
        ("cat (cat)", "cat", True), ("cat (dog)", "cat", False), ("cat (dog)", "cat (dog)", True),
        ("dog (cat)", "cat", False),
        ("half past twelve", "12:30", True), ("half past one", "12:30", False),
    ],
)  # fmt: skip
def test_a_text_has_its_usual_short_forms(answer, expected, same):
    assert same_text(answer, expected, "What is it?") is same


VERSION, ROOM, PHONE, SAYS = "Which version is it?", "Which room?", "Which phone number?", "What does it say?"
GAS, DOING, CHINESE = "Which gas is it?", "What is he doing?", "这是什么?"


@pytest.mark.parametrize(
    ("answer", "expected", "question", "same"),
    [
        ("1.10", "1.1", VERSION, False), ("v1.10", "1.10", VERSION, True), ("1.10", "version 1.10", VERSION, True),
        ("B12", "B 12", ROOM, True), ("B 12", "B12", ROOM, False), ("B13", "B 12", ROOM, False),
        ("room", "Room", ROOM, True),
        ("044 1234567", "0441234567", PHONE, True), ("044 1234567", "0441234567", ROOM, False),
        ("0041 44 1234567", "+41 44 123 45 67", PHONE, True), ("0042 44 1234567", "+41 44 123 45 67", PHONE, False),
        ("12.5", "12.5", SAYS, True), ("12.50", "12.5", SAYS, False), ("12,5", "12.5", SAYS, False),
        ("half past twelve", "12:30", SAYS, False), ("Mill St", "Mill Street", SAYS, False),
        ("CO", "Co", "What is the formula?", False), ("CO2", "CO₂", GAS, True), ("Co2", "CO2", GAS, False),
        ("cat", "Cat", GAS, True),
        ("taking out milk", "takes out milk", DOING, True), ("taking out milk", "takes out bread", DOING, False),
        ("carrying milk", "takes milk", DOING, False), ("taking out milk", "takes out milk", "Which?", False),
        ("60 x 80 cm", "60x80 cm", "Which code?", True),
        ("这是苹果", "苹果", CHINESE, True), ("这是狗和苹果", "苹果", CHINESE, False),
        ("苹果", "一个苹果", CHINESE, True),
        ("狗", "苹果", CHINESE, False), ("这是苹果吗", "苹果", "这是苹果吗?", False),
    ],
)  # fmt: skip
def test_the_question_says_whether_every_letter_counts(answer, expected, question, same):
    assert same_text(answer, expected, question) is same


@pytest.mark.parametrize(
    ("answer", "expected", "question", "same"),
    [
        ("3", "row 3", "In which row is it?", True), ("third", "row 3", "In which row is it?", True),

        ("3rd", "row 3", "In which row is it?", True),
        ("4", "row 3", "In which row is it?", False), ("3", "row three", "In which row is it?", True),
        ("3", "row 3", "Where is it?", False),
        ("3", "3 rows", "Which rows?", False), ("3", "red row", "In which row is it?", False),
        ("3", "3", "In which row is it?", False),
    ],
)  # fmt: skip
def test_of_a_place_the_number_alone_is_enough(answer, expected, question, same):
    assert same_place(answer, expected, question) is same


@pytest.mark.parametrize(
    ("answer", "question", "counts"),
    [
        ("1.10", VERSION, True),
        ("1.10", SAYS, True),
        ("110", VERSION, False),
        ("1.10", "How much?", False),
        ("a", VERSION, False),
    ],
)
def test_a_number_that_is_a_code_is_no_number(answer, question, counts):
    assert is_to_the_letter(answer, question) is counts


@pytest.mark.parametrize(
    ("text", "expected", "same"),
    [
        # from ten letters on, one in ten
        ("abcdefghij", "abcdefghij", True), ("abcdefghix", "abcdefghij", True), ("abcdefgh", "abcdefghij", False),
        ("abcdefghi", "abcdefghi", False), ("ABC  defghij", "abc defghij", True), ("abcdefghxy", "abcdefghij", False),
        # no digit, and no word that turns the meaning
        ("room 12 is closed", "room 12 is clossd", True), ("room 12 is closed", "room 13 is closed", False),
        ("not a long text at all", "no a long text at all", False),
        ("a long text or two here", "a long text of two here", False),
        ("You don't have to enter the building here", "You do have to enter the building here", False),
        ("You don’t have to enter the building here", "You do have to enter the building here", False),
        ("You don't have to enter the building here", "You don't have to enter the buildinq here", True),
    ],
)  # fmt: skip
def test_a_slip_is_forgiven_in_a_long_text_unless_it_may_turn_the_meaning(text, expected, same):
    assert reads_the_same(text, expected) is same
    assert reads_the_same(expected, text) is same


def test_similarity_looks_at_neither_case_nor_spaces():
    assert similarity("ABC  d", "abc d") == 1
    assert similarity("abcd", "abce") == 0.75
