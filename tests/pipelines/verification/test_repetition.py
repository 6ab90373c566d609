import random
import time

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from darkroom.pipelines.verification.repetition import (
    DARKROOM,
    MIN_CHARS,
    PAPER,
    Repetition,
    RepetitionRule,
)


def is_repetitive(text):
    return Repetition().feed(text)


def test_a_sentence_said_again_and_again_is_found():
    assert is_repetitive("I will look at the image again and see the sign more closely. " * 14)


def test_a_turn_that_fails_again_and_again_is_found():
    turn = "I crop the sign.\n<code>\n```python\nimage.crop((1, 2, 3)).save('crop.png')\n```\n</code>\n"
    assert is_repetitive("First I think about what is asked here, and where it may be.\n" + turn * 12)


def test_it_is_found_before_it_is_over():
    watch, sentence = Repetition(), "Let me check once more whether the door is red or green. "
    n_seen = next(n for n in range(1, 100) if watch.feed(sentence))
    assert n_seen * len(sentence) < MIN_CHARS + 2 * len(sentence)


def table(n_rows, n_columns):
    draw = random.Random(0)
    return "\n".join(" ".join(f"{draw.random():.2f}" for _ in range(n_columns)) for _ in range(n_rows))


@pytest.mark.parametrize(
    "text",
    [
        table(60, 12),
        "\n".join(f"{number}\t{number**2}\t{number**3}" for number in range(120)),
        str(np.eye(25, dtype=int).tolist()),
        "\n".join(f"| item {number} | {number * 3} | {number % 7} |" for number in range(80)),
        ", ".join(str(number % 10) for number in range(900)),
    ],
    ids=["measured", "powers", "identity", "markdown", "digits"],
)
def test_a_table_of_numbers_is_no_circle(text):
    assert len(text) > MIN_CHARS
    assert not is_repetitive(text)


def test_a_long_program_of_similar_lines_is_no_circle():
    program = "\n".join(
        f"crop_{n} = image.crop(({n}, {2 * n}, {n + 40}, {2 * n + 40}))\ncrop_{n}.save('crop_{n}.png')"
        for n in range(40)
    )
    assert not is_repetitive(program)


def test_numbers_without_end_are_found_in_the_end():
    assert is_repetitive("0, " * 3000)


def test_a_short_text_is_never_repetitive():
    assert not is_repetitive("no " * ((MIN_CHARS - 1) // 3))


@given(st.text(alphabet="ab \n", max_size=1600), st.lists(st.integers(1, 50), max_size=40))
def test_pieces_make_no_difference(text, cuts):
    whole, pieces = Repetition(), Repetition()
    whole.feed(text)
    at = 0
    for cut in cuts:
        pieces.feed(text[at : at + cut])
        at += cut
    pieces.feed(text[at:])
    assert pieces.found == whole.found


WORDS = ["the sign is red, ", "look again; ", "x", "no more than that. "]


def places(text, substring):
    """Characters of ``text`` that lie in an occurrence, and how many occurrences fit beside one another."""
    starts = [start for start in range(len(text) - len(substring) + 1) if text.startswith(substring, start)]
    inside = {at for start in starts for at in range(start, start + len(substring))}
    n_apart, end = 0, -1
    for start in starts:
        if start >= end:
            n_apart, end = n_apart + 1, start + len(substring)
    return len(inside), n_apart


def by_hand(text, rule=DARKROOM):
    """The rule, for texts whose every window has a letter in it."""
    windows = {text[at : at + length] for length in rule.windows for at in range(len(text) - length + 1)}
    found = [places(text, window) for window in windows]
    most = max((covered for covered, n_apart in found if n_apart >= rule.times), default=0)
    return len(text) >= rule.min_chars and most > rule.share * len(text)


def test_the_rule_has_the_papers_share_and_five_places():
    rule = RepetitionRule()
    assert (rule.windows, rule.share, rule.times) == ((40, 80, 160, 320, 640), 0.5, 5)
    assert rule == DARKROOM
    assert rule.min_chars == MIN_CHARS


@settings(max_examples=15)
@given(st.lists(st.sampled_from(WORDS), min_size=4, max_size=30))
def test_the_papers_rule_is_what_counting_by_hand_says(words):
    text = "".join(words)
    watch = Repetition(PAPER)
    watch.feed(text)
    assert watch.found == by_hand(text, PAPER)


def test_a_short_circle_is_one_by_the_papers_rule_alone():
    """A loop of 60 characters, eight times."""
    text = "I look at the sign again, and again I cannot read the words." * 8
    assert len(text) == 480
    assert Repetition(PAPER).feed(text)
    assert not is_repetitive(text)


def test_nothing_said_twice_is_no_circle_by_the_papers_rule():
    program = (
        "image = Image.open(image_path)\ncrop = image.crop((10, 20, 300, 400)).resize((600, 800))\nprint(crop.size)\n"
    )
    assert not Repetition(PAPER).feed("I crop the sign, because it is too small to read as it is.\n" + program)


@pytest.mark.parametrize("rule", [RepetitionRule(), PAPER], ids=["darkroom", "paper"])
def test_a_long_text_takes_linear_time(rule):
    """Four times the text, in far less than sixteen times the time: circles that overlap themselves are the worst."""

    def seconds(n_chars):
        start = time.process_time()
        Repetition(rule).feed("ab" * (n_chars // 2))
        return time.process_time() - start

    seconds(1000)
    short, long = min(seconds(5_000) for _ in range(3)), min(seconds(20_000) for _ in range(3))
    assert long < 10 * short


@pytest.mark.soak
@settings(max_examples=15)
@given(st.lists(st.sampled_from(WORDS), min_size=60, max_size=80))
def test_it_is_what_counting_every_substring_by_hand_says(words):
    text = "".join(words)
    assert is_repetitive(text) == by_hand(text)


@pytest.mark.parametrize("n_words", [1, 2, 3, 4])
def test_circles_of_any_length_are_found_as_by_hand(n_words):
    text = ("".join(WORDS[:n_words]) * 60)[:1200]
    assert is_repetitive(text)
    assert by_hand(text)


def test_a_program_that_was_mended_twice_is_no_circle():
    program = (
        "image = Image.open(image_path)\ncrop = image.crop((10, 20, 300, 400)).resize((600, 800))\ncrop.save('a.png')\n"
    )
    assert not is_repetitive((program * 2 + "It failed, so I write it anew.\n") * 2)
