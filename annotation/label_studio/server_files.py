"""Files of a workspace's server: its database, its admin account, secret key and address, and systemd units. The first
start selects the database: SQLite, copied from a migrated template, or a PostgreSQL."""

import getpass
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import sqlalchemy as sa

from darkroom.annotation import AnnotationError
from darkroom.pipelines.processes.process_sessions import ProcessError, free_port
from darkroom.pipelines.publishing.rendering import render
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.workspace import Workspace

SQLITE = "label_studio.sqlite3"


def select_database(folder: Path, postgres: str | None) -> str | None:
    """The PostgreSQL of the first start, None for SQLite; a silent change would show an empty server."""
    stored = folder / "postgres.url"
    if stored.exists():
        url = stored.read_text()
        if postgres not in (None, url):
            mend = f"to use another database, move them there and remove {stored}"
            raise AnnotationError(f"this campaign's accounts and projects are in {without_password(url)}; {mend}")
        return url
    if postgres is None:
        return None
    parse_url(postgres)
    if (folder / "studio" / SQLITE).exists():
        mend = f"to start over on PostgreSQL, move {folder / 'studio'} and {folder / 'journal.sqlite'} away"
        raise AnnotationError(f"this campaign's accounts and projects are in SQLite; {mend}")
    write_whole(stored, postgres, mode=0o600)
    return postgres


def make_template(template: Path, python: str, variables: Mapping[str, str]) -> None:
    """Migrate an empty SQLite database, which takes a minute, and store it whole or not at all."""
    with tempfile.TemporaryDirectory(dir=template.parent, prefix=".label-studio-") as part:
        command = [python, "-m", "darkroom_studio.bootstrap"]
        environment = {**variables, "LABEL_STUDIO_BASE_DATA_DIR": part}
        migrated = subprocess.run(command, cwd=part, env=environment, capture_output=True, text=True, check=False)
        if migrated.returncode:
            raise AnnotationError(f"migrating Label Studio's database failed: {migrated.stderr[-2000:]}")
        write_whole(template, (Path(part) / SQLITE).read_bytes())


def database_variables(postgres: str | None) -> Mapping[str, str]:
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


LOOPBACK = "127.0.0.1"
PATIENCE_SECONDS = 5.0
"""Longest wait for the port of the last start."""


class AdminAccount(NamedTuple):
    """The toolkit's own account."""

    email: str
    password: str
    token: str


class Address(NamedTuple):
    """The address on which the server listens."""

    host: str
    port: int

    @property
    def text(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def admin_account(folder: Path) -> AdminAccount:
    """The account of ``<folder>/admin.json``; created at the first call."""
    path = folder / "admin.json"
    if not path.exists():
        account = AdminAccount("admin@darkroom.local", secrets.token_urlsafe(18), secrets.token_hex(20))
        write_whole(path, json.dumps(account._asdict(), indent=1), mode=0o600)
    return AdminAccount(**json.loads(path.read_text()))


def secret_key(folder: Path) -> str:
    """The key that signs sessions; created at the first call. An older campaign has Label Studio's, in its data folder.
    Label Studio cannot read back every key that it makes: one that starts with ``$`` changes at each start."""
    path = folder / "secret_key"
    if not path.exists():
        settings = folder / "studio" / ".env"
        lines = settings.read_text().splitlines() if settings.exists() else []
        keys = [line.partition("=")[2] for line in lines if line.startswith("SECRET_KEY=")]
        usable = [key for key in keys if key and key[0] not in "$'\""]
        write_whole(path, usable[0] if usable else secrets.token_urlsafe(40), mode=0o600)
    return path.read_text()


def select_address(folder: Path, host: str | None, port: int | None, *, last_url: str | None = None) -> Address:
    """The requested address, else the last start's, else a free loopback port. Raises ``ProcessError``."""
    path, url = folder / "address.json", urlsplit(last_url or "")
    last = None
    if path.exists():
        last = Address(**json.loads(path.read_text()))
    elif url.hostname and url.port:
        last = Address(url.hostname, url.port)
    host = host or (last.host if last else LOOPBACK)
    if port is None and last is not None:
        port = _freed_port(host, last.port)
    address = Address(host, free_port(host, port))
    write_whole(path, json.dumps(address._asdict()))
    return address


def _freed_port(host: str, port: int) -> int:
    """Wait a moment: threads of a killed server hold its port a little longer than its processes are there."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return free_port(host, port)
        except ProcessError as error:
            if time.monotonic() > end:
                problem = f"another program listens on port {port}, where this campaign's server was"
                mend = "open pages expect it there. Stop that program, or choose another port with --port"
                raise ProcessError(f"{problem}: {mend}") from error
        time.sleep(0.1)


UNITS = ("darkroom-annotate.service", "darkroom-annotate-sync.service")
SETTINGS = ("DARKROOM_LOCAL", "DARKROOM_IMAGES", "DARKROOM_ENVIRONMENTS")
"""Variables that the units take over from the environment; everything else belongs in ``service.env``."""


def service_units(workspace: Workspace, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The units by file name, with this workspace's paths. Raises ``AnnotationError`` without the program."""
    beside = str(Path(sys.executable).parent)
    program = shutil.which("darkroom", path=f"{beside}{os.pathsep}{environment.get('PATH', os.defpath)}")
    if program is None:
        raise AnnotationError(f"no program `darkroom` in {beside} or on PATH; install the package first")
    settings = {"DARKROOM_HOME": str(workspace.home)}
    settings |= {name: environment[name] for name in SETTINGS if environment.get(name)}
    folder = Path(__file__).parent / "templates"
    values = {
        "user": getpass.getuser(),
        "settings": [quoted(f"{name}={value}") for name, value in settings.items()],
        "environment_file": _specifiers(str(workspace.annotation.absolute() / "service.env")),
        "program": quoted(os.path.abspath(program)).replace("$", "$$"),
    }
    return {name: render(f"{name}.jinja", folder, **values) + "\n" for name in UNITS}


def quoted(text: str) -> str:
    """One word of a unit file (systemd.syntax, systemd.unit: specifiers)."""
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise AnnotationError(f"a systemd unit cannot hold {text!r}")
    escaped = _specifiers(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _specifiers(text: str) -> str:
    return text.replace("%", "%%")
