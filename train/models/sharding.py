"""Several processes: requirements of their launch, and the measures that keep their forward passes alike.

Where weights are sharded (FSDP, DeepSpeed ZeRO-3), every layer's forward pass is a collective operation: all processes
must make the same passes in the same order, in training and while they generate. Two things differ between processes
otherwise: how many tokens and turns are generated (``Lockstep``), and whether a batch has images,
without which the vision tower does not run (``always_sees``).

FSDP needs GPUs: on a CPU (``use_cpu: true``) accelerate 1.15 ignores an FSDP configuration and trains with DDP.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from darkroom.train.runs import TrainError

if TYPE_CHECKING:
    import torch

CONFIGURATIONS = "train/launch"
"""Folder of the configurations for ``accelerate launch --config_file``."""


def is_sharded(trainer: Any) -> bool:
    deepspeed = trainer.accelerator.state.deepspeed_plugin
    return bool(trainer.is_fsdp_enabled) or (deepspeed is not None and deepspeed.zero_stage == 3)


def check_launch(*, lora: int, engine: str = "transformers") -> None:
    """Raise ``TrainError`` without the ``engine``, and for an ``accelerate`` that could not end with a checkpoint."""
    if engine != "transformers" and find_spec("vllm") is None:
        mend = "`darkroom train environment vllm` installs such an environment and prints its program (docs/grpo.md)"
        needed = "vLLM in the environment that trains, for a server, too (TRL imports it)"
        raise TrainError(f"--engine {engine} needs {needed}: {mend}")
    if _is_set("ACCELERATE_USE_FSDP"):
        kind = "fsdp"
        if os.environ.get("FSDP_VERSION", "1") != "2":
            raise TrainError(f"FSDP 1 is not supported: set fsdp_version: 2, as in {CONFIGURATIONS}/fsdp.yaml")
        if os.environ.get("FSDP_STATE_DICT_TYPE", "") != "FULL_STATE_DICT":
            mend = f"set fsdp_state_dict_type: FULL_STATE_DICT, as in {CONFIGURATIONS}/fsdp.yaml"
            raise TrainError(f"with sharded state dicts no checkpoint would be written at the end: {mend}")
    elif _is_set("ACCELERATE_USE_DEEPSPEED") and os.environ.get("ACCELERATE_DEEPSPEED_ZERO_STAGE", "2") == "3":
        kind = "zero3"
        if not _is_set("ACCELERATE_DEEPSPEED_ZERO3_SAVE_16BIT_MODEL"):
            mend = f"set zero3_save_16bit_model: true, as in {CONFIGURATIONS}/zero3.yaml"
            raise TrainError(f"ZeRO-3 would write no checkpoint at the end: {mend}")
    else:
        return
    if lora:
        mend = f"leave {CONFIGURATIONS}/{kind}.yaml out (LoRA needs no optimiser state for the base weights)"
        raise TrainError(f"--lora {lora} cannot be merged where weights are sharded: {mend}, or train all weights")


def note_on_launch(trainer: Any) -> str:
    """Describe how the processes share the work; empty in one process."""
    n = trainer.accelerator.num_processes
    if _is_set("ACCELERATE_USE_FSDP") and not trainer.is_fsdp_enabled:
        return f"{n} process(es) WITHOUT FSDP, whose configuration accelerate ignores on a CPU: each has all weights"
    if n == 1:
        return ""
    return f"{n} processes, {'weights sharded' if is_sharded(trainer) else 'all weights in each'}"


def always_sees(model: Any) -> None:
    """Make the vision tower run in every forward pass but those of single further tokens, as it runs for a batch with
    images. A batch without sees a grey image of one token, which is multiplied by 0: the gradients of the tower are 0
    then, not missing, which would leave the other processes waiting."""
    core = next(part for part in model.modules() if hasattr(part, "visual") and hasattr(part, "language_model"))
    has_run = False

    def mark(value: bool) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            nonlocal has_run
            has_run = value

        return hook

    def before(_: Any, args: Any, kwargs: dict[str, Any]) -> None:
        cache = kwargs.get("past_key_values")
        if cache is not None and cache.get_seq_length() == 0 and not has_run:
            _zero(core)

    def within(_: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if has_run or kwargs.get("past_key_values") is not None:
            return args, kwargs
        embedded = kwargs["inputs_embeds"]
        return args, {**kwargs, "inputs_embeds": embedded + _zero(core).to(embedded.dtype)}

    core.visual.register_forward_hook(mark(True))
    core.register_forward_hook(mark(False))
    core.register_forward_pre_hook(before, with_kwargs=True)
    core.language_model.register_forward_pre_hook(within, with_kwargs=True)


class Lockstep:
    """Lockstep of processes that share sharded weights: they take their turns together, each a collective operation,
    for which they would otherwise wait for ever. Before each turn all processes report if they have one to write; one
    without writes an ``empty_turn`` of a single token, which is not read, until none has any."""

    def __init__(self, accelerator: Any, empty_turn: Callable[[], None]) -> None:
        self._accelerator, self._empty_turn = accelerator, empty_turn

    def begin_turn(self) -> None:
        self._anyone_writes(True)

    def finish(self) -> None:
        while self._anyone_writes(False):
            self._empty_turn()

    def _anyone_writes(self, writes: bool) -> bool:
        import torch

        count = torch.tensor(float(writes), device=self._accelerator.device)
        return bool(self._accelerator.reduce(count, reduction="sum").item())


def _zero(core: Any) -> torch.Tensor:
    """Compute 0 from all features that the tower gives for a grey image."""
    import torch

    vision, device = core.config.vision_config, next(core.visual.parameters()).device
    side = vision.spatial_merge_size
    grey = torch.zeros(side**2, vision.in_channels * vision.temporal_patch_size * vision.patch_size**2, device=device)
    output = core.get_image_features(grey, torch.tensor([[1, side, side]], device=device))
    features = [*output.pooler_output, *(part for level in getattr(output, "deepstack_features", ()) for part in level)]
    return cast(torch.Tensor, 0.0 * sum(feature.sum() for feature in features))


def _is_set(name: str) -> bool:
    return os.environ.get(name, "false").lower() == "true"
