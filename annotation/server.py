"""The server of a workspace: Label Studio with the plug-in, in an environment of its own, served by gunicorn.

    <home>/environments/label-studio/     the installed program, and a migrated database to copy
    <home>/annotation/studio/             its data: database (unless PostgreSQL), media, what the gate refused
    <home>/annotation/server.json         where it answers and which process it is
    <home>/annotation/postgres.url        the PostgreSQL that it was first started with, if any
    <home>/annotation/admin.json          the toolkit's own account (readable by its owner alone)

Telemetry is off, sign-up is closed, and it listens on the loopback interface unless told otherwise.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import cattrs
import httpx
import sqlalchemy as sa

from annotation.faults import AnnotationFault
from pipelines.serving.addresses import free_port, url_of
from pipelines.serving.environments import VirtualEnvironment
from pipelines.serving.health import tail
from pipelines.serving.processes import Held, ProcessMark, stop_session
from pipelines.whole import write_whole

REQUIREMENTS = tuple(
    line for line in (Path(__file__).parent / "label_studio.lock").read_text().splitlines() if not line.startswith("#")
)
PLUGIN = Path(__file__).parent / "_plugin"
DATABASE = "label_studio.sqlite3"
GRACE_SECONDS = 20.0
QUIET = {
    "LABEL_STUDIO_COLLECT_ANALYTICS": "false",
    "LABEL_STUDIO_LATEST_VERSION_CHECK": "false",
    "SENTRY_DSN": "",
    "FRONTEND_SENTRY_DSN": "",
    "LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK": "true",
    # a task that somebody opened and left is free again after an hour (its default is a day)
    "LABEL_STUDIO_TASK_LOCK_TTL": "3600",
    "LOG_LEVEL": "WARNING",
    "DJANGO_SETTINGS_MODULE": "darkroom_studio.settings",
}


class Admin(NamedTuple):
    """The toolkit's own account."""

    email: str
    password: str
    token: str


@dataclass(frozen=True, slots=True)
class Server:
    """A server that was started."""

    url: str
    database: str
    """``sqlite``, or a PostgreSQL URL without its password."""
    log: str
    process: ProcessMark


@dataclass(frozen=True, slots=True)
class StudioHome:
    """Where one workspace keeps its server."""

    folder: Path
    """``<home>/annotation``."""
    environments: Path
    images_url: str

    @property
    def environment(self) -> VirtualEnvironment:
        """Label Studio's own: its pins exclude ours."""
        return VirtualEnvironment(
            self.environments / "label-studio", REQUIREMENTS, "label-studio", "about 800 megabytes"
        )

    @property
    def admin(self) -> Admin:
        """The account, made up at the first call and kept."""
        path = self.folder / "admin.json"
        if not path.exists():
            made = Admin("admin@darkroom.local", secrets.token_urlsafe(18), secrets.token_hex(20))
            write_whole(path, json.dumps(made._asdict(), indent=1), mode=0o600)
        return Admin(**json.loads(path.read_text()))

    def find(self) -> Server | None:
        """The server that was started last, running or gone."""
        path = self.folder / "server.json"
        return cattrs.structure(json.loads(path.read_text()), Server) if path.exists() else None

    def start(self, *, host: str = "127.0.0.1", port: int | None = None, postgres: str | None = None) -> Server:
        """Installs and starts what is missing; returns before it answers. A running server is returned as it is.

        ``postgres`` is kept: later starts need not name it. Raises ``AnnotationFault`` when the data lie in
        another database, ``ServingFault`` when the port is taken or the installation fails.
        """
        postgres = self._chosen_database(postgres)
        running = self.find()
        if running is not None and running.process.is_running:
            return running
        self.environment.ensure()
        data = self.folder / "studio"
        data.mkdir(parents=True, exist_ok=True)
        if postgres is None and not (data / DATABASE).exists():
            write_whole(data / DATABASE, self._template().read_bytes())
        port = free_port(host, port)
        log = self.folder / "server.log"
        held = Held(
            _command(self.environment, data, host, port, postgres), environment=self._variables(postgres), log=log
        )
        server = Server(url_of(host, port), _shown(postgres), str(log), held.mark)
        try:
            write_whole(self.folder / "server.json", json.dumps(asdict(server), indent=1))
        except OSError:
            held.drop()
            raise
        held.release()
        return server

    def stop(self) -> bool:
        """Ends the server; False when none ran."""
        server = self.find()
        if server is None:
            return False
        was_running = server.process.is_running
        stop_session(server.process, grace_seconds=GRACE_SECONDS)
        (self.folder / "server.json").unlink(missing_ok=True)
        return was_running

    def _chosen_database(self, postgres: str | None) -> str | None:
        """The database of the first start, which must not change unseen: the other one would look empty."""
        kept = self.folder / "postgres.url"
        if kept.exists():
            known = kept.read_text()
            if postgres not in (None, known):
                raise AnnotationFault(
                    f"this campaign's accounts and projects lie in {_shown(known)}; to use another database, move them "
                    f"there and remove {kept}"
                )
            return known
        if postgres is None:
            return None
        _parsed(postgres)
        if (self.folder / "studio" / DATABASE).exists():
            raise AnnotationFault(
                f"this campaign's accounts and projects lie in SQLite; to begin anew on PostgreSQL, move "
                f"{self.folder / 'studio'} and {self.folder / 'journal.sqlite'} away"
            )
        write_whole(kept, postgres, mode=0o600)
        return postgres

    def _template(self) -> Path:
        """A migrated, empty database: migrating takes a minute, copying none."""
        template = self.environments / f"label-studio-{REQUIREMENTS[0].partition('==')[2]}.sqlite3"
        if not template.exists():
            part = self.environments / f".{template.name}.{secrets.token_hex(4)}"
            part.mkdir(parents=True)
            variables = self._variables(None) | {"LABEL_STUDIO_BASE_DATA_DIR": str(part)}
            command = [str(_python(self.environment)), "-m", "darkroom_studio.bootstrap", "--migrate-only"]
            done = subprocess.run(command, cwd=part, env=variables, capture_output=True, text=True, check=False)
            if done.returncode:
                raise AnnotationFault(f"Label Studio's database could not be made: {done.stderr[-2000:]}")
            os.replace(part / DATABASE, template)
            shutil.rmtree(part)
        return template

    def _variables(self, postgres: str | None) -> dict[str, str]:
        admin = self.admin
        return {
            **self.environment.activate(os.environ),
            **QUIET,
            "PYTHONPATH": str(PLUGIN),
            "LABEL_STUDIO_BASE_DATA_DIR": str(self.folder / "studio"),
            "STUDIO_IMAGES": self.images_url,
            "STUDIO_ADMIN_EMAIL": admin.email,
            "STUDIO_ADMIN_PASSWORD": admin.password,
            "STUDIO_ADMIN_TOKEN": admin.token,
            **_database(postgres),
        }


