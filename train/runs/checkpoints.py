"""Output folders of training: written as a whole or not at all, identified by the digest of their inputs (dataset,
model, arguments) in ``training.json``: with the same digest there, training is skipped. A checkpoint grows in
``.<name>.part`` beside the output; a restart resumes from the trainer's last checkpoint there, also with other settings
of ``resumed_arguments.yaml``. With any other change it is refused: a restart point is only deleted by ``--restart``."""

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.atomic_write import replace_folder
from darkroom.pipelines.storage.row_files import file_digest
from darkroom.train.runs import TrainError
from darkroom.train.runs.command_line import n_processes

HISTORY = "training.json"
DONE = "done.json"
"""The steps of a finished phase, in its folder below ``Staging.steps``."""
_LISTS = yaml.safe_load(Path(__file__).with_name("resumed_arguments.yaml").read_text(encoding="utf-8"))
_RESUMED = frozenset(chain.from_iterable(_LISTS))
_NOT_INPUT = {HISTORY, "loss.png", "reward.png", "metrics.png", "rollouts.html", "rollouts"}
"""Reports on a checkpoint, no part of the model: files, and the folder of sample rollouts."""


@dataclass(frozen=True, slots=True)
class CheckpointInputs:
    """The inputs of a checkpoint."""

    dataset: str
    model: str
    arguments: Mapping[str, Any]

    @property
    def digest(self) -> str:
        return digest([self.dataset, self.model, dict(self.arguments)])


def folder_digest(folder: Path, pattern: str = "*") -> str:
    """Digest names and contents of a folder's files (sha256); files are streamed, hidden ones and reports left out."""
    files = sorted(path for path in folder.rglob(pattern) if path.is_file() and _counts(path.relative_to(folder)))
    return digest([[path.relative_to(folder).as_posix(), file_digest(path)] for path in files])


def finished(output: Path, inputs: CheckpointInputs) -> dict[str, Any] | None:
    """Read the history of a complete checkpoint made from ``inputs``; None when there is none."""
    path = output / HISTORY
    if not path.is_file():
        return None
    history: dict[str, Any] = json.loads(path.read_text())
    return history if history.get("inputs", {}).get("digest") == inputs.digest else None


