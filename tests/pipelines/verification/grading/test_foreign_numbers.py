"""Numbers of other languages are read where the question is in one, and nothing else is."""

import pytest

from darkroom.pipelines.verification.grading.number_words import as_english

GERMAN, SPANISH, CHINESE, ENGLISH = "Wie hoch ist der Turm?", "¿Cuántos perros hay?", "图中有几个人?", "How high is it?"


@pytest.mark.parametrize(
    ("text", "question", "expected"),
    [
        ("18,50 €", ENGLISH, "18.50 €"),
        ("-7,5 °C", ENGLISH, "-7.5 °C"),
        ("1.250 m", GERMAN, "1250 m"),
        ("1.250,75 m", GERMAN, "1250.75 m"),
        ("tres perros", SPANISH, "3 perros"),
        ("五个人", CHINESE, "5"),
        ("二十三人", CHINESE, "23"),
        ("图中有5个人。", CHINESE, "5"),
        ("3米", "这张桌子有多长?", "3 米"),
    ],
)
def test_a_number_is_read_as_its_language_writes_it(text: str, question: str, expected: str) -> None:
    assert as_english(text, question) == expected


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("1.250 m", ENGLISH),
        ("1,250", ENGLISH),
        ("1,2,3", ENGLISH),
        ("once", ENGLISH),
        ("五六", CHINESE),
        ("没有5个人", CHINESE),
        ("5个或6个", CHINESE),
        ("树上有5只鸟", CHINESE),
        ("1.25.3 m", GERMAN),
        ("12," * 30, ENGLISH),
    ],
)
def test_any_other_text_stays_as_it_is(text: str, question: str) -> None:
    assert as_english(text, question) == text
