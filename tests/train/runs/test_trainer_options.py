from dataclasses import fields

import pytest
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.sft_config import SFTConfig
from typer.testing import CliRunner

from darkroom.train.finetuning.settings import SftSettings
from darkroom.train.models.loading import load_model
from darkroom.train.rl.methods import settings_of
from darkroom.train.runs import TrainError
from darkroom.train.runs.options import FIXED, assigned, split_options
from darkroom.train.sft import finetune

CONFIGURATIONS = {"sft": SFTConfig, "grpo": GRPOConfig}


def test_assignments_of_the_command_line_are_numbers_where_they_can_be():
    options = ["method.weight_tool=0.3", "trainer.epsilon_high=2.8e-1", "trainer.num_iterations=2"]
    settings = settings_of("codev", options=[*options, "trainer.attn_implementation=sdpa"])
    assert settings.options == {"weight_tool": 0.3}
    assert settings.trainer == {"epsilon_high": 0.28, "num_iterations": 2, "attn_implementation": "sdpa"}
    trainer, model = split_options(settings.trainer, "grpo")
    assert (trainer, model) == ({"epsilon_high": 0.28, "num_iterations": 2}, {"attn_implementation": "sdpa"})


def test_an_assignment_takes_precedence_over_the_file():
    settings = settings_of("codev", trainer='{"epsilon_high": 0.3, "delta": 4}', options=["trainer.epsilon_high=0.2"])
    assert settings.trainer == {"epsilon_high": 0.2, "delta": 4}


def test_arguments_are_part_of_a_checkpoints_inputs_only_where_they_are_set():
    assert "trainer" not in settings_of("codev").record
    assert "trainer" not in SftSettings().record
    assert settings_of("codev", options=["trainer.delta=4"]).record["trainer"] == {"delta": 4}
    assert SftSettings(trainer={"weight_decay": 0.1}).record["trainer"] == {"weight_decay": 0.1}


@pytest.mark.parametrize(
    ("program", "name", "message"),
    [
        ("grpo", "epsilon_hi", r"no argument trainer.epsilon_hi in GRPOConfig; the nearest is trainer.epsilon_high"),
        ("sft", "atn_implementation", "the nearest is trainer.attn_implementation"),
        ("sft", "epsilon_high", "no argument trainer.epsilon_high in SFTConfig"),
        ("grpo", "loss_type", "trainer.loss_type cannot be set: the method weighs the tokens of its loss itself"),
        ("grpo", "sapo_temperature_pos", r"of a loss of TRL's that no method has; .*--loss-type, --epsilon"),
        ("grpo", "sync_ref_model", "the reference is the model that training starts from, .*: --beta"),
        ("grpo", "vllm_importance_sampling_cap", r"its name is trainer\.vllm_importance_sampling_clip_max now"),
        ("grpo", "neftune_noise_alpha", r"the policy in training and the one that rolled out.*; leave it out"),
        ("sft", "packing", "trainer.packing cannot be set: TRL packs no rows with images"),
        ("sft", "fsdp", "trainer.fsdp cannot be set: the launch says it"),
    ],
)
def test_what_cannot_be_passed_on_is_one_line_with_the_reason(program, name, message):
    with pytest.raises(TrainError, match=message) as raised:
        split_options({name: 1}, program)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["{bad", "[1, 2]", '"a"'])
def test_an_object_that_is_none_is_one_line(text):
    with pytest.raises(TrainError, match="trainer: expected a JSON object") as raised:
        assigned(text)
    assert "\n" not in str(raised.value)


def test_a_value_that_is_not_yaml_is_one_line():
    with pytest.raises(TrainError, match=r"trainer\.delta: .*found '\['") as raised:
        settings_of("codev", options=["trainer.delta=["])
    assert "\n" not in str(raised.value)


def test_a_zero_that_is_set_is_part_of_a_checkpoints_inputs():
    assert settings_of("codev", repetition_min_chars=0).record["repetition_min_chars"] == 0
    assert "repetition_min_chars" not in settings_of("codev").record


def test_a_value_of_another_type_is_one_line():
    with pytest.raises(TrainError, match=r"trainer.delta: .*found 'much'"):
        split_options({"delta": "much"}, "grpo")


@pytest.mark.parametrize("program", CONFIGURATIONS)
def test_the_list_of_fixed_names_has_no_misspelling(program):
    known = {field.name for configuration in CONFIGURATIONS.values() for field in fields(configuration)}
    older = {"local_rank", "use_liger_loss", "full_determinism"}  # of other versions
    assert FIXED[program].keys() - known <= older


def test_the_model_has_the_attention_that_is_named(tiny):
    assert load_model(tiny, attn_implementation="eager").config._attn_implementation == "eager"


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ({"attn_implementation": "flash_attention_2"}, "ImportError: .*FlashAttention2"),
        ({"activation_offloading": True}, "AttributeError: "),  # there is no GPU to take them from
        ({"use_liger_kernel": True}, "ImportError: .*`pip install liger-kernel`"),
        ({"optim": "adamw_8bit"}, "ImportError: .*`pip install -U bitsandbytes`"),
        ({"loss_type": "other"}, "ValueError: .*'nll' and 'dft'"),
    ],
    ids=lambda value: "".join(value),
)
@pytest.mark.filterwarnings("ignore:.use_liger_kernel=True. is deprecated:FutureWarning")
def test_a_library_that_cannot_do_what_an_option_says_is_one_line(option, reason, signs, tiny_signs, tmp_path):
    ((name, value),) = option.items()
    with pytest.raises(
        TrainError, match=rf"^trainer\.{name}={value}: training failed with that .*: {reason}"
    ) as raised:
        finetune(signs, tiny_signs, tmp_path / "out", SftSettings(trainer=option, max_steps=1))
    assert "\n" not in str(raised.value)


def test_an_error_without_options_is_as_it_is(signs, tiny_signs, tmp_path, monkeypatch):
    monkeypatch.setattr("darkroom.train.models.loading.check_weights", lambda _: [].index(1))
    with pytest.raises(ValueError, match="not in list"):
        finetune(signs, tiny_signs, tmp_path / "out", SftSettings(max_steps=1))


def test_a_file_and_the_command_line_reach_the_trainer(tmp_path, monkeypatch):
    from darkroom.pipelines.command_line.errors import program_of
    from darkroom.train import sft

    seen = []
    monkeypatch.setattr(sft, "finetune", lambda *given, **_: seen.append(given[3]))
    (tmp_path / "own.yaml").write_text("trainer:\n  weight_decay: 0.1\n  attn_implementation: eager\n")
    program = program_of(sft.main)
    words = ["--dataset", "d", "--model", "m", "--output", "o", "--config", str(tmp_path / "own.yaml")]
    result = CliRunner().invoke(program, [*words, "--set", "trainer.weight_decay=0.2"])
    assert result.exit_code == 0, result.output
    assert seen[0].trainer == {"weight_decay": 0.2, "attn_implementation": "eager"}
    wrong = CliRunner().invoke(program, [*words, "--set", "weight_decay=0.2"])
    assert "--set takes trainer.NAME=VALUE" in wrong.stderr
