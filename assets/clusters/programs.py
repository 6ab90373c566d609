"""Programs of ``train/`` as child processes of a run: a program's messages become events of the asset.

A program runs where its run does, and ends with it. A cancellation is noted and obeyed between two looks at the
program, not raised wherever the run happens to be: a library that stores an event may swallow it. Events are logged,
not yielded: Dagster would raise a cancellation outside the generator.
"""

import json
import os
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import dagster as dg
import yaml
from dagster_pipes import PipesDefaultMessageWriter

from darkroom.assets.terminal import progress_sink
from darkroom.pipelines.processes.process_sessions import signals_handled
from darkroom.pipelines.processes.supervisor import GRACE_SECONDS, SAFE_PATH, VARIABLE, JobDirectory
from darkroom.pipelines.storage.settings import EnvironmentSettings, setting
from darkroom.sandbox.errors import UserError
from darkroom.train.runs.command_line import ENVIRONMENT

Value = str | int | float | bool | Path | Sequence[str] | None
PREFIX = "DARKROOM_LAUNCH_"
MAX_OBSERVATIONS = 100
"""Maximum per run: each is two rows in Dagster's event log and a point of its plots."""
_SECONDS = 0.2
_STEP = "step"
_SUPERVISOR = "darkroom.pipelines.processes.supervisor"
_LIBRARIES = ["torch", "transformers.models.auto.modeling_auto", "trl.trainer.sft_trainer", "trl.trainer.grpo_trainer"]
_REPLACED = yaml.safe_load(Path(__file__).with_name("replaced_settings.yaml").read_text(encoding="utf-8"))
"""Settings of earlier versions and what replaces them."""


class LaunchError(UserError):
    """A program could not be started, or failed: what happened, and what to do."""


class LauncherResource(EnvironmentSettings, dg.ConfigurableResource):
    """The start of training programs in their run."""

    n_processes: int = setting("PROCESSES", 1, ge=1)
    """Processes of `accelerate launch`, one per GPU; 1: without it."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Read ``DARKROOM_LAUNCH_…``. Raises ``LaunchError``, naming the variable that is wrong or was replaced."""
        for name, successor in _REPLACED.items():
            if environment.get(name, "") not in ("", "local"):
                raise LaunchError(
                    f"{name} is a setting of an earlier version: training is placed like all runs now. Unset it; what "
                    f"replaces it: {successor} (docs/scale.md)"
                )
        return cls.read(environment, PREFIX, error=LaunchError)


@dataclass(frozen=True, slots=True)
class Program:
    """A module that ``python -m`` runs, with its arguments."""

    module: str
    arguments: tuple[str, ...] = ()

    @classmethod
    def of(cls, module: str, flags: Mapping[str, Value]) -> Self:
        """``flags`` by name as in Python: ``{"max_steps": 3, "lora": 0, "resume": True}``. None, False and "" omit a
        flag; True passes its name alone; a list repeats it for each value."""
        return cls(module, tuple(word for name, value in flags.items() for word in flag_words(name, value)))

    def command(self, *, n_processes: int = 1) -> list[str]:
        """The command line, by ``python -m`` or, for several processes, by ``accelerate launch``."""
        if n_processes == 1:
            return [sys.executable, "-m", self.module, *self.arguments]
        # the program itself chooses bfloat16 on a GPU; port 0 is any that is free
        options = "--num_machines 1 --mixed_precision no --dynamo_backend no --main_process_port 0 --module"
        accelerate = ("-m", "accelerate.commands.launch", "--num_processes", str(n_processes), *options.split())
        return [sys.executable, *accelerate, self.module, *self.arguments]


def flag_words(name: str, value: Value) -> list[str]:
    """An option as words of a command line."""
    flag = f"--{name.replace('_', '-')}"
    if value is None or value is False or value == "":
        return []
    if value is True:
        return [flag]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [word for element in value for word in (flag, element)]
    return [flag, str(value)]


