"""The server of a workspace: Label Studio with the plug-in, in its own environment, served by gunicorn.

    <home>/environments/label-studio/     the installation, and a migrated database to copy
    <home>/annotation/studio/             data: database (unless PostgreSQL), media, log of blocked submissions
    <home>/annotation/server.json         address and process
    <home>/annotation/postgres.url        the PostgreSQL of the first start, if any
    <home>/annotation/admin.json          the toolkit's own account (readable by its owner only)

Telemetry is off, sign-up is closed, and the server listens on the loopback interface by default. ``connect`` returns a
client of this server, or of the one that the environment names.
"""

import json
import os
import secrets
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import cattrs
import httpx
import sqlalchemy as sa
import yaml

from annotation import AnnotationError, ServerUnreachable
from annotation.label_studio.client import LabelStudioClient
from pipelines.models.serving.lifecycle import tail
from pipelines.models.serving.processes import PausedProcess, ProcessMark, VirtualEnvironment, stop_session
from pipelines.models.serving.servers import free_port, url_of
from pipelines.storage.atomic_write import write_whole
from pipelines.storage.workspace import Workspace

REQUIREMENTS = tuple(
    line for line in (Path(__file__).parent / "label_studio.lock").read_text().splitlines() if not line.startswith("#")
)
PLUGIN = Path(__file__).parents[1] / "_plugin"
DATABASE = "label_studio.sqlite3"
GRACE_SECONDS = 20.0
SETTINGS: dict[str, str] = yaml.safe_load(Path(__file__).with_name("server.yaml").read_text(encoding="utf-8"))


class AdminAccount(NamedTuple):
    """The toolkit's own account."""

    email: str
    password: str
    token: str


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """A started server."""

    url: str
    database: str
    """``sqlite``, or a PostgreSQL URL without its password."""
    log: str
    process: ProcessMark


@dataclass(frozen=True, slots=True)
class LabelStudioServer:
    """The server of one workspace: its files, its start and its end."""

    folder: Path
    """``<home>/annotation``."""
    environments: Path
    images_url: str

    @property
    def environment(self) -> VirtualEnvironment:
        """Label Studio's own, since its pins exclude ours."""
        return VirtualEnvironment(
            self.environments / "label-studio", REQUIREMENTS, "label-studio", "about 800 megabytes"
        )

    @property
    def admin(self) -> AdminAccount:
        """The account; created at the first call."""
        path = self.folder / "admin.json"
        if not path.exists():
            account = AdminAccount("admin@darkroom.local", secrets.token_urlsafe(18), secrets.token_hex(20))
            write_whole(path, json.dumps(account._asdict(), indent=1), mode=0o600)
        return AdminAccount(**json.loads(path.read_text()))

    def find(self) -> ServerInfo | None:
        """The last started server, whether it still runs or not."""
        path = self.folder / "server.json"
        return cattrs.structure(json.loads(path.read_text()), ServerInfo) if path.exists() else None

    def start(self, *, host: str = "127.0.0.1", port: int | None = None, postgres: str | None = None) -> ServerInfo:
        """Installs what is missing and starts the server, without waiting; returns a running server unchanged.

        ``postgres`` is stored for later starts. Raises ``AnnotationError`` when the data are in another database,
        ``ServingError`` when the port is taken or the installation fails.
        """
        postgres = self._select_database(postgres)
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
        held = PausedProcess(
            _command(self.environment, data, host, port, postgres), environment=self._variables(postgres), log=log
        )
        server = ServerInfo(url_of(host, port), _without_password(postgres), str(log), held.mark)
        try:
            write_whole(self.folder / "server.json", json.dumps(asdict(server), indent=1))
        except OSError:
            held.drop()
            raise
        held.release()
        return server

    def stop(self) -> bool:
        """Returns False when no server was running."""
        server = self.find()
        if server is None:
            return False
        was_running = server.process.is_running
        stop_session(server.process, grace_seconds=GRACE_SECONDS)
        (self.folder / "server.json").unlink(missing_ok=True)
        return was_running

    def _select_database(self, postgres: str | None) -> str | None:
        """The database of the first start; a silent change would show an empty server."""
        stored = self.folder / "postgres.url"
        if stored.exists():
            url = stored.read_text()
            if postgres not in (None, url):
                raise AnnotationError(
                    f"this campaign's accounts and projects are in {_without_password(url)}; to use another database, "
                    f"move them there and remove {stored}"
                )
            return url
        if postgres is None:
            return None
        _parse_url(postgres)
        if (self.folder / "studio" / DATABASE).exists():
            raise AnnotationError(
                f"this campaign's accounts and projects are in SQLite; to start over on PostgreSQL, move "
                f"{self.folder / 'studio'} and {self.folder / 'journal.sqlite'} away"
            )
        write_whole(stored, postgres, mode=0o600)
        return postgres

    def _template(self) -> Path:
        """A migrated, empty database to copy, since a migration takes a minute."""
        template = self.environments / f"label-studio-{REQUIREMENTS[0].partition('==')[2]}.sqlite3"
        if not template.exists():
            with tempfile.TemporaryDirectory(dir=self.environments, prefix=".label-studio-") as part:
                variables = self._variables(None) | {"LABEL_STUDIO_BASE_DATA_DIR": part}
                command = [str(_python(self.environment)), "-m", "darkroom_studio.bootstrap", "--migrate-only"]
                migrated = subprocess.run(command, cwd=part, env=variables, capture_output=True, text=True, check=False)
                if migrated.returncode:
                    raise AnnotationError(f"migrating Label Studio's database failed: {migrated.stderr[-2000:]}")
                write_whole(template, (Path(part) / DATABASE).read_bytes())
        return template

    def _variables(self, postgres: str | None) -> dict[str, str]:
        admin = self.admin
        return {
            **self.environment.activate(os.environ),
            **SETTINGS,
            "PYTHONPATH": str(PLUGIN),
            "LABEL_STUDIO_BASE_DATA_DIR": str(self.folder / "studio"),
            "STUDIO_IMAGES": self.images_url,
            "STUDIO_ADMIN_EMAIL": admin.email,
            "STUDIO_ADMIN_PASSWORD": admin.password,
            "STUDIO_ADMIN_TOKEN": admin.token,
            **_database(postgres),
        }


