from pathlib import Path

import pytest
import torch
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env

from darkroom.train.models.loading import load_model, load_processor
from darkroom.train.models.sharding import CONFIGURATIONS, always_sees, check_launch
from darkroom.train.runs import TrainError

LAUNCH = Path(__file__).parents[3] / CONFIGURATIONS
IDS = torch.arange(5, 37).view(1, -1)


def counted(model):
    """How often the tower runs."""
    calls = []
    model.model.visual.register_forward_hook(lambda *_: calls.append(1))
    return calls


def test_a_batch_without_images_runs_the_vision_tower_and_changes_nothing(model):
    plain, seeing = load_model(model), load_model(model)
    always_sees(seeing)
    calls = counted(seeing)
    losses = [one(input_ids=IDS, labels=IDS).loss for one in (plain, seeing)]
    assert torch.equal(*losses)
    for loss in losses:
        loss.backward()
    assert calls == [1]
    for (name, one), (_, other) in zip(plain.named_parameters(), seeing.named_parameters(), strict=True):
        if ".visual." in name:
            assert one.grad is None
            assert not other.grad.any()
        else:
            assert torch.equal(one.grad, other.grad)


@pytest.mark.parametrize("with_image", [False, True])
def test_while_it_generates_the_tower_runs_once(with_image, model, dataset):
    from tests.train.conftest import picture

    processor, loaded = load_processor(model), load_model(model)
    always_sees(loaded)
    calls = counted(loaded)
    text = "<|vision_start|><|image_pad|><|vision_end|>" if with_image else "What is 17 * 3?"
    inputs = processor(text=[text], images=[picture(0)[0]] if with_image else None, return_tensors="pt")
    loaded.generate(**inputs, max_new_tokens=3, do_sample=False)
    assert calls == [1]


def environment_of(configuration):
    """What `accelerate launch --config_file` sets for the programs."""
    arguments = launch_command_parser().parse_args(["--config_file", str(LAUNCH / f"{configuration}.yaml"), "x.py"])
    arguments = _validate_launch_command(arguments)[0]
    if arguments.use_deepspeed:
        arguments.deepspeed_fields_from_accelerate_config = ""  # set where DeepSpeed is installed
        return prepare_deepspeed_cmd_env(arguments)[1]
    return prepare_multi_gpu_env(arguments)


@pytest.fixture
def launched_with(monkeypatch):
    def launch(configuration, **changes):
        for name, value in {**environment_of(configuration), **changes}.items():
            if name.startswith(("ACCELERATE_", "FSDP_")):
                monkeypatch.setenv(name, value)

    return launch


@pytest.mark.parametrize("configuration", ["ddp", "fsdp", "zero2", "zero3"])
def test_what_ships_can_be_launched(configuration, launched_with):
    launched_with(configuration)
    check_launch(lora=0)


def test_the_fsdp_configuration_is_what_accelerate_reads(launched_with):
    from accelerate import FullyShardedDataParallelPlugin

    launched_with("fsdp")
    plugin = FullyShardedDataParallelPlugin()
    assert plugin.fsdp_version == 2
    assert plugin.reshard_after_forward is True
    assert "FULL_STATE_DICT" in str(plugin.state_dict_type)
    assert not plugin.activation_checkpointing


@pytest.mark.parametrize(
    ("configuration", "changes", "message"),
    [
        ("fsdp", {"FSDP_VERSION": "1"}, "set fsdp_version: 2, as in train/launch/fsdp.yaml"),
        ("fsdp", {"FSDP_STATE_DICT_TYPE": "SHARDED_STATE_DICT"}, "fsdp_state_dict_type: FULL_STATE_DICT"),
        ("zero3", {"ACCELERATE_DEEPSPEED_ZERO3_SAVE_16BIT_MODEL": "false"}, "zero3_save_16bit_model: true"),
    ],
)
def test_a_launch_without_a_checkpoint_at_its_end_is_refused(configuration, changes, message, launched_with):
    launched_with(configuration, **changes)
    with pytest.raises(TrainError, match=message):
        check_launch(lora=0)


@pytest.mark.parametrize(("configuration", "is_refused"), [("fsdp", True), ("zero3", True), ("zero2", False)])
def test_lora_is_for_whole_weights(configuration, is_refused, launched_with):
    launched_with(configuration)
    if is_refused:
        with pytest.raises(TrainError, match="--lora 8 cannot be merged where weights are sharded"):
            check_launch(lora=8)
    else:
        check_launch(lora=8)


def test_an_engine_that_is_not_installed_is_refused_with_where_it_is():
    """TRL's own message would come after the model is loaded, and names no environment."""
    with pytest.raises(
        TrainError, match=r"--engine vllm_server needs vLLM in the environment that trains.*train environment vllm"
    ):
        check_launch(lora=0, engine="vllm_server")