def _supervised(
    command: Sequence[str], environment: Mapping[str, str], stdin: int, stdout: int | None, stderr: int | None = None
) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", _SUPERVISOR, str(os.getpid()), *command]
    return subprocess.Popen(words, env=environment, stdin=stdin, stdout=stdout, stderr=stderr, text=True)


class PreparedProcess:
    """A process that imports once what all programs of ``train/`` need, and forks them one after another; as
    ``subprocess.Popen`` for the program of the last ``start``. It ends with a program that is stopped."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", _SUPERVISOR, "fork", *_LIBRARIES]
        environment = {**ENVIRONMENT, **os.environ, **SAFE_PATH}
        self.host = _supervised(command, environment, subprocess.PIPE, subprocess.PIPE)
        self.pid, self.wait = self.host.pid, self.host.wait
        self.terminate, self.kill = self.host.terminate, self.host.kill
        self._status: int | None = None

    def start(self, words: Sequence[str], environment: Mapping[str, str]) -> Self:
        """Fork ``python -m WORDS``, with this process's output."""
        outputs = [f"/proc/{os.getpid()}/fd/{descriptor}" for descriptor in (1, 2)]
        order = {"words": words, "environment": dict(environment), "folder": str(Path.cwd()), "outputs": outputs}
        print(json.dumps(order), file=self.host.stdin, flush=True)
        self._status = None
        return self

    def poll(self) -> int | None:
        """The exit status; None while it runs."""
        answers = self.host.stdout
        if self._status is None and answers is not None and select.select([answers], [], [], 0)[0]:
            self._status = int(answers.readline() or self.host.wait())
        return self._status


_prepared: list[PreparedProcess] = []


@contextmanager
def shared_imports() -> Iterator[None]:
    """Let programs of ``train/`` within the block share their imports, seconds for each. Nothing is shared where torch
    is built with a GPU's libraries: what has used one cannot fork."""
    if find_spec("torch") is None or not version("torch").endswith("+cpu"):
        yield
        return
    process = PreparedProcess()
    _prepared.append(process)
    try:
        yield
    finally:
        _prepared.remove(process)
        with process.host:
            process.terminate()


class ChildProcess:
    """A started program and its job directory. Its output goes to the descriptor ``output``, else to the run's logs."""

    def __init__(
        self,
        command: Sequence[str],
        job: JobDirectory,
        environment: Mapping[str, str] | None = None,
        *,
        output: int | None = None,
    ) -> None:
        self._job = job
        environment = {**os.environ, **SAFE_PATH, VARIABLE: str(job.folder), **(environment or {})}
        self._process: subprocess.Popen[str] | PreparedProcess
        is_of_train = output is None and command[2].startswith("darkroom.train.")
        if is_of_train and _prepared and _prepared[-1].host.poll() is None:
            self._process = _prepared[-1].start(command[2:], environment)
        else:
            self._process = _supervised(command, environment, subprocess.DEVNULL, output, output)

    @property
    def description(self) -> str:
        return f"this machine, process {self._process.pid}"

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def check(self) -> None:
        """Raises ``LaunchError`` with the error message of a program that failed."""
        if status := self._process.poll():
            raise LaunchError(self._job.last_words() or f"it ended with exit status {status}")

    def stop(self) -> None:
        """Terminate it with its processes, and kill it after the grace time."""
        self._process.terminate()
        try:
            self._process.wait(GRACE_SECONDS + 5)
        except subprocess.TimeoutExpired:
            self._process.kill()  # its command dies with it
            self._process.wait()


@contextmanager
def job_directory() -> Iterator[JobDirectory]:
    """A temporary directory through which a program and its starter communicate."""
    with tempfile.TemporaryDirectory(prefix="darkroom-") as folder:
        yield JobDirectory(Path(folder))


def launch(context: dg.AssetExecutionContext, program: Program, launcher: LauncherResource) -> dg.MaterializeResult:
    """Run ``program``, log its steps as they happen, and return its result. Cancelling the run ends the program and all
    its processes. Raises ``dg.Failure`` with the program's error message."""
    command = program.command(n_processes=launcher.n_processes)
    try:
        with job_directory() as job:
            return _followed(context, command, job)
    except LaunchError as error:
        raise dg.Failure(str(error), metadata={"command": shlex.join(command)}, allow_retries=False) from error


