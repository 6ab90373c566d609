"""The forms of the rounds: choices, labelling configurations, the fields of a submission, rectangles as boxes.

A configuration is made from a template. Tasks bring ``image`` (a URL of the server), ``rules``, ``reasons``,
``question_shown``, ``record_shown`` (Markdown) and ``page`` (HTML), as far as their form shows them. A submission:

    {"id": 7, "completed_by": 3, "updated_by": 3, "created_at": "…", "lead_time": 41.2, "was_cancelled": false,
     "result": [{"from_name": "box", "type": "rectanglelabels", "original_width": 4000, "original_height": 3000,
                 "value": {"x": 60.1, "y": 70, "width": 3, "height": 2, "rotation": 0, "rectanglelabels": ["target"]}},
                {"from_name": "question", "type": "textarea", "value": {"text": ["What does the sign say?"]}}, …]}

The order of the results is not fixed; they are found by ``from_name``. Errors are ``RowError`` with a typed reason.
Rectangles are in percent 0..100 of the image as the browser shows it, from its top left corner. Images are stored
upright and without EXIF, so that the browser shows the stored pixels.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from markdown_it import MarkdownIt

from darkroom.annotation._plugin.darkroom_studio.access import OPEN_TO
from darkroom.annotation._plugin.darkroom_studio.languages import translated
from darkroom.pipelines.publishing.rendering import render
from darkroom.pipelines.records.digest import digest

_HERE = Path(__file__).parent
GUIDES = {"en": _HERE / "GUIDE.md", **{path.stem.partition(".")[2]: path for path in sorted(_HERE.glob("GUIDE.*.md"))}}
"""The guide by language (ISO 639-1): a new file adds one."""
_HEADING = re.compile(r"(?m)(?<=^## )(.*) \(`\w+`\)$")
"""A section of the guide ends its heading with its round."""


class Choice(NamedTuple):
    """An option: its name in records, its title and hint on the page."""

    name: str
    title: str
    hint: str = ""


_TABLES = yaml.safe_load((_HERE / "forms.yaml").read_text(encoding="utf-8"))
OPTIONS = {name: tuple(Choice(*option) for option in options) for name, options in _TABLES["options"].items()}
"""The options of every choice."""
CATEGORIES = OPTIONS["categories"]
REASONS = OPTIONS["reasons"]
_NAMED = "|".join(re.escape(choice.title).replace(r"\ ", r"\s+") for options in OPTIONS.values() for choice in options)
_TITLE = re.compile(rf"(?<=\*\*)(?:{_NAMED})(?=\*\*)|(?<=\| )(?:{_NAMED})(?= \|)|(?<= )Quantity(?=[ ,])")
"""A title in the guide: in bold, in a table, or that of the category with a number."""


class RoundForm(NamedTuple):
    """The form of a round, or of a queue."""

    template: str
    title: str
    n_excluded: int
    roles: tuple[str, ...]


PROJECT_SETTINGS: dict[str, Any] = _TABLES["project"]
ROUND_FORMS = {name: RoundForm(**shown, roles=OPEN_TO[name]) for name, shown in _TABLES["rounds"].items()}


def names(choices: tuple[Choice, ...]) -> tuple[str, ...]:
    return tuple(choice.name for choice in choices)


def form(round: str) -> str:
    quantity = next(category.title for category in CATEGORIES if category.name == "quantity")
    template = f"{ROUND_FORMS[round].template}.xml.jinja"
    return render(template, _HERE / "templates", round=round, quantity=quantity, **OPTIONS).strip()


def guide_text(language: str, max_share: float, max_rework: int) -> str:
    """The guide in Markdown, with a campaign's limits, and with titles as the forms have them in this language."""
    text = GUIDES[language].read_text(encoding="utf-8")
    text = text.replace("{max_share}", f"{100 * max_share:g}").replace("{max_rework}", str(max_rework))
    return _TITLE.sub(lambda found: translated(" ".join(found[0].split()), language), text)


@cache
def round_guide(round: str, language: str = "en", max_share: float = 0.05, max_rework: int = 2) -> str:
    """The guide for one round as HTML, in this language first and then in the others, which the style hides."""
    parts = {code: _part(round, code, max_share, max_rework) for code in dict.fromkeys([language, *GUIDES])}
    # Label Studio's style sheet resets numbers, bullets and margins
    style = (_HERE / "templates" / "guide.css").read_text()
    mark = f"dr-{digest([style, *parts.values()])[:12]}"
    blocks = (f'<div class="dr-guide dr-{code} {mark}">{part}</div>' for code, part in parts.items())
    return f"<style>{style}</style>{''.join(blocks)}"


def guide_mark(guide: str) -> str:
    """The class that tells this guide from those of other rules and versions; the server keeps classes."""
    return guide.partition('<div class="')[2].partition('"')[0].split()[-1]


def _part(round: str, language: str, max_share: float, max_rework: int) -> str:
    """Its introduction, for rounds that write or judge records, and its sections."""
    introduction, *sections = guide_text(language, max_share, max_rework).split("\n## ")
    if round in ("review", "verify", "suitability"):
        introduction = introduction.partition("\n")[0]
    endings = tuple(f"(`{name}`)" for name in (("annotate", "rework") if round == "rework" else (round,)))
    chosen = [section for section in sections if section.partition("\n")[0].endswith(endings)]
    return str(MarkdownIt().enable("table").render(_HEADING.sub(r"\1", "\n\n## ".join([introduction, *chosen]))))


def practice_passages(max_share: float, max_rework: int) -> dict[str, dict[str, str]]:
    """The guide's steps on answers, boxes and verdicts, and all of it about writing and checking; HTML by language."""
    passages, places = {}, {"answer": ("annotate", 5), "box": ("annotate", 2), "verdict": ("cross_check", 2)}
    for code in GUIDES:
        text = guide_text(code, max_share, max_rework)
        passages[code] = {
            "all": "".join(_part(round, code, max_share, max_rework) for round in ("annotate", "cross_check"))
        }
        for name, (round, place) in places.items():
            steps = re.split(r"(?m)^\d\. ", text.partition(f"(`{round}`)")[2])
            passages[code][name] = str(MarkdownIt().render(steps[place].partition("\n\n")[0]))
    return passages
