"""Claims against measurements that are written down: at each bound, and where a measurement is missing."""

import pytest

from darkroom.pipelines.verification.checks.claims import Claim, Situation, View, claims_in, contradiction
from darkroom.pipelines.vision.visibility import Visibility

SMALL, SEEN = 28.0, 56.0


def claim(kind: str, phrase: str = "", *, of_now: bool = False) -> Claim:
    return Claim(kind, phrase, of_now)


def said_of(one: Claim, start: Visibility, now: Visibility | None = None) -> str | None:
    return contradiction(one, Situation(start, now, ()))


def said_of_views(one: Claim, *views: View) -> str | None:
    return contradiction(one, Situation(Visibility(), None, views))


def view(enlargement: float | None = 1.0, share: float | None = 1.0, **more: bool | None) -> View:
    return View(Visibility(), enlargement, share, **more)


@pytest.mark.parametrize(
    ("phrase", "number"),
    [
        ("fivefold", 5.0), ("3x", 3.0), ("the third crop", 3.0), ("doubled", 2.0), ("tripling", 3.0), ("twice", 2.0),
        ("2.5 times", 2.5),
        ("two of three crops", 3.0), ("enlarged", 1.0), ("Twelve times", 12.0), ("zero", 0.0), ("", 1.0),
    ],
)  # fmt: skip
def test_the_last_number_of_a_claim_is_its_number(phrase, number):
    assert claim("times", phrase).number == number


@pytest.mark.parametrize(
    ("kind", "field", "holds", "contradicted"),
    [
        ("too_small", "side", SEEN - 0.1, SEEN), ("too_faint", "levels", 95.9, 96.0), ("clear", "levels", 48.0, 47.9),
        ("lit", "levels", 48.0, 47.9), ("clear", "side", SMALL, SMALL - 0.1),
        ("turned", "angle", 2.0, 1.9), ("turned", "angle", 180.0, 0.0), ("slightly_turned", "angle", 30.0, 30.1),
        ("slightly_turned", "angle", 330.0, 329.0), ("sideways", "angle", 45.0, 44.9),
        ("sideways", "angle", 135.0, 135.1),
        ("upside_down", "angle", 110.0, 109.9), ("upright", "angle", 2.0, 2.1), ("upright", "angle", 358.0, 357.9),
    ],
)  # fmt: skip
def test_a_claim_holds_up_to_its_bound(kind, field, holds, contradicted):
    assert said_of(claim(kind), Visibility(**{field: holds})) is None
    assert said_of(claim(kind), Visibility(**{field: contradicted})) is not None


@pytest.mark.parametrize("kind", ["too_small", "too_faint", "clear", "lit", "turned", "upright", "unknown"])
def test_what_was_not_measured_contradicts_nothing(kind):
    assert said_of(claim(kind), Visibility()) is None


def test_what_was_so_at_the_start_or_is_so_now_may_be_said_unless_it_is_said_of_now():
    small, large = Visibility(side=10.0), Visibility(side=99.0)
    assert said_of(claim("too_small"), small, large) is None
    assert said_of(claim("too_small"), large, small) is None
    assert said_of(claim("too_small"), large, large) == "it has 99 pixels of the model"
    assert said_of(claim("too_small", of_now=True), small, large) == "it has 99 pixels of the model"
    faint, bold = Visibility(levels=5.0), Visibility(levels=250.0)
    assert said_of(claim("too_faint"), faint, bold) is None
    assert said_of(claim("too_faint", of_now=True), faint, bold) == "it spreads over 250 grey levels"


def test_clear_and_lit_are_said_of_the_last_view():
    small, large, faint = Visibility(side=10.0), Visibility(side=99.0, levels=250.0), Visibility(side=99.0, levels=5.0)
    assert said_of(claim("clear"), small) == "it has 10 pixels of the model"
    assert said_of(claim("clear"), small, large) is None
    assert said_of(claim("clear"), large, small) is not None
    assert said_of(claim("clear"), faint) == said_of(claim("lit"), faint) == "it spreads over 5 grey levels"
    assert said_of(claim("lit"), small) is None
    assert said_of(claim("lit"), faint, large) is None


def test_upright_is_said_of_the_last_view_and_turned_of_both():
    turned, upright = Visibility(angle=90.0), Visibility(angle=0.0)
    assert said_of(claim("upright"), turned, upright) is None
    assert said_of(claim("upright"), upright, turned) == "the image is turned by 90 degrees"
    assert said_of(claim("sideways"), turned, upright) is None
    assert said_of(claim("sideways", of_now=True), turned, upright) == "the image is upright"
    assert said_of(claim("sideways"), upright) == "the image is upright"


