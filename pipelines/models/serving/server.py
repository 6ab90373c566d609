"""A model server of this process: started, waited for until it answers, stopped. It ends with its starter."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from darkroom.pipelines.models.serving.engines import Engine, ServedModel, ServingError, hub_revision
from darkroom.pipelines.processes.process_sessions import LeashedProcess, free_port, last_lines, url_of

POLL_SECONDS = 0.5
GRACE_SECONDS = 20.0
"""Between SIGTERM and SIGKILL, to finish requests."""


class Progress(NamedTuple):
    """Progress of a start."""

    seconds: float
    line: str
    """The last line of the server's log."""


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A started server: its model, address, log and process."""

    model: ServedModel
    engine: Engine
    url: str
    """Its address on this machine, without a path."""
    log: Path
    process: LeashedProcess

    @property
    def is_running(self) -> bool:
        return self.process.mark.is_running

    def revision(self) -> str:
        """Fingerprint of a folder, or commit of a hub model once it is loaded; empty where unknown."""
        return self.model.revision if self.model.is_folder else hub_revision(self.model.name, self.engine.options)

    def settings(self) -> dict[str, str]:
        """The environment variables that make it the policy."""
        from darkroom.pipelines.models.policies.settings import EndpointSettings  # imports ledger and image store

        values = {"kind": "openai", "base_url": f"{self.url}/v1", "model": self.model.name, "revision": self.revision()}
        variables = EndpointSettings.variables("DARKROOM_POLICY")
        return {variables[field]: value for field, value in values.items() if value}

    def wait_until_ready(self, *, report: Callable[[Progress], None], patience_seconds: float = float("inf")) -> float:
        """Wait until it answers; returns the seconds. Loading may take hours: by default there is no time limit. Raises
        ``ServingError`` with the log's tail when the process dies, or after ``patience_seconds``."""
        start = time.monotonic()
        while not self._answers():
            waited = time.monotonic() - start
            if not self.is_running:
                name = self.model.name
                raise ServingError(f"the server of {name} died {waited:.0f} s into its start. {self.ending()}")
            if waited > patience_seconds:
                raise ServingError(f"{self.model.name} is not ready after {waited:.0f} s. {self.ending()}")
            lines = last_lines(self.log)
            report(Progress(waited, lines[-1] if lines else ""))
            time.sleep(POLL_SECONDS)
        return time.monotonic() - start

    def ending(self) -> str:
        """The end of the log, as a paragraph of an error, with a remedy for the most frequent cause."""
        text = "\n".join(last_lines(self.log))
        hint = "\nThe model brings code of its own. If you trust it: darkroom serve MODEL ... -- --trust-remote-code"
        hint = hint if "trust_remote_code" in text or "trust-remote-code" in text else ""
        return f"The end of {self.log}:\n{text}{hint}" if text else f"{self.log} is empty"

    def stop(self, *, grace_seconds: float = GRACE_SECONDS) -> None:
        self.process.stop(grace_seconds=grace_seconds)

    def _answers(self) -> bool:
        """Ask ``/health`` and ``/v1/models``; only vLLM's list names the model (transformers lists its cache)."""
        import httpx2  # a command that serves nothing does without it

        try:
            # no proxy of the environment reaches this machine's servers
            with httpx2.Client(base_url=self.url, timeout=10, trust_env=False) as client:
                client.get("/health").raise_for_status()
                models = client.get("/v1/models").raise_for_status().json()
        except (httpx2.HTTPError, ValueError):
            return False
        return self.engine.name != "vllm" or self.model.name in [model.get("id") for model in models.get("data", [])]


def start(
    logs: Path, model: ServedModel, engine: Engine, *, host: str = "127.0.0.1", port: int | None = None
) -> ModelServer:
    """Start a server on ``port`` or a free one, with its log in the folder ``logs``; returns before it is ready. Raises
    ``ServingError`` when the engine cannot run here, ``ProcessError`` when the port is taken."""
    model.require_weights()
    engine.prepare()
    port = free_port(host, port)
    log = logs / f"{re.sub(r'[^A-Za-z0-9.]+', '-', model.name)[-48:].strip('-.')}-{port}.log"
    command = engine.command(model, host=host, port=port)
    process = LeashedProcess(command, environment=engine.environment(model), log=log)
    return ModelServer(model, engine, url_of(host, port), log, process)
