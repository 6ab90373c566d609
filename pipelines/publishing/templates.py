"""Templates of cards, READMEs and pages: Jinja files, filled with facts."""

from functools import cache
from pathlib import Path
from typing import Any

import jinja2

HERE = Path(__file__).parent


def render(template: str, folder: Path = HERE, /, **facts: Any) -> str:
    """The text of ``template`` (``layouts/readmes/readme.md.jinja``) of ``folder``, without its last line end.

    Facts are escaped in pages (``.html.jinja``) only. Raises ``jinja2.UndefinedError`` for a fact that is not given.
    """
    return _environment(folder).get_template(template).render(**facts)


@cache
def _environment(folder: Path) -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        autoescape=jinja2.select_autoescape(["html.jinja"], default=False),
    )
