"""The page: one HTML file that asks no network for anything; its charts are SVG in the page's own colours.

It names people: it is meant for who leads the team. The same figures give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import math
from pathlib import Path

import jinja2
from markupsafe import Markup

from annotation.concerns import concerns
from annotation.quality import Quality
from annotation.rounds import ROUNDS
from annotation.submissions import VERDICTS
from pipelines.shares import Share
from pipelines.whole import write_whole

_HERE = Path(__file__).parent


def write_report(quality: Quality, path: Path, *, title: str = "annotation") -> Path:
    """Writes the page, whole or not at all; ``title`` is the campaign's name."""
    write_whole(path, render(quality, title=title))
    return path


def render(quality: Quality, *, title: str = "annotation") -> str:
    """The page's text."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": plain, "percent": str, "range": interval, "number": number, "nice": nice}
    script = (_HERE / "report.js").read_text(encoding="utf-8")
    found = concerns(quality.people)
    flagged = {(one.person.email, one.measure) for one in found}
    return environment.get_template("report.html.jinja").render(
        title=title,
        q=quality,
        rounds=ROUNDS,
        names={row.email: row.name for row in quality.people},
        concerns=found,
        flagged=flagged,
        writers=_writers(quality, flagged),
        golds=[(error, share, False) for error, share in quality.golds.items()],
        paces=[(row.name, [row.per_hour or 0], number(row.per_hour, 1)) for row in quality.people],
        reasons=[(name, [by["cross_check"], by["accept"]], sum(by.values())) for name, by in quality.reasons.items()],
        verdicts=VERDICTS,
        style=Markup((_HERE / "report.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _writers(quality: Quality, flagged: set[tuple[str, str]]) -> list[tuple[str, Share, bool]]:
    """Authors with settled versions, the best first, and whether they are marked."""
    rows = [row for row in quality.people if row.first_pass.of]
    rows.sort(key=lambda row: (-(row.first_pass.value or 0.0), -row.first_pass.of, row.email))
    return [(row.name, row.first_pass, (row.email, "first_pass") in flagged) for row in rows]


def plain(name: str) -> str:
    """A name as people read it: ``wrong_answer`` is "wrong answer"."""
    return "OCR" if name == "ocr" else name.replace("_", " ")


def interval(share: Share) -> str:
    """The interval in percent: "78–94 %"."""
    low, high = share.interval
    return f"{100 * low:.0f}–{100 * high:.0f} %" if share.of else ""


def number(value: float | None, digits: int = 0) -> str:
    """The number with that many decimals; a dash for None."""
    return "–" if value is None else f"{value:,.{digits}f}"


def nice(top: float) -> int:
    """The next number of one digit and zeros: the top of a scale."""
    scale = int(10 ** math.floor(math.log10(max(1.0, top))))
    return math.ceil(max(1.0, top) / scale) * scale
