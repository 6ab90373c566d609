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
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from darkroom.pipelines.models.paper_prompts import PaperPrompt, paper_prompt
from darkroom.pipelines.models.prompts import PromptError
from darkroom.train.runs import TrainError
from darkroom.train.runs.command_line import Flag, Values

MaxPixels = Annotated[
    int | None,
    Field(ge=784, description="Scale larger images down to this many pixels; default: the model's own limit."),
]

Lora = Annotated[int, Field(ge=0, description="Rank of LoRA; 0 trains all weights. Merged when saved.")]

Bf16Weights = Annotated[
    bool,
    Field(
        description="On a GPU, keep all weights in bfloat16: half the memory, but at the papers' RL rates few of them "
        "move. LoRA's base weights are so anyway."
    ),
]


_LATER = {
    *("trainer", "bf16_weights", "loss_policy", "without_comments", "options", "method_file"),
    *(f"repetition{field}" for field in ("", "_chars", "_share", "_times", "_min_chars")),
    *("eval_dataset", "eval_limit", "keep_best"),
}
_OFF_AT_0 = {"eval_every", "early_stop"}


TrainerOptions = Annotated[
    dict[str, Any],
    Flag(json=True),
    Field(
        description="JSON object of arguments of TRL's trainer; best as `trainer:` in a --config file, or one by one "
        "as --set trainer.NAME=VALUE."
    ),
]


def without_unset(record: Values) -> Values:
    """Leave out unset options that checkpoints of earlier versions do not name, so that those stay valid."""
    unset = {name for name in _LATER & record.keys() if record[name] in (None, "", {}) or record[name] is False}
    unset |= {name for name in _OFF_AT_0 & record.keys() if record[name] == 0}
    return {name: value for name, value in record.items() if name not in unset}


def local_datasets(names: Sequence[str]) -> list[Path]:
    """Find folders, and local copies of URLs (below DARKROOM_LOCAL). Raises ``StorageError``."""
    from darkroom.pipelines.storage.workspace import Workspace  # heavy, for --help

    return [Workspace.from_environment().local_dataset(name) if "://" in name else Path(name) for name in names]


MODEL_OPTIONS = frozenset({"attn_implementation"})
"""Arguments of the model's loading."""
_HERE = "the programs choose it: checkpoints, logs and seeds are reproducible"
_LAUNCH = "the launch says it: accelerate launch --config_file train/launch/…yaml"
_OPTION = "it has an option of its own"
_EVALUATION = "evaluations are the program's own: --eval-every, --early-stop, --keep-best"
_COMMON = {
    **dict.fromkeys(("output_dir", "logging_steps", "logging_strategy", "disable_tqdm"), _HERE),
    **dict.fromkeys(("save_strategy", "save_only_model", "push_to_hub", "resume_from_checkpoint"), _HERE),
    **dict.fromkeys(("remove_unused_columns", "dataloader_num_workers", "full_determinism"), _HERE),
    **dict.fromkeys(("fsdp", "fsdp_config", "deepspeed", "accelerator_config", "local_rank"), _LAUNCH),
    **dict.fromkeys(("use_cpu", "bf16", "fp16"), "it follows from the device; of the weights: --bf16-weights"),
    **dict.fromkeys(("do_eval", "eval_strategy", "eval_steps", "eval_delay", "eval_on_start"), _EVALUATION),
    **dict.fromkeys(("load_best_model_at_end", "metric_for_best_model", "greater_is_better"), _EVALUATION),
    **dict.fromkeys(("per_device_eval_batch_size", "num_generations_eval", "batch_eval_metrics"), _EVALUATION),
    "model_init_kwargs": "the model is loaded here: attn_implementation is a name of its own",
    "trust_remote_code": "no code of a checkpoint is run",
    "learning_rate": f"{_OPTION}: --learning-rate",
    "num_train_epochs": f"{_OPTION}: --epochs",
    "max_steps": f"{_OPTION}: --max-steps",
    "seed": f"{_OPTION}: --seed",
    "data_seed": f"{_OPTION}: --seed",
    "save_steps": f"{_OPTION}: --save-steps",
    "report_to": f"{_OPTION}: --report-to",
}
_TOKENS = "the method weighs the tokens of its loss itself: --loss-type"
_GROUPS = "the rollouts of a prompt are one batch: --batch-size, --accumulation, --generations"
FIXED: Mapping[str, Mapping[str, str]] = {
    "sft": {
        **_COMMON,
        **dict.fromkeys(("per_device_train_batch_size", "gradient_accumulation_steps"), "--batch-size, --per-device"),
        "warmup_steps": f"{_OPTION}: --warmup",
        "assistant_only_loss": "the rows say which of their tokens are trained",
        "completion_only_loss": "the rows say which of their tokens are trained",
        "max_length": f"cutting a row would cut its images' tokens; {_OPTION}: --max-tokens",
        "chat_template_path": "the template follows from the model's type",
        "dataset_text_field": "rows are read by Darkroom's own collator",
        "dataset_kwargs": "rows are read by Darkroom's own collator",
        **dict.fromkeys(("packing", "padding_free", "eval_packing"), "TRL packs no rows with images"),
    },
    "grpo": {
        **_COMMON,
        **dict.fromkeys(("loss_type", "mask_truncated_completions", "use_liger_kernel", "use_liger_loss"), _TOKENS),
        **dict.fromkeys(("per_device_train_batch_size", "gradient_accumulation_steps"), _GROUPS),
        **dict.fromkeys(("num_generations", "generation_batch_size", "steps_per_generation"), _GROUPS),
        **dict.fromkeys(("reward_weights", "multi_objective_aggregation"), "the method's fields: --set method.NAME"),
        **dict.fromkeys(("use_vllm", "vllm_mode"), f"{_OPTION}: --engine"),
        "vllm_tensor_parallel_size": "processes call vLLM at different times; serve it with vllm serve "
        "--tensor-parallel-size N and --engine vllm_server",
        "use_transformers_continuous_batching": "turns are watched token by token while they are generated",
        "use_transformers_paged": "turns are watched token by token while they are generated",
        "generation_kwargs": "it keeps vision tokens from being sampled",
        "chat_template_kwargs": "the template follows from the model's type",
        "log_multimodal": "images of all processes would be gathered; rollouts.html has them",
        "scale_rewards": f"{_OPTION}: --scale",
        "lr_scheduler_type": f"{_OPTION}: --schedule",
        "max_completion_length": f"{_OPTION}: --max-tokens",
        "max_tool_calling_iterations": f"{_OPTION}: --max-rounds",
        **{name: f"{_OPTION}: --{name.replace('_', '-')}" for name in ("beta", "epsilon", "temperature", "top_p")},
        "repetition_penalty": f"{_OPTION}: --repetition-penalty",
    },
}
"""Names that are not passed on, by program, with the reason."""


