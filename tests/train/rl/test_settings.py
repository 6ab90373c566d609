"""Settings of GRPO: the rollouts of a prompt are in one batch, before and after the selection of groups."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from darkroom.pipelines.command_line.errors import program_of
from darkroom.train.grpo import main
from darkroom.train.rl.methods import settings_of
from darkroom.train.runs import TrainError


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"generations": 3, "batch_size": 4}, "which is no multiple of 3 generations"),
        ({"generations": 4, "batch_size": 4, "accumulation": 1, "oversample": 1.5}, r"oversample 1\.5"),
        ({"generations": 2, "batch_size": 4, "accumulation": 1, "oversample": 1.1}, r"oversample 1\.1"),
    ],
)
def test_batches_have_whole_groups(given, said):
    with pytest.raises(TrainError, match=said):
        settings_of("pyvision", **given)


def test_groups_may_be_spread_over_accumulated_batches():
    assert settings_of("pyvision", generations=8, batch_size=4, accumulation=2, oversample=1.0).generations == 8
    assert settings_of("pyvision", generations=2, batch_size=4, accumulation=1, oversample=1.5).oversample == 1.5


def test_an_unknown_protocol_is_refused_with_the_known_ones():
    flags = ["--dataset", "d", "--model", "m", "--output", "o", "--protocol", "xml"]
    result = CliRunner().invoke(program_of(main), flags, env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert "'xml' is not one of 'thyme', 'pyvision', 'tool_call'" in result.stderr
