"""What TRL's vLLM client needs of a GPU, replaced in this process: everything else is TRL's own code.

TRL imports four functions of vLLM and sends weights over NCCL from a CUDA device only. Here the names exist, the
device is said to be one, and the tensors go over TCP, in the order in which TRL sends them.
"""

import json
import socket
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from unittest import mock

VERSION = "0.31.0"


def install():
    """Before anything imports TRL."""
    modules = {
        "vllm": {"__version__": VERSION, "LLM": object, "RequestOutput": object, "SamplingParams": object},
        "vllm.sampling_params": {"StructuredOutputsParams": object},
        "vllm.utils.network_utils": {"get_ip": lambda: "127.0.0.1"},
        "vllm.distributed.weight_transfer.nccl_common": {"trainer_init": wait_for_server},
        "vllm.distributed.weight_transfer.packed_tensor": {"packed_nccl_broadcast_producer": send},
    }
    for name, content in modules.items():
        parts = name.split(".")
        for package in (".".join(parts[:n]) for n in range(1, len(parts) + 1)):
            if package not in sys.modules:
                sys.modules[package] = ModuleType(package)
                sys.modules[package].__spec__ = ModuleSpec(package, None)
        vars(sys.modules[name]).update(content)

    from trl.generation import vllm_client

    real = vllm_client.VLLMClient.init_communicator

    def init_communicator(client, device):
        of_gpu = SimpleNamespace(device=lambda *_: SimpleNamespace(type="cuda", index=None))
        with mock.patch.object(vllm_client, "torch", of_gpu):
            real(client, device)

    vllm_client.VLLMClient.init_communicator = init_communicator


def wait_for_server(init_info):
    """The trainer's end of the weight group."""
    with socket.create_server((init_info["master_address"], init_info["master_port"])) as waiting:
        connection = waiting.accept()[0]
    return SimpleNamespace(connection=connection, group=SimpleNamespace(store=None, socket=None))


def send(iterator, group, src, post_iter_func):
    for item in iterator:
        tensor = post_iter_func(item).detach().cpu().contiguous()
        group.connection.sendall(tensor.numpy().tobytes())


def keep_sampling_metrics(path):
    """How far the server's log-probabilities are from the trainer's, of every step."""
    from darkroom.train.rl.rollouts.trainer import SandboxGRPOTrainer

    log = SandboxGRPOTrainer.log

    def kept(trainer, logs, *args):
        log(trainer, logs, *args)
        told = {**{name: values[-1] for name, values in trainer._metrics["train"].items() if values}, **logs}
        if difference := {name: value for name, value in told.items() if name.startswith("sampling/")}:
            with Path(path).open("a") as lines:
                lines.write(json.dumps(difference) + "\n")

    SandboxGRPOTrainer.log = kept
