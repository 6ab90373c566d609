"""``darkroom new``: a folder to start from, with settings, a source that runs, services and a README."""

from __future__ import annotations

import json
import secrets
from importlib.resources import files
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from darkroom.pipelines.command_line.console import print_line
from darkroom.sandbox.errors import UserError

_EXAMPLE = "example"
_N_QUESTIONS = 6
_FAMILY = "crop"
_FILES = {"README.md": "README.md", "compose.yaml": "compose.yaml", "gitignore": ".gitignore"}


def new(folder: Annotated[Path, typer.Argument(help="The folder to make; if it exists, it must be empty.")]) -> None:
    """Make a workspace: settings in `.env`, a source with six questions, services for Docker Compose, a README.

    `darkroom new signs`, then `cd signs` and the commands of its README.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not empty: name a folder that does not exist yet")
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder, prefix=".new-") as part:
        _write_files(Path(part))
        _write_example(Path(part))
        for entry in sorted(Path(part).iterdir()):
            entry.replace(folder / entry.name)
    print_line(f"{folder.absolute() / 'README.md'}")
    print_line(f"Next: cd {folder} && darkroom materialize {_EXAMPLE} --family {_FAMILY}")


def _write_files(folder: Path) -> None:
    from jinja2 import Template

    templates = files("darkroom.assets") / "new_workspace"
    for template, name in _FILES.items():
        (folder / name).write_bytes((templates / template).read_bytes())
    settings = Template((templates / "env.jinja").read_text(encoding="utf-8"), keep_trailing_newline=True)
    (folder / ".env").touch(mode=0o600)
    (folder / ".env").write_text(settings.render(password=secrets.token_hex(16)), encoding="utf-8")


def _write_example(folder: Path) -> None:
    """Free questions about marked places, of the bundled source, as a user would write them, and the source's file."""
    from darkroom.pipelines.records.digest import digest_bytes
    from darkroom.pipelines.sources import SourceRow
    from darkroom.pipelines.sources.catalog import EMBEDDED, Catalog
    from darkroom.pipelines.sources.columns import Columns
    from darkroom.pipelines.sources.source_config import SourceConfig

    free = (row for row in Catalog(Path()).open(EMBEDDED).rows(0) if isinstance(row, SourceRow) and not row.choices)
    with_box = (row for row in free if len(row.images) == 1 and row.truth.boxes)
    images, rows = folder / _EXAMPLE, list(islice(with_box, _N_QUESTIONS))
    images.mkdir()
    lines: list[dict[str, Any]] = []
    for row in rows:
        name = f"{digest_bytes(row.images[0])[:8]}.jpg"
        (images / name).write_bytes(row.images[0])
        target = row.truth.boxes[0]
        box = [target.x1, target.y1, target.x2, target.y2]
        lines.append({"image": name, "question": row.question, "answer": row.answer, "boxes": [box]})
    (images / "metadata.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    license = " AND ".join(sorted({part for row in rows for part in row.license.split(" AND ")}))
    columns = Columns(images="image", boxes="boxes", box_frame="corners")
    config = SourceConfig(kind="jsonl", path=_EXAMPLE, columns=columns, license=license, language="en")
    Catalog(folder / "data" / "sources").add(_EXAMPLE, config)