@pytest.mark.parametrize(
    ("kind", "views", "holds"),
    [
        ("enlarge", [view(1.1)], True), ("enlarge", [view(1.09)], False), ("enlarge", [view(1.0, 0.1)], False),
        ("zoom", [view(1.0, 0.8)], True), ("zoom", [view(1.0, 0.81)], False), ("zoom", [view(1.1, 1.0)], True),
        ("turn", [view(turns=True)], True), ("turn", [view(turns=None)], True), ("turn", [view(turns=False)], False),
        ("relight", [view(relights=True)], True), ("relight", [view(relights=None)], True),
        ("relight", [view(relights=False)], False),
        # any of the views, and one that could not be measured is none to contradict
        ("enlarge", [view(1.0), view(2.0)], True), ("enlarge", [view(1.0), view(1.0)], False),
        ("enlarge", [view(None)], True),
        ("turn", [view(1.0, None, turns=False)], True), ("enlarge", [view(1.0, None)], True),
    ],
)  # fmt: skip
def test_what_was_done_shows_in_a_view(kind, views, holds):
    assert (said_of_views(claim(kind), *views) is None) is holds


@pytest.mark.parametrize(
    ("phrase", "views", "holds"),
    [
        ("5x", [view(5.0)], True), ("5x", [view(4.17)], True), ("5x", [view(6.25)], True), ("5x", [view(4.1)], False),
        ("5x", [view(6.3)], False),
        ("9x", [view(3.0)], True), ("9x", [view(2.7)], False), ("2x", [view(8.0), view(4.0)], False),
        ("2x", [view(4.0), view(8.0)], True),
        ("2x", [view(3.0), view(6.0)], True), ("2x", [view(3.0), view(9.0)], False),
    ],
)  # fmt: skip
def test_times_are_along_a_side_or_in_area_of_the_image_or_an_earlier_view(phrase, views, holds):
    assert (said_of_views(claim("times", phrase), *views) is None) is holds


@pytest.mark.parametrize(("n_views", "holds"), [(1, False), (2, True), (3, True)])
def test_so_many_views_were_shown_as_are_claimed(n_views, holds):
    assert (said_of_views(claim("views", "two crops"), *[view()] * n_views) is None) is holds


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("enlarge", "nothing was enlarged"), ("zoom", "no part was cut out or enlarged"),
        ("turn", "nothing was turned"),
        ("relight", "neither contrast nor brightness changed"), ("times", "nothing was enlarged as many times"),
        ("views", "fewer were shown"),
    ],
)  # fmt: skip
def test_what_no_view_shows_is_said(kind, why):
    assert said_of_views(claim(kind, "5x"), view(turns=False, relights=False)) == why
    assert said_of_views(claim(kind, "5x")) == "no code showed anything"


def test_claims_are_read_sentence_by_sentence_once_each():
    text = "The sign is too small. It is too small and too tiny! Is it too small? It is still too small."
    found = [one for one in claims_in(text) if one.kind == "too_small"]
    assert [one.of_now for one in found] == [False, False, True]


@pytest.mark.parametrize(
    "text",
    [
        "Is the sign too small?",
        "The sign is not too small.",
        "It says 'this is too small' here.",
        "Nothing is too small.",
        "",
    ],
)
def test_a_question_a_denial_and_a_quotation_claim_nothing(text):
    assert not [one for one in claims_in(text) if one.kind == "too_small"]


@pytest.mark.parametrize("text", ["THE SIGN IS TOO SMALL.", "İn İstanbul The Sign Is Too Small."])
def test_letters_of_either_case_claim_and_the_words_are_the_sentences_own(text):
    [found] = [one for one in claims_in(text) if one.kind == "too_small"]
    assert found.phrase in text
    assert found.phrase.casefold().endswith("too small")


def test_a_denial_in_another_clause_denies_nothing_here():
    assert [one.kind for one in claims_in("I cannot see it, but the sign is too small.")].count("too_small") == 1


@pytest.mark.parametrize(("n_before", "n_found"), [(16_000 - 23, 1), (16_000, 0)])
def test_a_text_is_read_up_to_its_16000th_character(n_before, n_found):
    text = "x. ".ljust(n_before - 1, ".") + " The sign is too small."
    assert len([one for one in claims_in(text) if one.kind == "too_small"]) == n_found
