"""The shell of an HTML page that loads nothing: styles, one script, images and data are in the page itself.

Its Content-Security-Policy runs only the page's own script, by digest. Text of rows goes through ``markupsafe`` or
``embedded_json``, never into markup.
"""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from markupsafe import Markup

from darkroom.pipelines.publishing.templates import render

_HERE = Path(__file__).parent


def html_page(
    body: Markup, *, title: str, style: str, script: str = "", has_images: bool = True, is_served: bool = False
) -> str:
    """The page; ``style`` is added to ``page.css``, which has the colours, light and dark.

    ``has_images``: in data URLs or in files beside it; ``is_served``: its script asks its own server.
    """
    images = " img-src 'self' file: data:;" if has_images else ""
    policy = f"default-src 'none';{images} style-src 'unsafe-inline'"
    if is_served:
        policy += "; connect-src 'self'"
    if script:
        policy += f"; script-src 'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
    shared = (_HERE / "page.css").read_text(encoding="utf-8")
    parts = {"style": Markup(shared + style), "body": body, "script": Markup(script)}
    return render("page.html.jinja", _HERE, policy=Markup(policy), title=title, **parts) + "\n"


def embedded_json(name: str, value: Any) -> Markup:
    """``value`` as a JSON element with the id ``name``; no HTML parser can mistake its texts for markup."""
    return embedded_text(name, json_text(value))


def json_text(value: Any) -> str:
    """``value`` as JSON that no HTML parser can mistake for markup."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def embedded_text(name: str, text: str) -> Markup:
    """What ``json_text`` gave, as an element with the id ``name``."""
    return Markup('<script type="application/json" id="{}">{}</script>').format(name, Markup(text))


def data_url(data: bytes, media_type: str = "image/png") -> str:
    """A file as an address that needs no file."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"
