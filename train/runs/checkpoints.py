"""Output folders of training: written as a whole or not at all, identified by the digest of their inputs (dataset,
model, arguments) in ``training.json``: with the same digest there, training is skipped. A checkpoint grows in
``.<name>.part`` beside the output; a restart with the same inputs resumes from the trainer's last checkpoint there."""

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.atomic_write import replace_folder
from darkroom.pipelines.storage.row_files import file_digest

HISTORY = "training.json"
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

    def __init__(self, output: Path, inputs: CheckpointInputs, *, writes: bool = True) -> None:
        """``writes`` is true for the first process only: it clears what other inputs left behind. The others wait for
        it, so that none resumes from files that are about to be cleared."""
        self.output, self.writes = output, writes
        self.folder = output.with_name(f".{output.name}.part")
        self.steps, self.final = self.folder / "steps", self.folder / "final"
        self._marker = self.folder / "inputs"
        if writes:
            self._begin(inputs.digest)
        while not self._is_for(inputs.digest):
            time.sleep(0.5)

    def last_step(self, steps: Path | None = None) -> str | None:
        """Find the newest checkpoint of the trainer from an earlier attempt, in ``steps`` or a folder of it."""
        by_step = sorted((steps or self.steps).glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
        complete = [path for path in by_step if _is_json(path / "trainer_state.json")]
        return str(complete[-1]) if complete else None

    def publish(self) -> None:
        if self.writes:
            replace_folder(self.output, self.final)
            shutil.rmtree(self.folder)

    def _begin(self, inputs: str) -> None:
        if not self._is_for(inputs):
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            self._marker.write_text(inputs)
        shutil.rmtree(self.final, ignore_errors=True)
        self.final.mkdir()

    def _is_for(self, inputs: str) -> bool:
        return self._marker.is_file() and self._marker.read_text() == inputs


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
