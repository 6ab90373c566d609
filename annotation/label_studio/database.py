"""The server's database: SQLite, copied from a migrated template, or a PostgreSQL. The first start decides."""

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import sqlalchemy as sa

from darkroom.annotation import AnnotationError
from darkroom.pipelines.storage.atomic_write import write_whole

SQLITE = "label_studio.sqlite3"


def select_database(folder: Path, postgres: str | None) -> str | None:
    """The PostgreSQL of the first start, None for SQLite; a silent change would show an empty server."""
    stored = folder / "postgres.url"
    if stored.exists():
        url = stored.read_text()
        if postgres not in (None, url):
            raise AnnotationError(
                f"this campaign's accounts and projects are in {without_password(url)}; to use another database, "
                f"move them there and remove {stored}"
            )
        return url
    if postgres is None:
        return None
    parse_url(postgres)
    if (folder / "studio" / SQLITE).exists():
        raise AnnotationError(
            f"this campaign's accounts and projects are in SQLite; to start over on PostgreSQL, move "
            f"{folder / 'studio'} and {folder / 'journal.sqlite'} away"
        )
    write_whole(stored, postgres, mode=0o600)
    return postgres


def make_template(template: Path, python: Path, variables: Mapping[str, str]) -> None:
    """Migrates an empty SQLite database, which takes a minute, and stores it whole or not at all."""
    with tempfile.TemporaryDirectory(dir=template.parent, prefix=".label-studio-") as part:
        migrated = subprocess.run(
            [str(python), "-m", "darkroom_studio.bootstrap", "--migrate-only"],
            cwd=part,
            env={**variables, "LABEL_STUDIO_BASE_DATA_DIR": part},
            capture_output=True,
            text=True,
            check=False,
        )
        if migrated.returncode:
            raise AnnotationError(f"migrating Label Studio's database failed: {migrated.stderr[-2000:]}")
        write_whole(template, (Path(part) / SQLITE).read_bytes())


def database_variables(postgres: str | None) -> Mapping[str, str]:
    """Label Studio's environment variables for its database."""
    if postgres is None:
        return {"DJANGO_DB": "sqlite"}
    url = parse_url(postgres)
    return {
        "DJANGO_DB": "default",
        "POSTGRE_NAME": url.database or "",
        "POSTGRE_USER": url.username or "",
        "POSTGRE_PASSWORD": url.password or "",
        "POSTGRE_HOST": url.host or "",
        "POSTGRE_PORT": str(url.port or 5432),
    }


def parse_url(postgres: str) -> sa.URL:
    """Raises ``AnnotationError`` for anything but a PostgreSQL URL with host and name, without its password."""
    try:
        url = sa.make_url(postgres)
    except sa.exc.ArgumentError as error:
        raise AnnotationError("expected postgresql://USER:PASSWORD@HOST:PORT/NAME, found no URL") from error
    if not url.drivername.startswith("postgresql") or not url.database or not url.host:
        raise AnnotationError(f"expected postgresql://USER:PASSWORD@HOST:PORT/NAME, found {without_password(postgres)}")
    return url


def without_password(postgres: str | None) -> str:
    return "sqlite" if postgres is None else sa.make_url(postgres).render_as_string(hide_password=True)
