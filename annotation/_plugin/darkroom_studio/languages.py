"""The language of a person's pages: that of their browser, if ``languages.yaml`` has it, else English.

What is stored stays English: forms, notes of tasks and messages are translated when they are served. Pages and scripts
mark their texts as ⟦text⟧. A guide is stored in every language, the campaign's first; style hides all but the first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

_CONTENT = yaml.safe_load(Path(__file__).with_name("languages.yaml").read_text(encoding="utf-8"))
LANGUAGES: tuple[str, ...] = tuple(_CONTENT["languages"])
TEXTS = {row[0]: dict(zip(LANGUAGES, row, strict=True)) for row in _CONTENT["texts"]}
_GUIDE = re.compile(r'(?=<div class="dr-guide dr-)')
_LINE = re.compile(r"(?:\*\*([^*]+)\*\* ?|(- ))?(.*)", re.DOTALL)


def language_of(request: Any) -> str:
    """The first language of a request's ``Accept-Language`` that there is; empty without any."""
    codes = (part.strip()[:2].lower() for part in request.headers.get("Accept-Language", "")[:500].split(","))
    return next((code for code in codes if code in LANGUAGES), "")


class Phrase(str):
    """A value that is translated, too; others may be people's words."""


def translated(text: str, language: str, *values: Any) -> str:
    chosen = (_exact(value, language) if isinstance(value, Phrase) else value for value in values)
    return _exact(text, language).format(*chosen)


def marked(source: str, language: str) -> str:
    """A page or script with its marked texts in a language."""
    return re.sub("⟦([^⟧]*)⟧", lambda found: _exact(found[1], language), source)


def form_in(configuration: str, language: str) -> str:
    """A labelling configuration whose titles, hints and messages are in a language; names and aliases are no texts."""
    return re.sub('"([^"<>]*)"', lambda found: f'"{_exact(found[1], language)}"', configuration)


def note_in(note: str, language: str) -> str:
    """A note in Markdown: its headings, reasons, categories and sentences. In people's own words, stops and asterisks
    are escaped, so that none of them is taken for one of these."""
    return "\n".join(_line_in(line, language) for line in note.split("\n"))


def _line_in(line: str, language: str) -> str:
    heading, bullet, rest = _LINE.fullmatch(line).groups(default="")  # type: ignore[union-attr]  # it fits every line
    is_ours = bullet or heading == "Category:" or rest.endswith(".")
    start = f"**{_exact(heading, language)}**{' ' if rest else ''}" if heading else bullet
    return start + (_exact(rest, language) if is_ours else rest)


def project_in(project: Mapping[str, Any], language: str) -> dict[str, Any]:
    """A project of the API with its title, form and guide in a language."""
    texts = {"title": title_in, "label_config": form_in, "expert_instruction": _guide_in}
    return {**project, **{name: texts[name](project[name] or "", language) for name in texts.keys() & project.keys()}}


def title_in(title: str, language: str) -> str:
    """The title of a project, "Streets: write questions"."""
    campaign, _, round = title.rpartition(": ")
    return f"{campaign}: {_exact(round, language)}" if campaign else title


def _guide_in(guide: str, language: str) -> str:
    """A guide with the part in a language first."""
    style, *parts = _GUIDE.split(guide)
    return style + "".join(sorted(parts, key=lambda part: not part.startswith(f'<div class="dr-guide dr-{language}')))


def _exact(text: str, language: str) -> str:
    return TEXTS.get(text, {}).get(language, text)
