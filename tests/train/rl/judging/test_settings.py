"""A judge's settings, from the environment to the endpoint, and what an open judge leaves behind."""

import asyncio
from pathlib import Path

import pytest
from PIL import Image

from darkroom.sandbox.errors import UserError
from darkroom.train.rl.judging.judge_config import JudgeSettings, open_judge
from darkroom.train.runs import TrainError

AT = {"DARKROOM_JUDGE": "openai", "DARKROOM_JUDGE_URL": "http://127.0.0.1:1/v1", "DARKROOM_JUDGE_MODEL": "m"}


def test_without_an_endpoint_nobody_judges():
    assert JudgeSettings.for_training({}) is None


def test_a_policy_in_its_own_process_is_no_judge():
    assert JudgeSettings.for_training({"DARKROOM_POLICY": "local", "DARKROOM_POLICY_MODEL": "checkpoint"}) is None


def test_a_judge_is_what_its_variables_say():
    said = {"VOTES": "3", "MAX_PIXELS": "1000000", "SEND_SCHEMA": "off", "TEMPERATURE": "0.7", "KEY": "MY_KEY"}
    settings = JudgeSettings.for_training(AT | {f"DARKROOM_JUDGE_{ending}": text for ending, text in said.items()})
    assert settings == JudgeSettings(
        base_url="http://127.0.0.1:1/v1",
        model="m",
        n_votes=3,
        max_pixels=1_000_000,
        send_schema=False,
        temperature=0.7,
        key_variable="MY_KEY",
    )
    assert settings.endpoint.max_pixels == 1_000_000


def test_what_is_not_set_is_as_for_the_policy():
    policy = {key.replace("JUDGE", "POLICY"): value for key, value in AT.items()}
    assert JudgeSettings.for_training({**policy, "DARKROOM_JUDGE_MODEL": "j"}) == JudgeSettings(
        base_url="http://127.0.0.1:1/v1", model="j"
    )


@pytest.mark.parametrize(
    ("said", "purse"),
    [({}, "training"), ({"DARKROOM_JUDGE_PURSE": "mine"}, "mine"), ({"DARKROOM_JUDGE_BUDGET": "5"}, "training/judge")],
)
def test_a_judge_draws_on_the_purse_of_training_unless_told_otherwise(said, purse):
    assert JudgeSettings.for_training(AT | said).purse == purse


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"DARKROOM_JUDGE": "gpt"}, "DARKROOM_JUDGE is 'gpt'"),
        ({"DARKROOM_JUDGE": "local"}, "DARKROOM_JUDGE is 'local'.*darkroom serve"),
        ({"DARKROOM_JUDGE_URL": ""}, "needs DARKROOM_JUDGE_URL"),
        ({"DARKROOM_JUDGE_MODEL": ""}, "needs DARKROOM_JUDGE_MODEL"),
        ({"DARKROOM_JUDGE_VOTES": "0"}, "DARKROOM_JUDGE_VOTES is '0'"),
        ({"DARKROOM_POLICY_SEND_N": "perhaps"}, "DARKROOM_POLICY_SEND_N is 'perhaps'"),
    ],
)
def test_a_setting_that_cannot_be_one_is_named(said, message):
    with pytest.raises(UserError, match=message):
        JudgeSettings.for_training(AT | said)


def test_what_a_judge_was_shown_is_gone_when_it_is_closed(tmp_path):
    async def run():
        judge = open_judge(JudgeSettings(base_url="http://127.0.0.1:1/v1", model="m"), tmp_path / "home")
        folder = Path(judge.images.url)
        shown = judge.images.add_pixels(Image.new("RGB", (9, 9)))
        judge.forget_images()
        assert list(folder.iterdir()) == []
        assert judge.images.add_pixels(Image.new("RGB", (9, 9))) == shown
        await judge.close()
        return folder

    assert not asyncio.run(run()).exists()


def test_a_ledger_that_cannot_be_opened_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("DARKROOM_LEDGER", "mysql://nowhere/x")
    with pytest.raises(TrainError, match="votes cannot be put on record"):
        open_judge(JudgeSettings(base_url="http://127.0.0.1:1/v1", model="m"), tmp_path / "home")
