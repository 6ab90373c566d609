"""Trackers are named and installed, or refused before anything is trained."""

from pathlib import Path

import pytest

from darkroom.train.runs import TrainError
from darkroom.train.runs.reporting import VARIABLE, choose_trackers, trackers


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", "")
    monkeypatch.delenv("TENSORBOARD_LOGGING_DIR")


@pytest.mark.parametrize("names", ["", "none", " none , "])
def test_by_default_there_is_none(names):
    choose_trackers(names, Path("out"))
    assert trackers() == []


def test_an_unknown_tracker_is_refused_with_those_that_there_are():
    with pytest.raises(TrainError, match="--report-to excel: there are trackio, wandb, tensorboard"):
        choose_trackers("tensorboard,excel", Path("out"))


def test_a_tracker_that_is_not_installed_is_refused_with_its_package():
    with pytest.raises(TrainError, match="--report-to swanlab needs its package: pip install swanlab"):
        choose_trackers("swanlab", Path("out"))


def test_tensorboards_figures_lie_beside_the_checkpoint(monkeypatch):
    import os

    choose_trackers("tensorboard", Path("checkpoints/sft"))
    assert trackers() == ["tensorboard"]
    assert os.environ["TENSORBOARD_LOGGING_DIR"] == "checkpoints/tensorboard/sft"
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", "elsewhere")
    choose_trackers("tensorboard", Path("checkpoints/grpo"))
    assert os.environ["TENSORBOARD_LOGGING_DIR"] == "elsewhere"
