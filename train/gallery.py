"""Sample rollouts of a training, for people: a page beside the checkpoint, and a few of them on the asset's page.

Reads ``<output>/rollouts/<step>.json``, a list of rollouts with thumbnails in ``<output>/rollouts/images/``:

{"step": 10, "sample_id": "…", "question": "…", "gold": "red", "mode": "free", "protocol": "thyme", "reward": 1.5,
 "parts": {"accuracy": 1.0, …}, "advantage": 0.5, "broken": null, "answer": "red", "final_thought": "…",
 "unanswered": null, "rounds": [{"thought", "code", "status", "text", "error", "images": ["<sha>.png"]}],
 "question_images": ["<sha>.png"]}
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from PIL import Image
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

FOLDER, IMAGES, PAGE = "rollouts", "images", "rollouts.html"
N_EXAMPLES, N_TABLED = 3, 8
SHOWN_INLINE = 1000
"""Characters of Markdown from which Dagster's UI shows a link instead (1.13)."""
_HERE = Path(__file__).parent
_SIDE = 180

Rollout = Mapping[str, Any]


def read_rollouts(output: Path) -> list[Rollout]:
    """All that were written, the newest step first, the best rollout of a question before its others."""
    files = sorted((output / FOLDER).glob("*.json"), reverse=True)
    return [rollout for path in files for rollout in sorted(json.loads(path.read_text()), key=_rank)]


def write_page(output: Path, *, title: str) -> None:
    """Writes ``rollouts.html``: every rollout with question, images, code, observations, answer and reward."""
    rollouts = read_rollouts(output)
    if not rollouts:
        return
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters |= {"code": _code, "number": _number, "signed": _signed}
    template = environment.from_string((_HERE / "gallery.html.jinja").read_text(encoding="utf-8"))
    by_step: dict[int, list[Rollout]] = {}
    for rollout in rollouts:
        by_step.setdefault(rollout["step"], []).append(rollout)
    style = (_HERE / "gallery.css").read_text(encoding="utf-8") + HtmlFormatter(style="friendly").get_style_defs(
        ".code"
    )
    said = template.render(title=title, style=Markup(style), steps=by_step, images=f"{FOLDER}/{IMAGES}")
    (output / PAGE).write_text(said, encoding="utf-8", errors="replace")


def examples(rollouts: Sequence[Rollout], output: Path) -> list[str]:
    """A few rollouts, each as one picture and one line, short enough for the asset's page itself."""
    return [_example(rollout, output) for rollout in _varied(rollouts, N_EXAMPLES)]


def table(rollouts: Sequence[Rollout], output: Path) -> str:
    """Some rollouts with their pictures and code as a Markdown table."""
    head = ("step", "question", "image", "code", "observation", "answer", "reward", "advantage")
    rows = [head, ["---"] * len(head), *(_row(rollout, output) for rollout in _varied(rollouts, N_TABLED))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def _row(rollout: Rollout, output: Path) -> tuple[str, ...]:
    rounds = rollout["rounds"]
    seen = [_picture(output, name, _SIDE) for one in rounds for name in one["images"][:1]][:2]
    said = "; ".join(_said(one) for one in rounds)
    return (
        str(rollout["step"]),
        _cell(rollout["question"], 200),
        " ".join(_picture(output, name, _SIDE) for name in rollout["question_images"][:1]),
        _cell(" ⏎ ".join(one["code"] for one in rounds), 300, code=True),
        f"{' '.join(seen)} {_cell(said, 120)}",
        f"{_answer(rollout)} (gold: {_cell(rollout['gold'], 60)})",
        f"{_number(rollout['reward'])} ({_parts(rollout)})",
        _signed(rollout["advantage"]),
    )


def _example(rollout: Rollout, output: Path) -> str:
    outcome = f"reward {_number(rollout['reward'])}, advantage {_signed(rollout['advantage'])}"
    words = f"step {rollout['step']}: {_cell(rollout['question'], 140)} → **{_answer(rollout)}** · {outcome}"
    shown = [name for one in rollout["rounds"] for name in one["images"]] or list(rollout["question_images"])
    for side in (128, 96, 72, 56, 40) if shown else ():
        line = f"{_picture(output, shown[-1], side, quality=35)}\n\n{words}"
        if len(line) < SHOWN_INLINE:
            return line
    return words[: SHOWN_INLINE - 1]


def _varied(rollouts: Sequence[Rollout], n: int) -> list[Rollout]:
    """The first of each step and question, then others: one question's group alone would show too little."""
    first: dict[tuple[int, str], Rollout] = {}
    for rollout in rollouts:
        first.setdefault((rollout["step"], rollout["sample_id"]), rollout)
    chosen = list(first.values())
    return [*chosen, *(rollout for rollout in rollouts if rollout not in chosen)][:n]


def _rank(rollout: Rollout) -> tuple[str, float]:
    return rollout["sample_id"], -(rollout["reward"] or 0.0)


def _answer(rollout: Rollout) -> str:
    if rollout["broken"] is not None:
        return f"broken: {_cell(rollout['broken'], 60)}"
    return _cell(rollout["answer"] or "no answer", 60)


def _parts(rollout: Rollout) -> str:
    return ", ".join(f"{name} {_number(value)}" for name, value in rollout["parts"].items())


def _said(one: Mapping[str, Any]) -> str:
    return f"{one['status']}: {one['error'] or one['text'] or ''}".strip(": ")


def _picture(output: Path, name: str, side: int, *, quality: int = 60) -> str:
    path = output / FOLDER / IMAGES / name
    with Image.open(path) as image:
        small = image.convert("RGB")
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    small.save(buffer, "WEBP", quality=quality)
    return f"![](data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()})"


def _cell(text: str, most: int, *, code: bool = False) -> str:
    words = " ".join(text.split())
    words = words if len(words) <= most else f"{words[: most - 1]}…"
    words = words.replace("|", "\\|")
    return f"`{words.replace('`', chr(39))}`" if code and words else words.replace("<", "&lt;")


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"


def _signed(value: float | None) -> str:
    return "none" if value is None else f"{value:+.3g}"


def _code(text: str) -> Markup:
    return Markup(highlight(text, PythonLexer(), HtmlFormatter(nowrap=True)))
