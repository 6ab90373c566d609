"""The server of a workspace: Label Studio with the plug-in, in its own environment, served by gunicorn.

    <home>/environments/label-studio/     the installation; beside it a migrated database, and the installer's log
    <home>/annotation/studio/             data: database (unless PostgreSQL), media, log of blocked submissions
    <home>/annotation/server.json         the last start: URL, log and process
    <home>/annotation/address.json        host and port, which later starts keep, so that open pages live on
    <home>/annotation/secret_key          signs sessions (readable by its owner only)
    <home>/annotation/postgres.url        the PostgreSQL of the first start, if any
    <home>/annotation/acts.txt            what commands did while no server answered, for its audit log
    <home>/annotation/admin.json          the toolkit's own account (readable by its owner only)

Telemetry is off, sign-up is closed, and the server listens on the loopback interface by default. ``connect`` returns a
client of this server, or of the one that the environment names.
"""

import fcntl
import json
import os
import shlex
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import cattrs
import httpx2
import yaml

from darkroom.annotation import AnnotationError, ServerUnreachable
from darkroom.annotation.label_studio import server_files
from darkroom.annotation.label_studio.client import LabelStudioClient
from darkroom.pipelines.processes.process_sessions import PausedProcess, ProcessMark, last_lines, stop_session, url_of
from darkroom.pipelines.processes.virtual_environment import VirtualEnvironment
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.workspace import Workspace

