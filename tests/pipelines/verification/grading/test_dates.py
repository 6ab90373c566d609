"""Dates, times of day, infinity, ratios: what is one reading, and at which hour, day and length it ends."""

import pytest

from darkroom.pipelines.verification.grading.dates import (
    MAX_CHARS,
    infinity,
    same_date,
    same_reading,
    wants_the_letters,
)


@pytest.mark.parametrize(
    ("answer", "expected", "same"),
    [
        ("3 March 2021", "2021-03-03", True), ("March 3rd, 2021", "3 March 2021", True),
        ("3. März 2021", "3 March 2021", True),
        ("13 mayo 2020", "2020-05-13", True), ("2020年3月4日", "4 March 2020", True), ("March 2021", "2021-03", True),
        ("March", "march", True), ("March", "April", False), ("on 1 March", "1 March", True),
        ("on on 1 March", "1 March", False), ("the first of March", "1 March", True),
        ("thirty-first March", "31 March", True), ("first March", "2 March", False),
        ("third of March", "3 March", True),
        # a date without its year or day is none with one
        ("3 March", "3 March 2021", False), ("3 March 2021", "3 March", False), ("March 2021", "3 March 2021", False),
        ("x", "1 March", False), ("1 March", "x", None), ("1 abc", "1 abc", None), ("1 abc March", "1 abc March", None),
        # the day or the month may come first
        ("3/4/2021", "03/04/2021", True), ("04/03/2021", "03/04/2021", False), ("3 April 2021", "03/04/2021", False),
        ("25/12/2021", "25 December 2021", True), ("25/12/2021", "12/25/2021", True),
        ("13/12/2021", "13 December 2021", True),
        ("05/05/2021", "5 May 2021", True), ("5/6/2021", "5 June 2021", False), ("3/4/21", "3/4/21", None),
        # no such day
        ("30/02/2021", "30/02/2021", None), ("30 February", "30 February", None), ("29 February", "29 February", True),
        ("29 February 2021", "29 February 2021", None), ("29 February 2020", "2020-02-29", True),
        ("2021-13-01", "2021-13-01", None), ("2021-12-01", "1 December 2021", True), ("32 March", "32 March", None),
        ("0 March", "0 March", None), ("3 March 21", "3 March 21", None), ("3.1416", "3.1416", None),
        ("3 -4 - 2021", "3/4/2021", True), ("٣ March", "٣ March", None),
        # a weekday has to be the date's
        ("Monday, 1 March 2021", "1 March 2021", True), ("Tuesday, 1 March 2021", "1 March 2021", False),
        ("Sunday 7 March 2021", "7 March 2021", True), ("Mon 1 March 2021", "Monday, 1 March 2021", True),
        ("Monday 1 March", "Tuesday 1 March", False), ("Monday 1 March", "Mon 1 March", True),
        ("Monday 1 March", "1 March", True), ("Monday, March 2021", "March 2021", True),
    ],
)  # fmt: skip
def test_a_date_is_a_year_a_month_and_a_day_as_far_as_they_are_written(answer, expected, same):
    assert same_date(answer, expected) is same


def test_a_date_has_at_most_sixty_characters():
    assert MAX_CHARS == 60
    for day, same in (("1 March 2021", "1 March 2021"), ("1/3/2021", "01/03/2021")):
        assert same_date(day.ljust(60), same)
        assert not same_date(day.ljust(61), same)


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("∞", 1), ("inf", 1), (r"\infty", 1), ("+∞", 1), ("plus infinity", 1), ("-∞", -1), ("minus infinity", -1),
        ("Negative inf", -1), ("infinite", None), ("", None), ("12", None), ("∞".ljust(61), None),
        ("-" + " " * 58 + "∞", -1), ("-" + " " * 59 + "∞", None),
    ],
)  # fmt: skip
def test_infinity_has_a_sign(text, sign):
    assert infinity(text) == sign


