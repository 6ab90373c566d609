"""Options that several programs share: arguments of TRL and transformers (``--set trainer.NAME=VALUE``), and
``--prompt``.

    trainer:                       # in a --config file
      epsilon_high: 0.28
      attn_implementation: flash_attention_2

Any field of ``SFTConfig`` or ``GRPOConfig``, and ``attn_implementation`` of the model. Fields that a program or a
method sets itself are rejected with the reason, unknown ones with the nearest name.
"""

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import yaml
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from darkroom.pipelines.models.paper_prompts import PaperPrompt, paper_prompt
from darkroom.train.runs import TrainError
from darkroom.train.runs.command_line import Flag, ProgramSettings, Values
from darkroom.train.runs.held_out import HeldOutSettings

MaxPixels = Annotated[
    int | None,
    Field(ge=784, description="Scale larger images down to this many pixels; default: the model's own limit."),
]


class RunOptions(ProgramSettings):
    """Options of a run, which are no inputs of its checkpoint."""

    save_steps: int = Field(default=0, ge=0)
    """Save a checkpoint every so many steps, from which training resumes. 0: none."""
    force: bool = False
    """Train even if the output is complete."""
    restart: bool = False
    """Delete what an interrupted training left for this output, and begin anew."""


_LATER = yaml.safe_load(Path(__file__).with_name("later_options.yaml").read_text(encoding="utf-8"))


def without_unset(record: Values) -> Values:
    """Leave out unset options that checkpoints of earlier versions do not name, so that those stay valid."""
    later = record.keys() & _LATER["options"]
    unset = {name for name in later if record[name] in (None, "", {}) or record[name] is False}
    unset |= {name for name in record.keys() & _LATER["off_at_0"] if record[name] == 0}
    return {name: value for name, value in record.items() if name not in unset}


def local_datasets(names: Sequence[str]) -> list[Path]:
    """Find folders, and local copies of URLs (below DARKROOM_LOCAL). Raises ``StorageError``."""
    from darkroom.pipelines.storage.workspace import Workspace  # heavy, for --help

    return [Workspace.from_environment().local_dataset(name) if "://" in name else Path(name) for name in names]


def require_dataset(folder: Path) -> None:
    if not folder.is_dir():
        how = "darkroom materialize SOURCE, or name the folder of a dataset; for an RL dataset darkroom rl SOURCE"
        raise TrainError(f"no dataset folder {folder}. Run: {how}")


MODEL_OPTIONS = frozenset({"attn_implementation"})
"""Arguments of the model's loading."""
_REASONS = yaml.safe_load(Path(__file__).with_name("fixed_arguments.yaml").read_text(encoding="utf-8"))
FIXED: Mapping[str, Mapping[str, str]] = {
    program: {name: reason for part in ("both", program) for reason, names in _REASONS[part].items() for name in names}
    for program in ("sft", "grpo")
}
"""Names that are not passed on, by program, with the reason."""


def assigned(texts: Any) -> dict[str, Any]:
    """Read ``["trainer.epsilon_high=0.28", …]``, a JSON object, or a mapping. Raises ``TrainError``."""
    if isinstance(texts, str):
        try:
            values = json.loads(texts or "{}")
        except ValueError as error:
            raise TrainError(f"trainer: expected a JSON object; {error}; found {texts}") from error
        if not isinstance(values, dict):
            raise TrainError(f'trainer: expected a JSON object, as in {{"weight_decay": 0.1}}; found {texts}')
        texts = values
    if isinstance(texts, Mapping):
        return {str(name): value for name, value in texts.items()}
    pairs = [str(text).removeprefix("trainer.").partition("=")[::2] for text in texts or ()]
    return {name: _value(name, text) for name, text in pairs}


class TrainingSettings(HeldOutSettings):
    """Settings of every training."""

    trainer: Annotated[dict[str, Any], BeforeValidator(assigned), Flag(json=True)] = Field(default={})
    """JSON object of arguments of TRL's trainer; better `trainer:` in a --config file, or --set trainer.NAME=VALUE."""
    lora: int = Field(default=0, ge=0)
    """Rank of LoRA; 0 trains all weights. Merged when saved."""
    bf16_weights: bool = False
    """All weights in bfloat16 on a GPU, as LoRA's base is: half the memory; at the papers' RL rates few move."""


def split_options(options: Mapping[str, Any], program: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split options of the trainer's configuration from those of the model. Raises ``TrainError`` for any other."""
    of_model = {name: value for name, value in options.items() if name in MODEL_OPTIONS}
    others = {name: value for name, value in options.items() if name not in of_model}
    if not others:
        return {}, of_model
    kind = getattr(import_module(f"trl.trainer.{program}_config"), f"{program.upper()}Config")
    types = get_type_hints(kind)
    for name in others:
        if reason := FIXED[program].get(name):
            raise TrainError(f"trainer.{name} cannot be set: {reason}")
        if name not in types:
            near = get_close_matches(name, [*types, *MODEL_OPTIONS], n=1)
            hint = f"the nearest is trainer.{near[0]}" if near else "its documentation lists them"
            raise TrainError(f"no argument trainer.{name} in {kind.__name__}; {hint}")
    return {name: _typed(name, value, types[name]) for name, value in others.items()}, of_model


def _typed(name: str, value: Any, kind: Any) -> Any:
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise TrainError(f"trainer.{name}: {error.errors()[0]['msg']}; found {value!r}") from error


def _value(name: str, text: str) -> Any:
    """Read a value as YAML does, but 1e-5 is a number."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise TrainError(f"trainer.{name}: {' '.join(str(error).split())}; found {text!r}") from error
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def chosen_wording(name: str | None, *, protocol: str | None = None) -> PaperPrompt | None:
    """Open the prompt of ``--prompt``, if any. Raises ``UserError``, and ``TrainError`` for another ``protocol``'s."""
    if not name:
        return None
    wording = paper_prompt(name)
    if protocol is not None and (own := wording.protocol) != protocol:
        raise TrainError(f"{wording.name} asks for {own} turns, not {protocol}: --protocol {own}")
    return wording


def wording_record(name: str | None) -> dict[str, Any]:
    """Record the prompt; nothing where none is named, so that older records stay valid."""
    wording = chosen_wording(name)
    return {} if wording is None else {"prompt_file": wording.record}