def _followed(context: dg.AssetExecutionContext, command: Sequence[str], job: JobDirectory) -> dg.MaterializeResult:
    steps, reader = StepLog(context), MessageFile(job.messages)
    # the op's context: Pipes 1.13 reads a property of the asset's that Dagster deprecates
    with dg.open_pipes_session(context.op_execution_context, dg.PipesEnvContextInjector(), reader) as session:
        process: ChildProcess | None = None
        try:
            with _noted_interrupts() as interrupts:
                process = ChildProcess(command, job, session.get_bootstrap_env_vars())
                context.log.info(process.description)
                while not process.has_ended():
                    if interrupts:
                        raise dg.DagsterExecutionInterruptedError
                    reader.read()
                    steps.update(session)
                    time.sleep(_SECONDS)
        except BaseException:
            if process is not None:
                context.log.info("the run was interrupted: ending %s", process.description)
                process.stop()
            raise
    steps.update(session)
    process.check()
    metadata = {"ran_on": process.description, "command": shlex.join(command)}
    return dg.PipesClientCompletedInvocation(session, metadata=metadata).get_materialize_result()


@contextmanager
def _noted_interrupts() -> Iterator[list[int]]:
    """The signals that cancelled the run meanwhile; raised as ``dg.DagsterExecutionInterruptedError`` at the end."""
    signals: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield signals  # they reach the main thread only
        return
    with signals_handled(lambda number, _: signals.append(number), signal.SIGINT, signal.SIGTERM):
        yield signals
    if signals:
        raise dg.DagsterExecutionInterruptedError


def run_here(program: Program) -> None:
    """Run a program without messages to its end. Raises ``LaunchError`` with its error message."""
    with job_directory() as job:
        process = ChildProcess(program.command(), job)
        try:
            while not process.has_ended():
                time.sleep(_SECONDS)
        except BaseException:
            process.stop()
            raise
        process.check()


class MessageFile(dg.PipesMessageReader):
    """Follow a file of Pipes messages as it grows; Dagster's own reader fails at a line that is half written."""

    def __init__(self, path: Path) -> None:
        self._path, self._line = path, ""

    @contextmanager
    def read_messages(self, handler: Any) -> Iterator[dict[str, Any]]:
        """Let ``read`` be called until the session is closed, which reads the rest."""
        self._path.touch()
        with self._path.open(encoding="utf-8") as self._file:
            self._handler = handler
            try:
                yield {PipesDefaultMessageWriter.FILE_PATH_KEY: str(self._path)}
            finally:
                self.read()

    def no_messages_debug_text(self) -> str:
        return f"Attempted to read messages from {self._path}."

    def read(self) -> None:
        while part := self._file.readline():
            self._line += part
            if part.endswith("\n"):
                self._handler.handle_message(json.loads(self._line))
                self._line = ""


class StepLog:
    """Log the steps that a program reports, each as a line and as an observation."""

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        self._context, self._n_logged = context, 0

    def update(self, session: dg.PipesSession) -> None:
        """Log at most ``MAX_OBSERVATIONS`` of a run's steps, and every evaluation."""
        messages = session.get_custom_messages()[self._n_logged :]
        self._n_logged += len(messages)
        for message in filter(lambda message: message.get("kind") == _STEP, messages):
            step, line, values = message["step"], message["said"], message["metrics"]
            if (show := progress_sink.get()) is not None:
                show(line, 0.0)  # it says itself what is left of the program
            if _is_observed(step, message["n_steps"]) or any(name.startswith("eval_") for name in values):
                metrics = {name: dg.MetadataValue.float(float(value)) for name, value in values.items()}
                metadata = {"step": dg.MetadataValue.int(step), **metrics}
                self._context.log.info(line)
                self._context.log_event(dg.AssetObservation(self._context.asset_key, metadata=metadata))


def _is_observed(step: int, n_steps: int) -> bool:
    return step in (1, n_steps) or step % max(1, -(-n_steps // MAX_OBSERVATIONS)) == 0
