"""Label Studio's forms, one per round, as labelling configurations made from templates in this folder.

Tasks bring ``image`` (a URL of the server), ``rules``, ``reasons``, ``question_shown``, ``record_shown`` (Markdown) and
``page`` (HTML), as far as their form shows them.
"""

from __future__ import annotations

import re
from pathlib import Path

import jinja2
from markdown_it import MarkdownIt

from annotation import choices

TEMPLATE = {
    "annotate": "record.xml.jinja",
    "rework": "record.xml.jinja",
    "cross_check": "check.xml.jinja",
    "accept": "check.xml.jinja",
    "review": "review.xml.jinja",
    "verify": "verify.xml.jinja",
    "suitability": "suitability.xml.jinja",
}
_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    undefined=jinja2.StrictUndefined,
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
GUIDE = Path(__file__).parent.parent / "GUIDE.md"
_LOOK = Path(__file__).parent / "guide.css"
_NAMED = re.compile(r"(?m)(?<=^## )(.*) \(`\w+`\)$")
"""A section's heading names its round in the end, for whoever reads the whole guide."""


def form(round: str) -> str:
    """The labelling configuration of a round."""
    quantity = next(category.title for category in choices.CATEGORIES if category.name == "quantity")
    text = _ENVIRONMENT.get_template(TEMPLATE[round]).render(
        round=round,
        categories=choices.CATEGORIES,
        verdicts=choices.VERDICTS,
        reasons=choices.REASONS,
        review_reasons=choices.REVIEW_REASONS,
        matches=choices.MATCHES,
        suitabilities=choices.SUITABILITIES,
        quantity=quantity,
    )
    return text.strip()


def instructions(round: str) -> str:
    """The guide as HTML, as far as it is about this round: the introduction, where records are written or judged, and
    the round's own sections."""
    introduction, *sections = GUIDE.read_text().split("\n## ")
    if round in ("review", "verify", "suitability"):
        introduction = introduction.partition("\n")[0]
    wanted = ("annotate", "rework") if round == "rework" else (round,)
    chosen = [
        section for section in sections if section.partition("\n")[0].endswith(tuple(f"(`{one}`)" for one in wanted))
    ]
    text = _NAMED.sub(r"\1", "\n\n## ".join([introduction, *chosen]))
    # Label Studio's style sheet takes numbers, bullets and distances away
    return f'<div class="dr-guide"><style>{_LOOK.read_text()}</style>{MarkdownIt().enable("table").render(text)}</div>'
