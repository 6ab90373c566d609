"""Makes annotation/label_studio/label_studio.sql.xz: an empty, migrated PostgreSQL database of the pinned Label Studio.

    python -m tests.annotation.label_studio.label_studio_schema

It needs Label Studio installed (darkroom annotate up), and postgresql

Migrating takes a minute of CPU; the plug-in's bootstrap fills an empty database with this file instead. Run it when
label_studio.lock changes.
"""

from __future__ import annotations

import lzma
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from darkroom.annotation.label_studio.server import SCHEMA, server_of
from darkroom.annotation.label_studio.server_files import database_variables
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.workspace import Workspace
from tests.own_studio import own_home
from tests.postgres import postgres_server

SKIPPED = re.compile(r"^(--.*|SET .*;|\\.*|COMMENT ON EXTENSION .*;|)$")
"""Comments, psql's own commands, and settings of a session, which other versions of PostgreSQL may not know."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Workspace.from_environment(own_home(Path(folder))) as workspace:
        server = server_of(workspace)
        server.environment.ensure()
        with postgres_server("studio") as database:
            variables = {**server.variables(None), **database_variables(database.url), "STUDIO_SCHEMA": ""}
            python = server.environment.folder / "bin" / "python"
            migrate = [str(python), "-m", "darkroom_studio.bootstrap"]
            subprocess.run(migrate, cwd=folder, env=variables, check=True)
            dump = ["pg_dump", "--no-owner", "--no-privileges", "--inserts", database.url]
            text = subprocess.run(dump, check=True, capture_output=True, text=True).stdout
    lines = [line for line in text.splitlines() if not SKIPPED.match(line)]
    write_whole(
        SCHEMA, lzma.compress("\n".join([f"-- {server.environment.requirements[0]}", *lines]).encode(), preset=9)
    )
    print(f"wrote {SCHEMA}: {Path(SCHEMA).stat().st_size:,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
