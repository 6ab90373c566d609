import re
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from train import evaluate, grpo, sft, tiny

PROGRAMS = {"train.sft": sft, "train.grpo": grpo, "train.tiny": tiny, "train.evaluate": evaluate}


def test_help_answers_before_the_heavy_libraries_are_loaded():
    heavy = "{'torch', 'transformers', 'trl', 'datasets', 'dagster'}"
    code = f"import sys, {', '.join(PROGRAMS)}; print({heavy} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_flag_says_what_it_does(name):
    program = typer.Typer()
    program.command()(PROGRAMS[name].main)
    command = typer.main.get_command(program)
    assert command.help
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    assert [option.name for option in options if not option.help] == []


def test_the_help_names_every_method():
    from train.methods import METHODS

    program = typer.Typer()
    program.command()(grpo.main)
    helps = {option.name: option.help for option in typer.main.get_command(program).params}
    assert set(re.findall(r"\w+", helps["method"])) >= set(METHODS)


def test_the_tiny_model_is_built_once(signs, tmp_path):
    program = typer.Typer()
    program.command()(tiny.main)
    flags = [str(tmp_path / "tiny"), "--dataset", str(signs)]
    assert "built" in CliRunner().invoke(program, flags).output
    assert "nothing to do" in CliRunner().invoke(program, flags).output
