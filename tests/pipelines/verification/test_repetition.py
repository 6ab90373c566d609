import random
import time

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from darkroom.pipelines.verification.repetition import (
    DARKROOM,
    MIN_CHARS,
    PAPER,
    RULES,
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


def circle(length: int, seed: int = 0, alphabet: str = "abcdefghijklmnopqrstuvwxyz") -> str:
    draw = random.Random(seed)
    return "".join(draw.choice(alphabet) for _ in range(length))


def filled(n_chars: int, text: str) -> str:
    """``text`` behind letters that repeat nothing, so that together they have ``n_chars``."""
    return circle(n_chars - len(text), seed=1) + text


ONE = RepetitionRule(windows=(10,), times=3, min_chars=0, min_chars_without_letters=0)


@pytest.mark.parametrize(("n_times", "found"), [(2, False), (3, True)])
def test_so_many_places_make_a_circle_and_no_fewer(n_times, found):
    assert found_in(circle(10) * n_times, ONE) is found


def found_in(text: str, rule: RepetitionRule) -> bool:
    watch = Repetition(rule)
    watch.feed(text)
    return watch.found


@pytest.mark.parametrize(("n_chars", "found"), [(59, True), (60, False), (61, False)])
def test_a_circle_is_more_than_half_of_the_text(n_chars, found):
    assert found_in(filled(n_chars, circle(10) * 3), ONE) is found


@pytest.mark.parametrize(("gap", "found"), [(0, True), (1, False)])
def test_only_places_beside_one_another_count(gap, found):
    """``aaa…`` of 30 letters has three places of ten, of 29 letters two."""
    assert found_in("a" * (30 - gap), ONE) is found


@pytest.mark.parametrize(("n_chars", "found"), [(89, False), (90, True)])
@pytest.mark.parametrize("letters", [True, False])
def test_a_text_is_long_enough_from_its_least_length_on(n_chars, found, letters):
    least = {"min_chars": 90, "min_chars_without_letters": 999} if letters else {"min_chars_without_letters": 90}
    text = (circle(10, alphabet="abc" if letters else "012") * 9)[:n_chars]
    assert found_in(text, RepetitionRule(windows=(10,), times=3, **least)) is found


def test_digits_make_a_circle_only_in_a_longer_text_than_words():
    rule = RepetitionRule(windows=(10,), times=3, min_chars=0, min_chars_without_letters=1000)
    assert found_in("0123456a89" * 5, rule), "one letter in each place"
    assert not found_in("0123456789" * 5, rule)
    assert found_in("0123456789" * 100, rule)


def test_the_last_letter_of_one_piece_counts_for_the_first_places_of_the_next():
    rule = RepetitionRule(windows=(10,), times=3, min_chars=0, min_chars_without_letters=9999)
    for first in ("a", "1a", "a1", "a123456789", "1a234567890"):
        whole = ("a123456789" * 30)[: 300 - len(first)]
        watch = Repetition(rule)
        watch.feed(first.ljust(64, "."))
        watch.feed(whole)
        assert watch.found, first


@pytest.mark.parametrize(("n_chars", "found"), [(63, False), (64, True)])
def test_a_block_is_waited_for_before_it_is_looked_at(n_chars, found):
    text = (circle(10) * 7)[:n_chars]
    watch = Repetition(ONE)
    assert watch.feed(text) is found
    assert watch.found


def test_nothing_is_no_circle():
    watch = Repetition(PAPER)
    assert not watch.feed("")
    assert not watch.found


def test_rules_have_their_names_and_the_papers_has_two_places_of_any_length():
    assert RULES == {"darkroom": DARKROOM, "paper": PAPER}
    assert (PAPER.times, PAPER.min_chars, PAPER.min_chars_without_letters) == (2, 0, 0)
    assert (PAPER.windows, PAPER.share) == (DARKROOM.windows, DARKROOM.share)
    assert (DARKROOM.min_chars, DARKROOM.min_chars_without_letters) == (800, 4000)


def test_a_text_that_outgrows_its_room_is_remembered_whole():
    """Places far apart, thousands of characters and many pieces between them."""
    rule = RepetitionRule(windows=(40,), times=3, min_chars=0, share=0.0)
    pieces = [circle(40), circle(5000, 1), circle(40), *(circle(100, n) for n in range(2, 60)), circle(40)]
    watch = Repetition(rule)
    assert [watch.feed(piece) for piece in pieces][:-1] == [False] * (len(pieces) - 1)
    assert watch.found