def assigned(texts: Any) -> dict[str, Any]:
    """Read ``["trainer.epsilon_high=0.28", …]``, a JSON object, or a mapping. Raises ``TrainError``."""
    if isinstance(texts, str):
        texts = _object(texts) if texts else {}
    if isinstance(texts, Mapping):
        return {str(name): value for name, value in texts.items()}
    pairs = [str(text).removeprefix("trainer.").partition("=")[::2] for text in texts or ()]
    return {name: _value(name, text) for name, text in pairs}


def split_options(options: Mapping[str, Any], program: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split options of the trainer's configuration from those of the model. Raises ``TrainError`` for any other."""
    of_model = {name: value for name, value in options.items() if name in MODEL_OPTIONS}
    return _checked({name: value for name, value in options.items() if name not in of_model}, program), of_model


def configured(kind: Any, arguments: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """Make the trainer's configuration of ``kind``. Raises ``TrainError`` where the library rejects the options."""
    try:
        return kind(**{**arguments, **options})
    except (ValueError, ImportError) as error:
        if not options:
            raise
        raise TrainError(f"trainer.{', trainer.'.join(options)}: {' '.join(str(error).split())}") from error


def _checked(options: Mapping[str, Any], program: str) -> dict[str, Any]:
    if not options:
        return {}
    types = get_type_hints(_configuration(program))
    for name in options:
        if reason := FIXED[program].get(name):
            raise TrainError(f"trainer.{name} cannot be set: {reason}")
        if name not in types:
            near = get_close_matches(name, [*types, *MODEL_OPTIONS], n=1)
            raise TrainError(
                f"no argument trainer.{name} in {_configuration(program).__name__}"
                + (f"; the nearest is trainer.{near[0]}" if near else "; its documentation lists them")
            )
    return {name: _typed(name, value, types[name]) for name, value in options.items()}


def _typed(name: str, value: Any, kind: Any) -> Any:
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise TrainError(f"trainer.{name}: {wrong['msg']}; found {value!r}") from error


def _configuration(program: str) -> Any:
    if program == "sft":
        from trl.trainer.sft_config import SFTConfig

        return SFTConfig
    from trl.trainer.grpo_config import GRPOConfig

    return GRPOConfig


def _object(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise TrainError(f"trainer: expected a JSON object; {error}; found {text}") from error
    if not isinstance(value, dict):
        raise TrainError(f'trainer: expected a JSON object, as in {{"weight_decay": 0.1}}; found {text}')
    return value


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
    """Open the prompt of ``--prompt``; None without. Raises ``TrainError`` for an unknown one or ``protocol``."""
    if not name:
        return None
    try:
        wording = paper_prompt(name)
    except PromptError as error:
        raise TrainError(str(error)) from error
    if protocol is not None and wording.protocol != protocol:
        raise TrainError(
            f"{wording.name} asks for {wording.protocol} turns, not {protocol}: --protocol {wording.protocol}"
        )
    return wording


def wording_record(name: str | None) -> dict[str, Any]:
    """Record the prompt; nothing where none is named, so that older records stay valid."""
    wording = chosen_wording(name)
    return {} if wording is None else {"prompt_file": wording.record}