class Staging:
    """The folder beside the output in which a checkpoint grows: ``steps`` for the trainer, ``final`` to publish."""

    def __init__(self, output: Path, inputs: CheckpointInputs, *, writes: bool = True, restart: bool = False) -> None:
        """``writes`` is true for the first process only: with ``restart`` it clears what an interrupted training left.
        The others wait for it, so that none resumes from files that are about to be cleared. ``changes`` are those of
        each restart. Raises ``TrainError`` where there is a restart point for other inputs."""
        self.output, self.writes = output, writes
        self.folder = output.with_name(f".{output.name}.part")
        self.steps, self.final = self.folder / "steps", self.folder / "final"
        self._marker, self._inputs = self.folder / "inputs", self.folder / "inputs.json"
        if writes:
            self._begin(inputs, restart)
        if restart and n_processes() > 1:  # what the marker says may be from before the restart
            from accelerate import PartialState  # heavy

            PartialState().wait_for_everyone()
        while not self._is_for(inputs.digest):
            time.sleep(0.5)
        self.changes: list[dict[str, Any]] = json.loads(self._inputs.read_text())["changes"]

    def last_step(self, steps: Path | None = None) -> str | None:
        """Find the newest checkpoint of the trainer from an earlier attempt, in ``steps`` or a folder of it."""
        by_step = sorted((steps or self.steps).glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
        complete = [path for path in by_step if _is_json(path / "trainer_state.json")]
        return str(complete[-1]) if complete else None

    def publish(self) -> None:
        if self.writes:
            replace_folder(self.output, self.final)
            shutil.rmtree(self.folder)

    def _begin(self, inputs: CheckpointInputs, restart: bool) -> None:
        record = json.loads(json.dumps({**asdict(inputs), "processes": n_processes(), "changes": []}))
        if restart or not any(chain(self.steps.rglob("trainer_state.json"), self.steps.rglob(DONE))):
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
        elif self._inputs.is_file():
            before = json.loads(self._inputs.read_text())
            now = self._changes(_by_name(before), _by_name(record))
            record["changes"] = [*before["changes"], *([now] if now else [])]
        elif not self._is_for(inputs.digest):
            raise self._other_inputs("an earlier version of Darkroom began it")
        self._inputs.write_text(json.dumps(record))
        self._marker.write_text(inputs.digest)
        shutil.rmtree(self.final, ignore_errors=True)
        self.final.mkdir()

    def _is_for(self, inputs: str) -> bool:
        return self._marker.is_file() and self._marker.read_text() == inputs

    def _changes(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
        """Find what has changed since the restart point, and how. Raises ``TrainError`` for what may not change."""
        changes = {name: [old.get(name), new.get(name)] for name in {**old, **new} if old.get(name) != new.get(name)}
        may_change = set(_RESUMED)
        if _rows_per_step(old) != _rows_per_step(new):
            may_change -= {"batch_size", "accumulation"}
        if old.get("eval_every") and (new.get("early_stop") or new.get("keep_best")):
            may_change -= {"eval_dataset", "eval_limit"}  # evaluations on other rows cannot be compared
        if self._kept(old) == self._kept(new):
            may_change.add("phases")
        if wrong := changes.keys() - may_change:
            names = sorted(wrong - {"phases"}) or ["phases"]  # which repeat what is set for all of them
            told = ("{}: {!r:.60}, now {!r:.60}".format(name, *changes[name]) for name in names)
            raise self._other_inputs("; ".join(told))
        return changes

    def _kept(self, inputs: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Select what may not change of SFT's phases: all of a finished one, of the others all but their length."""
        phases = list(enumerate(inputs.get("phases", ())))
        finished = {number for number, phase in phases if (self.steps / f"{number}-{phase['name']}" / DONE).is_file()}
        length = {"epochs", "max_steps"}
        return [{key: phase[key] for key in phase.keys() - (set() if n in finished else length)} for n, phase in phases]

    def _other_inputs(self, why: str) -> TrainError:
        mend = "Run that one again, choose another --output, or delete it and begin anew with --restart"
        return TrainError(f"{self.folder} has a restart point of a training with other inputs ({why}). {mend}")


def _by_name(record: Mapping[str, Any]) -> dict[str, Any]:
    trainer = {f"trainer.{name}": value for name, value in record["arguments"].get("trainer", {}).items()}
    inputs = {**record["arguments"], **trainer, **{name: record[name] for name in ("dataset", "model", "processes")}}
    return {name: value for name, value in inputs.items() if name != "trainer"}


def _rows_per_step(inputs: Mapping[str, Any]) -> Any:
    """Count the rows of a step: GRPO's batch size is of one process, that of SFT of all."""
    n_batches = inputs["accumulation"] * inputs["processes"] if "accumulation" in inputs else 1
    return inputs.get("batch_size", 1) * n_batches


def _is_json(path: Path) -> bool:
    """True if a file was written to its end: the trainer writes this one last, and not at once."""
    try:
        json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return False
    return True


def _counts(path: Path) -> bool:
    return not any(part.startswith(".") or part in _NOT_INPUT for part in path.parts)


class RestoresCheckpoints:
    """A trainer, mixed into one of TRL's before it, that reads the whole model or fails."""

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        trainer: Any = self
        target = trainer.model if model is None else model
        if trainer.is_fsdp_enabled or hasattr(target, "peft_config"):
            super()._load_from_checkpoint(resume_from_checkpoint, model)  # type: ignore[misc]
            return
        saved = type(target).from_pretrained(resume_from_checkpoint, dtype=target.dtype)
        target.load_state_dict(saved.state_dict(), strict=True)
