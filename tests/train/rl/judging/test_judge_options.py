"""The judge that a training's options and environment name, and what of it belongs to a checkpoint's inputs."""

import asyncio
import inspect
import json

import pytest

from darkroom.train.rl.judging import judges
from darkroom.train.rl.judging.judge_config import judges_of
from darkroom.train.runs import TrainError


@pytest.fixture
def opened(monkeypatch, tmp_path):
    """Opens a judge and closes it again; gives the judges and what they are known as."""
    for name in ("", "_URL", "_MODEL", "_VOTES"):
        monkeypatch.delenv(f"DARKROOM_JUDGE{name}", raising=False)

    def run(url="", model="", **options):
        judges, known_as = judges_of(url, model, rubric="strict", **options)
        if judges.policy is not None:
            asyncio.run(judges.policy.close())
        return judges, known_as

    return run


@pytest.mark.parametrize(("url", "model"), [("http://localhost/v1", ""), ("", "judge")])
def test_a_judge_is_an_address_and_a_model(opened, url, model):
    with pytest.raises(TrainError, match="needs --judge-url and --judge-model; found"):
        opened(url, model)


def test_without_a_judge_nothing_is_opened_or_noted(opened):
    judges, known_as = opened()
    assert (judges.policy, known_as) == (None, "")


@pytest.mark.parametrize(("options", "n_votes"), [({}, 1), ({"n_votes": 3}, 3), ({"n_votes": None}, 1)])
def test_options_name_a_judge_and_its_votes(opened, options, n_votes):
    judges, known_as = opened("http://localhost/v1", "judge", **options)
    assert (judges.n_votes, judges.rubric) == (n_votes, "strict")
    model, _, temperature, votes, rubric = json.loads(known_as)
    assert (model, temperature, votes, rubric) == ("judge", 0.1, n_votes, "strict")


@pytest.mark.parametrize(("options", "n_votes"), [({}, 5), ({"n_votes": 3}, 3)])
def test_the_environment_names_a_judge_where_options_do_not(opened, monkeypatch, options, n_votes):
    for name, value in {"": "openai", "_URL": "http://localhost/v1", "_MODEL": "judge", "_VOTES": "5"}.items():
        monkeypatch.setenv(f"DARKROOM_JUDGE{name}", value)
    judges, known_as = opened(**options)
    assert (judges.n_votes, json.loads(known_as)[3]) == (n_votes, n_votes)


@pytest.mark.parametrize("name", [
    "answer", "answer_share", "consistency", "process", "text_evidence", "evidence", "shows_target",
])  # fmt: skip
def test_one_vote_is_asked_unless_more_are_wanted(name):
    assert inspect.signature(getattr(judges, name)).parameters["n_votes"].default == 1