@pytest.mark.parametrize(
    ("answer", "expected", "same"),
    [
        # beside an hour
        ("half past four", "4:30", True), ("half after four", "4:30", True), ("half to four", "3:30", False),
        ("half of four", "4:30", False), ("a quarter past 12", "12:15", True), ("quarter to seven", "6:45", True),
        ("quarter to one", "12:45", True), ("quarter till two", "1:45", True), ("10 before 1", "12:50", True),
        ("1 past 4", "4:01", True), ("0 past 4", "4:00", False), ("59 past 4", "4:59", True),
        ("60 past 4", "5:00", False),
        ("60 to 4", "3:00", False), ("5 past 12", "12:05", True), ("5 past 13", "13:05", False),
        ("5 past 1", "1:05", True),
        ("5 past 0", "0:05", False),
        ("20 past 3 pm", "15:20", True), ("20 to 3 pm", "14:40", True),
        # halves of the day
        ("12 am", "0:00", True), ("12 pm", "12:00", True), ("1 pm", "13:00", True), ("11 pm", "23:00", True),
        ("13 pm", "13:00", False), ("0 am", "0:00", False), ("1 am", "1:00", True), ("5:30", "17:30", False),
        ("5:30 in the morning", "5:30", True), ("5:30 in the afternoon", "17:30", True), ("8 at night", "20:00", True),
        ("8 in the evening", "8 am", False), ("noon", "12:00", True), ("midnight", "0:00", True),
        ("12 noon", "12 pm", True),
        # hours, minutes and seconds
        ("5 o'clock", "5:00", True), ("5 o’clock", "5:00", True), ("5", "5:00", False), ("17 h", "17:00", True),
        ("17h30", "5:30 pm", True), ("23:59", "11:59 pm", True), ("24:00", "0:00", False), ("24:00", "24:00", True),
        ("12:60", "13:00", False), ("12:30:15", "12:30:15", True), ("12:30:15", "12:30:16", False),
        ("12:30:60", "12:31", False), ("12:30:59", "12:30:59", True), ("12:30:59", "12:30", False),
        # in words
        ("ten thirty", "10:30", True), ("nine oh five", "9:05", True), ("at 5 pm", "17:00", True),
        ("at at 5 pm", "17:00", False),
        # opening hours
        ("9:00-17:00", "9 am to 5 pm", True), ("9 to 17", "9:00-17:00", True), ("9-17", "9:00-18:00", False),
        ("9:00", "9:00-17:00", False), ("9 to x", "9:00-17:00", False),
        # a date with its time
        ("June 14 at 8 pm", "14 June, 20:00", True), ("Saturday, 14 June, 8 p.m.", "14 June at 8 pm", True),
        ("Sunday, 14 June, 8 pm", "Saturday, 14 June, 8 pm", False), ("14 June, 8 am", "14 June, 8 pm", False),
        ("14 June", "14 June, 8 pm", False), ("8 pm", "14 June, 8 pm", False),
        ("15 June, 8 pm", "14 June, 8 pm", False),
        # ratios
        ("3:4", "3/4", True), ("3 to 4", "3:4", True), ("3:5", "3:4", False), ("two to three", "2:3", True),
        ("1,000:1", "1000:1", True), ("3", "3:4", False), ("3-4", "3:4", False),
        ("∞", "inf", True), ("5", "∞", False), ("-∞", "∞", False), ("60 x 80 cm", "60cm x 80cm", True),
        ("red", "red", None), ("12", "12", None),
    ],
)  # fmt: skip
def test_two_readings_are_one(answer, expected, same):
    assert same_reading(answer, expected, question="") is same


@pytest.mark.parametrize(
    ("answer", "expected", "question", "same"),
    [
        ("3-1", "3:1", "What is the score?", True), ("3 to 1", "3-1", "What was the result?", True),
        ("3/1", "3:1", "What is the score?", False), ("3:30", "3:30", "What time is it?", True),
        ("3/30", "3:30", "What time is it?", False), ("3/30", "3:30", "", True),
        ("3/75", "3:75", "What time is it?", True),
        ("4:30", "half past four", "What is written there?", None),
    ],
)  # fmt: skip
def test_the_question_says_whether_it_is_a_score_a_time_or_a_text(answer, expected, question, same):
    assert same_reading(answer, expected, question=question) is same
    assert wants_the_letters(question) is (same is None)


@pytest.mark.parametrize(
    ("answer", "expected", "same"),
    [
        ("12:30", "12:30".ljust(60), True), ("12:30", "12:30".ljust(61), None),
        ("1:2".ljust(240), "1:2", True), ("1:2".ljust(241), "1:2", None),
    ],
)  # fmt: skip
def test_what_is_longer_is_no_reading(answer, expected, same):
    assert same_reading(answer, expected, question="") is same
