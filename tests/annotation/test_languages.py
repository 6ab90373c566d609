"""Texts in the language of a person's browser; what people wrote is never translated."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from darkroom.annotation._plugin.darkroom_studio import content
from darkroom.annotation._plugin.darkroom_studio.languages import (
    LANGUAGES,
    TEXTS,
    form_in,
    language_of,
    marked,
    note_in,
    project_in,
    translated,
)
from darkroom.annotation._plugin.darkroom_studio.validation import find_submission_errors, task_in
from darkroom.annotation.label_studio.forms import GUIDES, ROUND_FORMS, form, round_guide
from darkroom.annotation.rounds.next_tasks import PRE_ANNOTATED, plain
from tests.annotation.desk import SIZE, box, choice, record, text

PLUGIN = Path(content.__file__).parent
OTHERS = [language for language in LANGUAGES if language != "en"]


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("fr-FR, es;q=0.5", "es"),
        ("zh-Hans-CN", "zh"),
        ("fr", ""),
        ("", ""),
        (";;,,*" * 10_000 + ",de", ""),
    ],
)
def test_the_first_language_of_the_browser_that_there_is(header: str, language: str) -> None:
    assert language_of(SimpleNamespace(headers={"Accept-Language": header})) == language


def test_the_table_is_whole_and_goes_into_pages_scripts_and_attributes_as_it_is() -> None:
    assert tuple(GUIDES) == LANGUAGES
    rows = yaml.safe_load((PLUGIN / "languages.yaml").read_text(encoding="utf-8"))["texts"]
    assert len(rows) == len(TEXTS), "a text stands there twice"
    for english, texts in TEXTS.items():
        n_values = english.count("{}")
        for language, other in texts.items():
            assert other.strip(), (english, language)
            assert not re.search(r'["\\<>⟦⟧\n]', other), (english, language)
            assert other.count("{}") == n_values, (english, language)
            assert sorted(re.findall(r"{{.*?}}|{\w+}", other)) == sorted(re.findall(r"{{.*?}}|{\w+}", english))


def test_every_marked_text_of_pages_and_scripts_and_of_forms_is_in_the_table() -> None:
    files = [file for kind in ("html", "js", "css") for file in PLUGIN.glob(f"*.{kind}")]
    texts = {text for file in files for text in re.findall("⟦([^⟧]*)⟧", file.read_text(encoding="utf-8"))}
    shown = re.compile(r'(?:value|hint|placeholder|requiredMessage)="([^"]+)"')
    forms = {text for round in ROUND_FORMS for text in shown.findall(form(round))}
    texts |= {text for text in forms if not text.startswith("$")} - {"OCR", "target"}
    texts |= {rule.title for rule in ROUND_FORMS.values()}
    assert len(texts) > 90
    assert sorted(texts - set(TEXTS)) == []


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("round", ROUND_FORMS)
def test_a_form_in_another_language_stores_the_same(round: str, language: str) -> None:
    english, other = form(round), form_in(form(round), language)
    assert other != english
    for kept in (r'\bname="[^"]*"', r'alias="[^"]*"', r'toName="[^"]*"', r'hotkey="[^"]*"', r'class\w*="[^"]*"'):
        assert re.findall(kept, other) == re.findall(kept, english)
    # a field that appears with a choice names it as the choice is shown
    for condition in re.findall(r'whenChoiceValue="([^"]*)"', other):
        assert f'<Choice value="{condition}"' in other


@pytest.mark.parametrize("language", OTHERS)
def test_a_project_has_its_title_form_and_guide_in_a_language(language: str) -> None:
    stored = {"id": 3, "title": "A: B: write questions", "label_config": form("annotate")}
    stored["expert_instruction"] = round_guide("annotate", "en", 0.02)
    shown = project_in(stored, language)
    assert shown["title"] == f"A: B: {translated('write questions', language)}"
    first = shown["expert_instruction"].index('<div class="dr-guide')
    assert shown["expert_instruction"][first:].startswith(f'<div class="dr-guide dr-{language} ')
    assert sorted(shown["expert_instruction"]) == sorted(stored["expert_instruction"])
    assert project_in({"id": 3, "title": "Theirs", "expert_instruction": None}, language)["title"] == "Theirs"


@pytest.mark.parametrize("written", ["Open", "Location", "- Wrong answer", "Wrong answer.", "look closely.", "a\nOpen"])
def test_what_people_wrote_stays(written: str) -> None:
    for language in OTHERS:
        shown = note_in(f"**Answer:** {plain(written)}\n\n**Category:** Location", language)
        category = f"**{translated('Category:', language)}** {translated('Location', language)}"
        assert shown == f"**{translated('Answer:', language)}** {plain(written)}\n\n{category}"
        assert note_in(f"- “{plain(written)}”", language) == f"- “{plain(written)}”"


def test_the_notes_of_a_task_are_in_the_language_with_its_numbers() -> None:
    gate = {"kind": "annotate", "width": 12_000, "height": 8_000, "max_share": 0.0125}
    rules = content.rules_shown(12_000, 8_000, 0.0125)
    last = "Correct it, or ask something better about the image."
    reasons = f"**This record was rejected:**\n\n- Wrong answer\n- Other boxes\n\n{last}"
    task = {"id": 3, "data": {"gate": gate, "rules": f"{rules}\n\n{PRE_ANNOTATED}", "reasons": reasons}}
    shown = task_in(task, "de")["data"]
    assert shown["rules"].startswith("**Dieses Bild hat 12,000 × 8,000 Pixel.** Du siehst es verkleinert auf ")
    assert "1.25 % davon" in shown["rules"]
    assert "\n\n**Ein Modell hat das ausgefüllt.** Prüfe jeden Rahmen" in shown["rules"]
    assert shown["reasons"].split("\n\n")[1:] == ["- Falsche Antwort\n- Andere Rahmen", translated(last, "de")]
    assert task_in(task, "en") == task
    assert task_in({"id": 3, "data": {"other": 1}}, "de") == {"id": 3, "data": {"other": 1}}


def test_messages_are_in_the_language_with_the_same_values() -> None:
    rules = {"kind": "annotate", "max_share": 0.05, "width": SIZE[0], "height": SIZE[1]}
    large = [box(width=40, height=40), *record(question=" ")[1:]]
    said = find_submission_errors({"result": large}, rules, method="POST", query={}, language="es")
    assert said == ["El recuadro 1 cubre el 16.00 % de la imagen; el límite es el 5 %.", "La pregunta está vacía."]
    rules |= {"kind": "cross_check", "blind_first": True}
    judged = [text("blind_answer", "Accept"), choice("verdict", "accept")]
    query = {"method": "POST", "query": {}, "settled": "Location", "language": "de"}
    [sentence] = find_submission_errors({"result": judged}, rules, **query)
    assert sentence.startswith("Deine eigene Antwort war „Location“,"), "people's words are never translated"
    rules["kind"] = "annotate"
    turned = [box(value={"rotation": 30}), *record()[1:]]
    [sentence] = find_submission_errors({"result": turned}, rules, method="POST", query={}, language="de")
    assert sentence == "Rahmen 1 ist gedreht; Rahmen müssen gerade stehen."


def test_a_page_is_marked_in_every_language() -> None:
    source = (PLUGIN / "start.html").read_text(encoding="utf-8")
    for language in LANGUAGES:
        assert not set("⟦⟧") & set(marked(source, language))
    assert "Nächste Aufgabe" in marked(source, "de")
