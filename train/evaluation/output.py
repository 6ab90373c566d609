"""The output folder of an evaluation, written whole.

report.json       every figure (``results.py``), who was asked what, digests of all that determines it
report.md, .html  the same for people, with charts
gallery.html      rollouts to look at, with their pictures
rollouts.parquet  every rollout (``rows.py``)
*.png             the charts
"""

from __future__ import annotations

import base64
import html
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from pipelines.export import write_dataset
from pipelines.gallery import write_gallery
from pipelines.images import ImageStore
from train.evaluation.charts import charts
from train.evaluation.playing import Contestant
from train.evaluation.results import Findings
from train.evaluation.rows import chosen, trajectory, write_rollouts
from train.evaluation.tables import report

REPORT = "report.json"
_STYLE = """\
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2127; max-width: 1060px; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 13px; } th { text-align: left; color: #667080; }
td, th { padding: .25rem .7rem .25rem 0; border-bottom: 1px solid #e2e6eb; vertical-align: top; }
img { max-width: 100%; } a { color: #3b6fb6; } code { font-size: 12px; }"""


def write_output(
    folder: Path, made: Mapping[str, Any], found: Findings, contestant: Contestant, store: ImageStore, *, shown: int
) -> None:
    """Writes every file beside ``folder`` and puts them in its place."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    pngs = charts(made["results"]) if found.counted else {}
    for name, png in pngs.items():
        (part / name).write_bytes(png)
    text = report(made)
    (part / "report.md").write_text(text, encoding="utf-8")
    (part / "report.html").write_text(_page(text, pngs, made["who"]["label"]), encoding="utf-8")
    write_rollouts(part / "rollouts.parquet", found, contestant)
    _write_gallery(part / "gallery.html", found, contestant, store, shown)
    (part / REPORT).write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    _replace(folder, part)


def read_report(folder: Path, inputs: str) -> dict[str, Any] | None:
    """The complete report in ``folder`` that was made from ``inputs``; None where there is none."""
    path = folder / REPORT
    if not path.is_file():
        return None
    made: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return made if made.get("inputs") == inputs and not made["n_failed"] else None


def _write_gallery(page: Path, found: Findings, contestant: Contestant, store: ImageStore, n: int) -> None:
    pairs = [(one.question.sample, trajectory(one, found, contestant)) for one in chosen(found.counted, n)]
    with tempfile.TemporaryDirectory() as rows:
        write_dataset(Path(rows), pairs, store=store)
        write_gallery(page, [Path(rows)], title=f"Rollouts of {contestant.policy.identity.model}")


def _page(text: str, pngs: Mapping[str, bytes], title: str) -> str:
    """The report as one page that asks no network for anything."""
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    for name, png in pngs.items():
        body = body.replace(f'src="{name}"', f'src="data:image/png;base64,{base64.b64encode(png).decode()}"')
    head = f'<meta charset="utf-8"><title>Evaluation of {html.escape(title)}</title><style>{_STYLE}</style>'
    link = '<p><a href="gallery.html">Rollouts to look at</a> · <a href="report.json">every figure</a></p>'
    return f"<!doctype html><html lang=en><head>{head}</head><body>{link}{body}</body></html>\n"


def _replace(folder: Path, part: Path) -> None:
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        os.replace(folder, old)
    os.replace(part, folder)
    shutil.rmtree(old, ignore_errors=True)
