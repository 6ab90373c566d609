"""The Markdown report: tables of an evaluation's figures, by the templates in ``templates/``."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

_EDGE = re.compile(r"(?<!\\)\|")


def report(record: Mapping[str, Any]) -> str:
    """``report.md``: policy and questions, every figure, a glossary."""
    return _environment().get_template("report.md.jinja").render(record)


def accuracy_table(results: Mapping[str, Any]) -> str:
    """Accuracy by benchmark, category and cycle."""
    return _environment().get_template("accuracy.md.jinja").render(results=results).rstrip("\n")


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # Markdown, which the page renders without HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"cell": _cell, "percent": "{:.1%}".format, "table": _table}
    return environment


def _table(lines: str) -> str:
    """Rows of cells as a table with a line below its head; columns that are empty in every row are omitted."""
    head, *rows = ([cell.strip() for cell in _EDGE.split(line)[1:-1]] for line in lines.strip().splitlines())
    columns = [place for place in range(len(head)) if not place or any(row[place] for row in rows)]
    kept = ["| " + " | ".join(row[place] for place in columns) + " |" for row in (head, *rows)]
    return "\n".join([kept[0], "|" + " --- |" * len(columns), *kept[1:]]) + "\n"


def _cell(text: str) -> str:
    """Text for a table cell: one line, without cell separators."""
    return " ".join(str(text).replace("|", "\\|").replace("`", "'").split())