REQUIREMENTS = tuple(
    line for line in (Path(__file__).parent / "label_studio.lock").read_text().splitlines() if not line.startswith("#")
)
PLUGIN = Path(__file__).parents[1] / "_plugin"
SCHEMA = Path(__file__).with_name("label_studio.sql.xz")
"""An empty, migrated PostgreSQL database of this version (``tests/annotation/label_studio/label_studio_schema.py``)."""
GRACE_SECONDS = 20.0
SETTINGS: dict[str, str] = yaml.safe_load(Path(__file__).with_name("server.yaml").read_text(encoding="utf-8"))
Progress = Callable[[str], None]
"""Called with the step that is under way: install, migrate, load, accounts, serve."""
STEP = "darkroom step: "
"""Starts a line of the server's log (``darkroom_studio/bootstrap.py``)."""


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
        folder = self.environments / "label-studio"
        return VirtualEnvironment(folder, REQUIREMENTS, "label-studio", "about 800 megabytes")

    @property
    def admin(self) -> server_files.AdminAccount:
        return server_files.admin_account(self.folder)

    def find(self) -> ServerInfo | None:
        path = self.folder / "server.json"
        return cattrs.structure(json.loads(path.read_text()), ServerInfo) if path.exists() else None

    def start(
        self,
        *,
        host: str | None = None,
        port: int | None = None,
        postgres: str | None = None,
        progress: Progress = lambda step: None,
    ) -> ServerInfo:
        """Install what is missing and start, without waiting; options are stored for later starts."""
        postgres, last = server_files.select_database(self.folder, postgres), self.find()
        if last is not None and last.process.is_running:
            return last
        if last is not None:  # workers that outlive a killed server hold its port
            stop_session(last.process, grace_seconds=GRACE_SECONDS)
        address = server_files.select_address(self.folder, host, port, last_url=last.url if last else None)
        if not self.environment.is_installed:
            progress("install")
        self.environment.ensure(log=self.environments / "label-studio.log")
        data = self.folder / "studio"
        data.mkdir(parents=True, exist_ok=True)
        if postgres is None and not (data / server_files.SQLITE).exists():
            write_whole(data / server_files.SQLITE, self._template(progress).read_bytes())
        progress("load")
        return self._launch(address, postgres)

    def stop(self) -> bool:
        """Stop the server; returns False when none was running."""
        server = self.find()
        if server is None:
            return False
        was_running = server.process.is_running
        stop_session(server.process, grace_seconds=GRACE_SECONDS)
        (self.folder / "server.json").unlink(missing_ok=True)
        return was_running

    def _launch(self, address: server_files.Address, postgres: str | None) -> ServerInfo:
        """Start the server; its process is recorded before it does anything."""
        log = self.folder / "server.log"
        if log.exists():  # the end of a server that crashed
            log.replace(self.folder / "server.previous.log")
        command = _command(self.environment, self.folder / "studio", address, postgres)
        held = PausedProcess(command, environment=self.variables(postgres), log=log)
        server = ServerInfo(url_of(*address), server_files.without_password(postgres), str(log), held.mark)
        try:
            write_whole(self.folder / "server.json", json.dumps(asdict(server), indent=1))
        except OSError:
            held.drop()
            raise
        held.release()
        return server

    def _template(self, progress: Progress) -> Path:
        template = self.environments / f"label-studio-{REQUIREMENTS[0].partition('==')[2]}.sqlite3"
        if not template.exists():
            progress("migrate")
            server_files.make_template(template, self.environment.python, self.variables(None))
        return template

    def variables(self, postgres: str | None) -> dict[str, str]:
        admin = self.admin
        return {
            **self.environment.activate(os.environ),
            **SETTINGS,
            "PYTHONPATH": str(PLUGIN),
            "LABEL_STUDIO_BASE_DATA_DIR": str(self.folder / "studio"),
            "SECRET_KEY": server_files.secret_key(self.folder),
            "STUDIO_IMAGES": self.images_url,
            "STUDIO_SCHEMA": str(SCHEMA),
            "STUDIO_VERSION": REQUIREMENTS[0].partition("==")[2],
            "STUDIO_ADMIN_EMAIL": admin.email,
            "STUDIO_ADMIN_PASSWORD": admin.password,
            "STUDIO_ADMIN_TOKEN": admin.token,
            **server_files.database_variables(postgres),
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


def current_step(server: ServerInfo) -> str:
    """The step of the start that is under way, from the server's log."""
    lines = Path(server.log).read_text(errors="replace").splitlines()
    return next((line.removeprefix(STEP) for line in reversed(lines) if line.startswith(STEP)), "load")


def is_ready(server: ServerInfo) -> bool:
    with suppress(httpx2.HTTPError):
        return httpx2.get(f"{server.url}/health", timeout=10, trust_env=False).status_code == 200
    return False


def log_tail(server: ServerInfo) -> str:
    return f"End of {server.log}:\n" + "\n".join(last_lines(Path(server.log)))


def _command(
    environment: VirtualEnvironment, data: Path, address: server_files.Address, postgres: str | None
) -> list[str]:
    # SQLite has one writer: threads of one process wait for it more gently than processes do
    workers, threads = (1, 8) if postgres is None else (3, 4)
    python = shlex.quote(environment.python)  # not the scripts: their first line names a folder that may move
    return [
        "sh",
        "-c",
        f"cd {shlex.quote(str(data))} && "  # Label Studio writes a file into its working directory
        # the application is loaded and prepared once, then the workers are forked
        f"exec {python} -m gunicorn --preload --workers {workers} --threads {threads} "
        f"--bind {shlex.quote(address.text)} --timeout 600 --graceful-timeout 10 --no-control-socket "
        "'darkroom_studio.bootstrap:application()'",
    ]


URL, TOKEN = "DARKROOM_STUDIO_URL", "DARKROOM_STUDIO_TOKEN"


def server_of(workspace: Workspace) -> LabelStudioServer:
    return LabelStudioServer(workspace.annotation, workspace.environments, workspace.images_url)


def find_task_url(workspace: Workspace, environment: Mapping[str, str] = os.environ) -> Callable[[int, int], str]:
    """Make the URL of a task (project, number); a path alone without a known server."""
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
        mend = f"start one with `darkroom annotate up`, or name a remote one with {URL} and {TOKEN}"
        raise ServerUnreachable(f"no Label Studio runs for {workspace.annotation}; {mend}")
    return LabelStudioClient(info.url, server.admin.token)


def note_act(workspace: Workspace, act: str) -> None:
    """Write a command's act to the server's audit log, after those that waited for a server to answer."""
    path, now = workspace.annotation / "acts.txt", datetime.now(UTC).isoformat(timespec="seconds")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(f"{now} {' '.join(act.split())}\n")
        with suppress(AnnotationError), connect(workspace) as studio:
            file.seek(0)
            for line in file.read().splitlines():
                studio.note_act(line)
            file.truncate(0)
