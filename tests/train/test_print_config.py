from dataclasses import replace

import pytest
import yaml
from typer.testing import CliRunner

from darkroom.pipelines.command_line.errors import program_of
from darkroom.pipelines.verification.repetition import DARKROOM, PAPER
from darkroom.train.grpo import main
from darkroom.train.rl.methods import METHODS, named_method, settings_of
from darkroom.train.rl.methods.base import LOSS
from darkroom.train.rl.rollouts.sampling import repetition_rule
from darkroom.train.rl.settings import MethodDefaults


def printed(*arguments):
    return CliRunner().invoke(program_of(main), [*arguments, "--print-config"])


@pytest.mark.parametrize("method", ["thyme", "pyvision", "codev", "adaptive", "figr"])
def test_what_is_printed_is_what_would_run(method):
    shown = yaml.safe_load(printed("--method", method).stdout)
    fields = shown.pop("set", [])
    assert shown == settings_of(method).model_dump(exclude={"judge", "options", "method_file"})
    assert named_method(method, settings_of(method, options=fields).options) == named_method(method)


def test_what_is_printed_is_a_file_of_settings(tmp_path):
    first = printed("--method", "figr", "--learning-rate", "2e-6", "--ats", "--set", "method.by_suitability=false")
    assert "method.by_suitability=False" in first.stdout
    (tmp_path / "settings.yaml").write_text(first.stdout)
    again = printed("--config", str(tmp_path / "settings.yaml"))
    assert yaml.safe_load(again.stdout) == yaml.safe_load(first.stdout)


def test_fields_of_a_method_are_set_in_a_file(tmp_path):
    for text in ("set: [method.weight_tool=0.3]", "set: method.weight_tool=0.3", "set:\n  method.weight_tool: 0.3"):
        (tmp_path / "settings.yaml").write_text(f"method: codev\n{text}\n")
        result = printed("--config", str(tmp_path / "settings.yaml"))
        assert "method.weight_tool=0.3" in yaml.safe_load(result.stdout)["set"], (text, result.output)


def test_a_value_that_is_set_has_no_source_in_the_paper():
    lines = printed("--method", "figr", "--temperature", "0.5").stdout.splitlines()
    assert "temperature: 0.5" in lines
    assert "max_rounds: 3  # §4.1" in lines


def test_what_enters_trls_loss_is_printed_with_its_source():
    lines = printed("--method", "figr", "--set", "trainer.delta=4").stdout.splitlines()
    assert "# trainer.use_bias_correction_kl: false  # eq. 9" in lines
    assert "# trainer.top_entropy_quantile: 1.0  # not in the paper" in lines
    assert not any("trainer.delta" in line for line in lines)  # it is below `trainer:`


def test_the_repetition_stop_is_a_named_rule_with_settings():
    assert "repetition" not in settings_of("thyme").record
    assert repetition_rule(settings_of("thyme")) == DARKROOM
    assert repetition_rule(settings_of("thyme", repetition="off")) is None
    chosen = settings_of("thyme", repetition="paper", repetition_chars=50, repetition_times=3)
    assert chosen.record["repetition_chars"] == 50
    assert repetition_rule(chosen) == replace(PAPER, windows=(50,), times=3)
    least = repetition_rule(settings_of("thyme", repetition_min_chars=100, repetition_share=0.7))
    assert (least.min_chars, least.min_chars_without_letters, least.share, least.times) == (100, 100, 0.7, 5)
    assert "repetition: paper" in printed("--repetition", "paper").stdout


def test_an_unknown_method_is_one_line():
    result = printed("--method", "nothing")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: unknown method 'nothing'; known: thyme")


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("method.weight_tol=0.3", "error: codev has no field weight_tol; it has weight_accuracy, weight_tool"),
        ("method.weight_tool=much", "error: method.weight_tool: Input should be a valid number"),
        ("weight_tool=0.3", "error: --set takes method.FIELD=VALUE, as in method.weight_tool=0.3; found 'weight_tool'"),
    ],
)
def test_a_field_that_cannot_be_set_is_one_line(assignment, message):
    result = printed("--method", "codev", "--set", assignment)
    assert result.exit_code == 1
    assert result.stderr.startswith(message)


def test_fields_are_part_of_a_checkpoints_inputs_only_where_they_are_set():
    assert "options" not in settings_of("codev").record
    assert settings_of("codev", options=["method.weight_tool=0.30"]).record["options"] == {"weight_tool": 0.3}


@pytest.mark.parametrize("name", METHODS)
def test_sources_are_of_terms(name):
    of_loss = {f"trainer.{argument}" for argument in LOSS}
    assert named_method(name).sources.keys() <= {*MethodDefaults.model_fields, "batch"} | of_loss
