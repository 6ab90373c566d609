"""Templates of cards, READMEs and pages: Jinja files below this folder, filled with facts."""

from functools import cache
from pathlib import Path
from typing import Any

import jinja2

HERE = Path(__file__).parent


def render(template: str, **facts: Any) -> str:
    """The text of ``template`` (``layouts/readmes/readme.md.jinja``), without its last line end.

    Facts are escaped in pages (``.html.jinja``) only. Raises ``jinja2.UndefinedError`` for a fact that is not given.
    """
    return _environment().get_template(template).render(**facts)


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        autoescape=jinja2.select_autoescape(["html.jinja"], default=False),
    )
