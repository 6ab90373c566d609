"""The forms: whole, with every choice that records know, and with the names that submissions are read by."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from darkroom.annotation._plugin.darkroom_studio.content import FIELDS
from darkroom.annotation._plugin.darkroom_studio.languages import translated
from darkroom.annotation.label_studio import forms
from darkroom.annotation.label_studio.forms import GUIDES, ROUND_FORMS, form, round_guide

ROUNDS = sorted(ROUND_FORMS)


def parsed(round: str) -> ET.Element:
    return ET.fromstring(form(round))


def aliases(round: str, name: str) -> list[str]:
    [field] = [one for one in parsed(round).iter("Choices") if one.get("name") == name]
    return [str(choice.get("alias")) for choice in field.iter("Choice")]


@pytest.mark.parametrize("round", ROUNDS)
def test_every_form_is_xml_and_reads_data_that_its_tasks_bring(round: str) -> None:
    shown = {value[1:] for one in parsed(round).iter() if (value := one.get("value", "")).startswith("$")}
    known = {
        "annotate": {"image", "rules"},
        "rework": {"image", "rules", "reasons"},
        "cross_check": {"image", "question_shown", "record_shown"},
        "accept": {"image", "question_shown", "record_shown"},
        "review": {"page"},
        "verify": {"image", "question_shown"},
        "suitability": {"page"},
    }
    assert shown == known[round]


@pytest.mark.parametrize("round", ["annotate", "rework", "cross_check", "accept"])
def test_a_record_form_has_the_fields_that_submissions_are_read_by(round: str) -> None:
    names = {str(one.get("name")) for one in parsed(round).iter() if one.get("toName")}
    assert names <= set(FIELDS)
    assert {"box", "category", "question", "answer", "count"} <= names
    assert aliases(round, "category") == list(forms.names(forms.CATEGORIES))


@pytest.mark.parametrize("round", ["cross_check", "accept"])
def test_a_check_offers_every_verdict_and_reason(round: str) -> None:
    assert aliases(round, "verdict") == list(forms.names(forms.OPTIONS["verdicts"]))
    assert aliases(round, "reason") == list(forms.names(forms.REASONS))


def test_only_a_cross_check_asks_for_an_answer_of_ones_own() -> None:
    assert [round for round in ROUNDS if 'name="blind_answer"' in form(round)] == ["cross_check"]


def test_the_queues_offer_what_their_verdicts_know() -> None:
    assert aliases("review", "verdict") == ["accept", "reject"]
    assert aliases("review", "reason") == list(forms.names(forms.OPTIONS["review_reasons"]))
    assert aliases("verify", "match") == list(forms.names(forms.OPTIONS["matches"]))
    assert aliases("suitability", "helps") == list(forms.names(forms.OPTIONS["suitabilities"]))


def first_part(round: str, language: str = "en") -> str:
    """What the style does not hide."""
    return round_guide(round, language).split('<div class="dr-guide')[1]


@pytest.mark.parametrize(
    ("round", "there", "elsewhere"),
    [
        ("annotate", "Writing a record", "Checking another"),
        ("rework", "Rewriting a rejected record", "Accepting"),
        ("cross_check", "Checking another annotator", "Writing a record"),
        ("accept", "Accepting", "Writing a record"),
        ("review", "Reviewing trajectories", "We collect questions"),
        ("verify", "Verifying public rows", "We collect questions"),
        ("suitability", "Judging whether a drawing would help", "We collect questions"),
    ],
)
def test_the_instructions_are_about_the_round_alone(round: str, there: str, elsewhere: str) -> None:
    html = first_part(round)
    assert there in html
    assert elsewhere not in html
    assert "(`" not in html


@pytest.mark.parametrize("round", ["annotate", "rework", "cross_check", "accept"])
def test_who_writes_or_judges_a_record_reads_the_categories_and_what_is_not_to_be_asked(round: str) -> None:
    html = first_part(round)
    for part in (*(f"<td>{category.title}</td>" for category in forms.CATEGORIES), "Do not write questions"):
        assert part in html


@pytest.mark.parametrize("round", ROUNDS)
def test_a_guide_in_another_language_has_the_same_parts(round: str) -> None:
    english = first_part(round)
    for language in GUIDES:
        html = first_part(round, language)
        assert (language == "en") == (html == english)
        for tag in ("<h2>", "<tr>", "<strong>", "<li>"):
            assert html.count(tag) == english.count(tag), (language, tag)


@pytest.mark.parametrize("language", GUIDES)
def test_a_guide_names_the_limits_and_titles_that_its_readers_meet(language: str) -> None:
    for round in ("annotate", "rework"):
        html = round_guide(round, language, 0.0125, 7)
        assert html.count("1.25 %") == len(GUIDES)
        assert (html.count("7 ×") + html.count("7 次")) == (len(GUIDES) if round == "rework" else 0)
        assert "{" not in html.partition("</style>")[2]
    for choice in (*forms.CATEGORIES, *forms.OPTIONS["verdicts"]):
        assert translated(choice.title, language) in first_part("cross_check", language)
    for choice in (*forms.OPTIONS["matches"], *forms.OPTIONS["suitabilities"]):
        shown = first_part("verify", language) + first_part("suitability", language)
        assert f"<strong>{translated(choice.title, language)}</strong>" in shown


@pytest.mark.parametrize("language", GUIDES)
def test_a_new_annotator_reads_the_guide_of_a_round_in_five_minutes(language: str) -> None:
    per_minute = 200  # words; in Chinese characters
    for round in ROUNDS:
        text = re.sub(r"<style>.*?</style>|<[^>]+>", " ", first_part(round, language), flags=re.DOTALL)
        n = len(re.sub(r"\s", "", text)) if language == "zh" else len(text.split())
        assert n <= 5 * per_minute, (round, n)
