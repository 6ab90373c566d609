import re
from pathlib import Path
from typing import Annotated

import pytest
import typer
from pydantic import Field
from typer.testing import CliRunner

from darkroom.pipelines.command_line.errors import program_of
from darkroom.train import evaluate, grpo, sft, tiny
from darkroom.train.runs.command_line import Flag, ProgramSettings, Values, config_option, takes_settings

PROGRAMS = {
    "darkroom.train.sft": sft,
    "darkroom.train.grpo": grpo,
    "darkroom.train.tiny": tiny,
    "darkroom.train.evaluate": evaluate,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_flag_says_what_it_does(name):
    program = program_of(PROGRAMS[name].main)
    command = typer.main.get_command(program)
    assert command.help
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    assert [option.name for option in options if not option.help] == []


def test_the_help_names_every_method():
    from darkroom.train.rl.methods import METHODS

    command = typer.main.get_command(program_of(grpo.main))
    (method,) = [option.help for option in command.params if option.name == "method"]
    assert set(re.findall(r"\w+", f"{command.help} {method}")) >= set(METHODS)


class Speed(ProgramSettings):
    filled_later = frozenset({"gear"})
    gear: int = Field(ge=1, le=6, description="Of six.")
    limit: float = Field(default=1.0, ge=0.0, description="Metres per second.")
    lights: bool = Field(default=False, description="At night.")
    roads: Annotated[tuple[str, ...], Flag("road", repeated=True)] = Field(default=(), description="May be repeated.")
    driver: Annotated[str, Flag(hidden=True)] = ""


def run(tmp_path, *arguments):
    """The values that a program with these settings receives."""
    received = {}

    @takes_settings
    def main(settings: Annotated[Values, Speed], config: Annotated[Path | None, config_option("limit: 2")] = None):
        received.update(settings)

    program = program_of(main)
    result = CliRunner().invoke(program, list(arguments), env={"COLUMNS": "200"})
    return result, received


def test_a_settings_model_becomes_options(tmp_path):
    result, values = run(tmp_path, "--gear", "2", "--road", "a", "--road", "b", "--lights")
    assert (result.exit_code, values) == (0, {"gear": 2, "limit": 1.0, "lights": True, "roads": ["a", "b"]})
    assert Speed(**values).roads == ("a", "b")


def test_optional_settings_are_absent_when_unset(tmp_path):
    assert run(tmp_path)[1] == {"limit": 1.0, "lights": False}


def test_the_bounds_of_a_field_hold_on_the_command_line(tmp_path):
    assert "1<=x<=6" in run(tmp_path, "--gear", "7")[0].output


def test_a_hidden_field_has_no_option(tmp_path):
    assert "No such option" in run(tmp_path, "--driver", "me")[0].output


def test_a_file_sets_options_and_the_command_line_takes_precedence(tmp_path):
    (tmp_path / "slow.yaml").write_text("limit: 2\ngear: 3\nroad: [c]")
    values = run(tmp_path, "--config", str(tmp_path / "slow.yaml"), "--gear", "4")[1]
    assert values == {"gear": 4, "limit": 2.0, "lights": False, "roads": ["c"]}


def test_the_tiny_model_is_built_once(signs, tmp_path):
    program = program_of(tiny.main)
    flags = [str(tmp_path / "tiny"), "--dataset", str(signs)]
    assert "built" in CliRunner().invoke(program, flags).output
    assert "nothing to do" in CliRunner().invoke(program, flags).output


@pytest.mark.parametrize(("text", "said"), [("limit: [", "cannot be read"), ("- limit", "option: value")])
def test_a_file_without_options_is_one_message(tmp_path, text, said):
    (tmp_path / "wrong.yaml").write_text(text)
    result = run(tmp_path, "--config", str(tmp_path / "wrong.yaml"))[0]
    assert result.exit_code == 2
    assert said in result.output
