import pytest
import typer
import yaml
from typer.testing import CliRunner

from train.grpo import main
from train.rl.methods import METHODS, named_method, settings_of
from train.rl.settings import MethodDefaults


def printed(*arguments):
    app = typer.Typer()
    app.command()(main)
    return CliRunner().invoke(app, [*arguments, "--print-config"])


@pytest.mark.parametrize("method", ["thyme", "pyvision", "codev", "adaptive", "figr"])
def test_what_is_printed_is_what_would_run(method):
    shown = yaml.safe_load(printed("--method", method).stdout)
    assert shown == settings_of(method).model_dump(exclude={"judge"})


def test_what_is_printed_is_a_file_of_settings(tmp_path):
    first = printed("--method", "figr", "--learning-rate", "2e-6", "--ats")
    (tmp_path / "settings.yaml").write_text(first.stdout)
    again = printed("--config", str(tmp_path / "settings.yaml"))
    assert yaml.safe_load(again.stdout) == yaml.safe_load(first.stdout)


def test_a_value_that_is_set_has_no_source_in_the_paper():
    lines = printed("--method", "figr", "--temperature", "0.5").stdout.splitlines()
    assert "temperature: 0.5" in lines
    assert "max_rounds: 3  # §4.1" in lines


def test_an_unknown_method_is_one_line():
    result = printed("--method", "nothing")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: unknown method 'nothing'; known: thyme")


@pytest.mark.parametrize("name", METHODS)
def test_sources_are_of_terms(name):
    assert named_method(name).sources.keys() <= {*MethodDefaults.model_fields, "batch"}
