"""Runs the training programs in several processes of one machine, as `torchrun` starts them, without its imports.

    python -m tests.e2e.ranks RUNS.json

RUNS is a list of {"program": "grpo", "words": […], "processes": 2, "sharded": true, "killed_at": "**/checkpoint-1"}.
Prints one JSON object per run: {"statuses": [0, 0], "seconds": 3.2}. ``killed_at`` is a pattern below the folder that
the output is in: rank 1 waits after its first checkpoint (an evaluation: before its first turn) for a file of that name
and then gets SIGKILL; the others are terminated, as torchrun does.

With "vllm", a file for the sampling metrics, vLLM's names exist (``tests/soak/vllm_without_gpu.py``).
``sharded`` is FSDP 2 over gloo on a CPU. accelerate itself shards on GPUs only: it is told here that the CPU is one.
"""

import contextlib
import functools
import importlib
import json
import os
import signal
import sys
import time
from pathlib import Path

from tests.ports import free_port
from tests.soak import vllm_without_gpu

PROGRAMS = {"sft": "darkroom.train.sft", "grpo": "darkroom.train.grpo", "evaluate": "darkroom.train.evaluate"}
FSDP = {
    "ACCELERATE_USE_FSDP": "true",
    "FSDP_VERSION": "2",
    "FSDP_STATE_DICT_TYPE": "FULL_STATE_DICT",
    "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
    "FSDP_RESHARD_AFTER_FORWARD": "true",
    "FSDP_CPU_RAM_EFFICIENT_LOADING": "true",
    "FSDP_SYNC_MODULE_STATES": "true",
}
DEADLINE_SECONDS = 900


def main(runs):
    if any("vllm" in run for run in runs):
        vllm_without_gpu.install()
    import_libraries()
    for run in runs:
        start = time.monotonic()
        statuses = launched(run)
        print(json.dumps({"statuses": statuses, "seconds": round(time.monotonic() - start, 1)}), flush=True)


def import_libraries():
    import trl  # noqa: F401
    from trl.trainer import grpo_trainer, sft_trainer  # noqa: F401

    for name in (
        *PROGRAMS.values(),
        "darkroom.train.rl.rollouts.trainer",
        "darkroom.train.finetuning.phases",
        "darkroom.train.models.local_policy",
    ):
        importlib.import_module(name)


def launched(run):
    """The exit statuses of the run's processes; -9 of one that was killed or that had to be."""
    port, n = free_port(), run.get("processes", 1)
    children = [forked(run, rank, n, port) for rank in range(n)]
    statuses, deadline, told = {}, time.monotonic() + DEADLINE_SECONDS, False
    while len(statuses) < n:
        for rank, child in enumerate(children):
            if rank not in statuses and (done := os.waitpid(child, os.WNOHANG))[0]:
                statuses[rank] = os.waitstatus_to_exitcode(done[1])
        if time.monotonic() > deadline or (not told and any(statuses.values())):
            late, told, deadline = time.monotonic() > deadline, True, time.monotonic() + 10
            for rank, child in enumerate(children):
                if rank not in statuses:
                    os.kill(child, signal.SIGKILL if late else signal.SIGTERM)
        time.sleep(0.02)
    return [statuses[rank] for rank in range(n)]


def forked(run, rank, n, port):
    if child := os.fork():
        return child
    status = 1
    try:
        os.environ.update(DARKROOM_HOME=run["home"])
        if n > 1:
            place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": n, "LOCAL_WORLD_SIZE": n, "MASTER_PORT": port}
            os.environ.update({name: str(value) for name, value in place.items()}, MASTER_ADDR="127.0.0.1")
        if run.get("sharded"):
            shard_on_cpu()
        if "vllm" in run and rank == 0:
            vllm_without_gpu.keep_sampling_metrics(run["vllm"])
        if "turns" in run:
            follow_script(run["turns"][rank])
        if "killed_at" in run and rank == 1:
            die_at(run)
        status = run_program(run)
    finally:
        os._exit(status)


def run_program(run):
    from darkroom.pipelines.command_line.errors import program_of

    module = importlib.import_module(PROGRAMS[run["program"]])
    program = program_of(module.main)
    try:
        program(run["words"], standalone_mode=True)
    except SystemExit as ended:
        with contextlib.suppress(Exception):
            from darkroom.pipelines.generation.sandbox_sessions import close_process_pool
            from darkroom.sandbox import Limits

            close_process_pool(Limits())
        sys.stdout.flush()
        return int(ended.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
        return 1
    return 0


def shard_on_cpu():
    from accelerate.state import PartialState
    from accelerate.utils import DistributedType

    from darkroom.train.models import loading

    os.environ.update(FSDP, ACCELERATE_TORCH_DEVICE="cpu")
    PartialState._prepare_backend = lambda *_, **__: ("gloo", DistributedType.MULTI_XPU)
    arguments = loading.device_arguments
    loading.device_arguments = lambda: {**arguments(), "use_cpu": False}


def die_at(run):
    from transformers.generation import GenerationMixin
    from transformers.trainer_callback import CallbackHandler

    folder = Path(run["words"][run["words"].index("--output") + 1]).parent

    def die(*_, **__):
        while not any(folder.glob(run["killed_at"])):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGKILL)

    if run["program"] == "evaluate":
        GenerationMixin.generate = die
    else:
        CallbackHandler.on_save = die


def follow_script(turns):
    """The model writes ``turns[row % …][n]`` after the sandbox has answered n times."""
    from transformers import LogitsProcessorList
    from transformers.generation import GenerationMixin

    from darkroom.train.rl.rollouts.trainer import SandboxGRPOTrainer
    from tests.train.scripted import OBSERVED, Scripted

    generate, build, tokenizers = GenerationMixin.generate, SandboxGRPOTrainer.__init__, []

    @functools.wraps(build)
    def built(trainer, *args, **kwargs):
        tokenizers.append(kwargs["processing_class"].tokenizer)
        build(trainer, *args, **kwargs)

    @functools.wraps(generate)
    def scripted(model, **inputs):
        texts = tokenizers[-1].batch_decode(inputs["input_ids"])
        shown = [sum(text.count(f"{mark}<|im_end|>") for mark in OBSERVED) for text in texts]
        scripts = [turns[row % len(turns)][min(n, len(turns[row % len(turns)]) - 1)] for row, n in enumerate(shown)]
        rules = [*inputs.pop("logits_processor", ()), Scripted(tokenizers[-1], inputs["input_ids"].shape[1], scripts)]
        return generate(model, **inputs, logits_processor=LogitsProcessorList(rules))

    SandboxGRPOTrainer.__init__, GenerationMixin.generate = built, scripted


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