def wait_until_ready(server: Server, *, report: Callable[[float], None], patience_seconds: float = 900.0) -> None:
    """Returns when the server answers. Raises ``AnnotationFault`` with the log's end when it died or takes too long."""
    began = time.monotonic()
    while not is_ready(server):
        waited = time.monotonic() - began
        if not server.process.is_running:
            raise AnnotationFault(f"Label Studio died {waited:.0f} s into its start. {ending(server)}")
        if waited > patience_seconds:
            raise AnnotationFault(f"Label Studio does not answer after {waited:.0f} s. {ending(server)}")
        report(waited)
        time.sleep(0.5)


def is_ready(server: Server) -> bool:
    """Whether it answers."""
    try:
        return httpx.get(f"{server.url}/health", timeout=10, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def ending(server: Server) -> str:
    """The end of its log."""
    return f"The end of {server.log}:\n" + "\n".join(tail(Path(server.log)))


def _command(environment: VirtualEnvironment, data: Path, host: str, port: int, postgres: str | None) -> list[str]:
    # SQLite has one writer: threads of one process wait for it more gently than processes do
    workers, threads = (1, 8) if postgres is None else (3, 4)
    program = shlex.quote(str(_python(environment)))  # as modules: a program's first line names a folder that may move
    steps = (
        f"cd {shlex.quote(str(data))}",  # Label Studio writes a file into the folder that it is started from
        f"{program} -m darkroom_studio.bootstrap",
        f"exec {program} -m gunicorn --workers {workers} --threads {threads} --bind {host}:{port} "
        "--timeout 600 --graceful-timeout 10 darkroom_studio.wsgi:application",
    )
    return ["sh", "-c", " && ".join(steps)]


def _python(environment: VirtualEnvironment) -> Path:
    return environment.folder / "bin" / "python"


def _database(postgres: str | None) -> Mapping[str, str]:
    if postgres is None:
        return {"DJANGO_DB": "sqlite"}
    url = _parsed(postgres)
    return {
        "DJANGO_DB": "default",
        "POSTGRE_NAME": url.database or "",
        "POSTGRE_USER": url.username or "",
        "POSTGRE_PASSWORD": url.password or "",
        "POSTGRE_HOST": url.host or "",
        "POSTGRE_PORT": str(url.port or 5432),
    }


def _parsed(postgres: str) -> sa.URL:
    try:
        url = sa.make_url(postgres)
    except sa.exc.ArgumentError as fault:
        raise AnnotationFault("that is no URL; expected postgresql://USER:PASSWORD@HOST:PORT/NAME") from fault
    if not url.drivername.startswith("postgresql") or not url.database or not url.host:
        found = url.render_as_string(hide_password=True)
        raise AnnotationFault(f"expected postgresql://USER:PASSWORD@HOST:PORT/NAME, found {found}")
    return url


def _shown(postgres: str | None) -> str:
    return "sqlite" if postgres is None else sa.make_url(postgres).render_as_string(hide_password=True)