def wait_until_ready(server: ServerInfo, *, report: Callable[[float], None], patience_seconds: float = 900.0) -> None:
    """Raises ``AnnotationError`` with the end of the log when the server exits or exceeds the time limit."""
    start = time.monotonic()
    while not is_ready(server):
        seconds = time.monotonic() - start
        if not server.process.is_running:
            raise AnnotationError(f"Label Studio exited {seconds:.0f} s after its start. {log_tail(server)}")
        if seconds > patience_seconds:
            raise AnnotationError(f"Label Studio does not answer after {seconds:.0f} s. {log_tail(server)}")
        report(seconds)
        time.sleep(0.5)


def is_ready(server: ServerInfo) -> bool:
    try:
        return httpx.get(f"{server.url}/health", timeout=10, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def log_tail(server: ServerInfo) -> str:
    return f"End of {server.log}:\n" + "\n".join(tail(Path(server.log)))


def _command(environment: VirtualEnvironment, data: Path, host: str, port: int, postgres: str | None) -> list[str]:
    # SQLite has one writer: threads of one process wait for it more gently than processes do
    workers, threads = (1, 8) if postgres is None else (3, 4)
    python = shlex.quote(str(_python(environment)))  # not the scripts: their first line names a folder that may move
    steps = (
        f"cd {shlex.quote(str(data))}",  # Label Studio writes a file into its working directory
        f"{python} -m darkroom_studio.bootstrap",
        f"exec {python} -m gunicorn --workers {workers} --threads {threads} --bind {host}:{port} "
        "--timeout 600 --graceful-timeout 10 'django.core.wsgi:get_wsgi_application()'",
    )
    return ["sh", "-c", " && ".join(steps)]


def _python(environment: VirtualEnvironment) -> Path:
    return environment.folder / "bin" / "python"


def _database(postgres: str | None) -> Mapping[str, str]:
    if postgres is None:
        return {"DJANGO_DB": "sqlite"}
    url = _parse_url(postgres)
    return {
        "DJANGO_DB": "default",
        "POSTGRE_NAME": url.database or "",
        "POSTGRE_USER": url.username or "",
        "POSTGRE_PASSWORD": url.password or "",
        "POSTGRE_HOST": url.host or "",
        "POSTGRE_PORT": str(url.port or 5432),
    }


def _parse_url(postgres: str) -> sa.URL:
    try:
        url = sa.make_url(postgres)
    except sa.exc.ArgumentError as error:
        raise AnnotationError("expected postgresql://USER:PASSWORD@HOST:PORT/NAME, found no URL") from error
    if not url.drivername.startswith("postgresql") or not url.database or not url.host:
        raise AnnotationError(
            f"expected postgresql://USER:PASSWORD@HOST:PORT/NAME, found {_without_password(postgres)}"
        )
    return url


def _without_password(postgres: str | None) -> str:
    return "sqlite" if postgres is None else sa.make_url(postgres).render_as_string(hide_password=True)


URL, TOKEN = "DARKROOM_STUDIO_URL", "DARKROOM_STUDIO_TOKEN"


def server_of(workspace: Workspace) -> LabelStudioServer:
    return LabelStudioServer(workspace.annotation, workspace.environments, workspace.images_url)


def find_task_url(workspace: Workspace, environment: Mapping[str, str] = os.environ) -> Callable[[int, int], str]:
    """Makes the URL of a task (project, number); a path alone without a known server."""
    info = server_of(workspace).find()
    url = (environment.get(URL) or (info.url if info else "")).rstrip("/")
    return lambda project, task: f"{url}/projects/{project}/data?task={task}"


def connect(workspace: Workspace, environment: Mapping[str, str] = os.environ) -> LabelStudioClient:
    """Raises ``AnnotationError`` for an incomplete environment, ``ServerUnreachable`` when no server runs here."""
    url, token = environment.get(URL), environment.get(TOKEN)
    if url and token:
        return LabelStudioClient(url, token)
    if url or token:
        raise AnnotationError(f"a remote server needs both {URL} and {TOKEN}")
    server = server_of(workspace)
    info = server.find()
    if info is None or not info.process.is_running:
        raise ServerUnreachable(
            f"no Label Studio runs for {workspace.annotation}; start one with `darkroom annotate up`, or name a remote "
            f"one with {URL} and {TOKEN}"
        )
    return LabelStudioClient(info.url, server.admin.token)
