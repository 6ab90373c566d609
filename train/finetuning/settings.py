"""The settings of SFT, its phases with their datasets and recipes, and each process's share of a batch."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any, Self, cast

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from darkroom.pipelines.publishing.dataset_reader import dataset_files, dataset_folders
from darkroom.pipelines.records.trajectories import LossPolicy
from darkroom.pipelines.storage.user_files import field_errors
from darkroom.train.examples.encoding import Layout
from darkroom.train.runs import TrainError
from darkroom.train.runs.command_line import Flag, n_processes
from darkroom.train.runs.options import MaxPixels, TrainingSettings, require_dataset, without_unset


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Phase:
    """A part of training with its own schedule; it starts from the weights of the phase before. ``families`` are the
    names of the dataset folders to train on; none: all. None stands for the value of ``SftSettings``."""

    name: str = "all"
    families: tuple[str, ...] = ()
    learning_rate: float | None = None
    epochs: float | None = None
    max_steps: int | None = None
    warmup: float | None = None


_SCHEDULE = ("learning_rate", "epochs", "max_steps", "warmup")
_PHASES = TypeAdapter(tuple[Phase, ...])


class SftSettings(TrainingSettings):
    """Inputs of an SFT checkpoint besides datasets and model; defaults of Thyme's first phase, but a small batch."""

    recipe: Annotated[str, Flag(hidden=True)] = ""
    phases: Annotated[tuple[Phase, ...], Flag(json=True)] = (Phase(),)
    """JSON list of phases: objects with name, families, learning_rate, epochs, max_steps, warmup; best in a --config
    file. Keys that a phase omits have the values of these options."""
    layout: Layout = "turns"
    """turns: observations as user turns, as in GRPO. inline: inside one answer, as in Thyme."""
    epochs: float = Field(default=3.0, ge=0.0)
    """Passes over a phase's rows."""
    max_steps: int = -1
    """Steps after which a phase ends; -1: after its epochs."""
    batch_size: int = Field(default=4, ge=1)
    """Rows per step, over all processes."""
    per_device: int | None = Field(default=None, ge=1)
    """Rows per forward pass in each process; default: its whole share of a step."""
    learning_rate: float = Field(1e-5, ge=0.0)
    """Peak of the schedule."""
    warmup: float = Field(default=0.05, ge=0.0, le=0.99)
    """Proportion of the steps that warm up."""
    freeze_vision: bool = False
    """Do not train the vision tower."""
    min_pixels: int | None = Field(default=None, ge=784)
    """Scale smaller images up to this many pixels; default: the model's own limit."""
    max_pixels: MaxPixels = None
    max_tokens: int | None = Field(default=None, ge=1)
    """Token limit of a row; default: the context length of the model."""
    train_observations: bool = False
    """An ablation, never for use: every token after the question is trained, the sandbox's output as well."""
    loss_policy: LossPolicy | None = None
    """An ablation: which rounds are trained, instead of what each row says (all_rounds, last_round)."""
    without_comments: bool = False
    """An ablation: code is read without its comments."""
    drop_nonconforming: bool = False
    """Train on the conforming rows only."""
    skip_missing: bool = False
    """Train a phase without those of its families that do not exist."""
    seed: int = 0
    """Seed of the order of rows."""

    @model_validator(mode="after")
    def _has_distinct_phases(self) -> Self:
        if not self.phases or len({phase.name for phase in self.phases}) < len(self.phases):
            raise TrainError("phases: expected one or more, each with a name of its own")
        return self

    @property
    def planned(self) -> tuple[Phase, ...]:
        """The phases, with the values of the settings where a phase has none."""
        shared = {name: getattr(self, name) for name in _SCHEDULE}
        own = [{name: value for name, value in asdict(phase).items() if value is not None} for phase in self.phases]
        return tuple(Phase(**{**shared, **phase}) for phase in own)

    @property
    def record(self) -> dict[str, Any]:
        """The settings as JSON, with the phases as planned: part of the checkpoint's inputs."""
        phases = [asdict(phase) for phase in self.planned]
        return cast(dict[str, Any], json.loads(json.dumps({**without_unset(self.model_dump()), "phases": phases})))


def read_phases(text: str, over: Mapping[str, Any] | None = None) -> tuple[Phase, ...]:
    """Read phases from a JSON list of objects, in each of which ``over`` takes precedence. Raises ``TrainError``."""
    try:
        entries = [{"name": None, **entry, **(over or {})} for entry in json.loads(text)]
        given = [{key: value for key, value in each.items() if key == "name" or value is not None} for each in entries]
        return _PHASES.validate_python(given)
    except (ValueError, TypeError) as error:
        keys = ", ".join(field.name for field in fields(Phase))
        why = field_errors(error) if isinstance(error, ValidationError) else error
        raise TrainError(f"phases: expected a list of objects with {keys}; found {text} ({why})") from error


def folders_of(phase: Phase, datasets: Sequence[Path], *, skip_missing: bool = False) -> list[Path]:
    """Find the dataset folders of a phase's families; ``datasets`` are dataset folders or folders of several. Raises
    ``TrainError`` for a missing family, unless ``skip_missing`` and another one exists."""
    for dataset in datasets:
        require_dataset(dataset)
    shipped = ([dataset] if dataset_files(dataset) else dataset_folders(dataset) for dataset in datasets)
    by_name = {folder.name: folder for folders in shipped for folder in folders}
    if not by_name:
        mend = "Run: darkroom materialize SOURCE, or point --dataset at a folder with a dataset, or with several"
        raise TrainError(f"no parquet file in {', '.join(map(str, datasets))}. {mend}")
    missing = [name for name in phase.families if name not in by_name]
    chosen = [by_name[name] for name in phase.families if name in by_name] if phase.families else list(by_name.values())
    if missing and not (skip_missing and chosen):
        problem = f"there is no {', '.join(missing)} among {', '.join(sorted(by_name))}"
        mend = "Run: darkroom materialize SOURCE, or leave them out with --skip-missing"
        raise TrainError(f"phase {phase.name} trains on {', '.join(phase.families)}; {problem}. {mend}")
    return chosen


def share_of_batch(settings: SftSettings, *, processes: int | None = None) -> tuple[int, int]:
    """Divide a batch: rows per forward pass and passes per step, in each of ``processes``. Raises ``TrainError`` with
    the arithmetic where their product is not ``batch_size``."""
    n = processes or n_processes()
    per_device = settings.per_device or max(1, settings.batch_size // n)
    accumulation = settings.batch_size // (per_device * n)
    if per_device * accumulation * n != settings.batch_size:
        raise TrainError(
            f"a batch of {settings.batch_size} rows is not {per_device} per device x {n} processes "
            f"= {per_device * n} rows, a whole number of times: {settings.batch_size} / {per_device * n} = "
            f"{settings.batch_size / (per_device * n):g}; change --batch-size, --per-device or the processes"
        )
    return per_device, accumulation


RECIPES = Path(__file__).parents[1] / "recipes"
"""The papers' SFT recipes as YAML; every number has its source beside it."""


def recipe_names() -> list[str]:
    return sorted(path.stem for path in RECIPES.glob("*.yaml"))


def recipe_path(name: str) -> Path:
    """The file of a bundled recipe. Raises ``TrainError`` for an unknown name."""
    if name not in recipe_names():
        raise TrainError(f"--recipe is one of {', '.join(recipe_names())}; found {name!r}; a file goes with --config")
    return RECIPES / f"{name}.yaml"
