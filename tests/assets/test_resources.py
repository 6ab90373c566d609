"""A role's settings: from the environment to the endpoint that is asked."""

from __future__ import annotations

import pytest

from assets.resources import PolicyResource
from pipelines.policies import OpenAIPolicy, PolicyUnavailable
from pipelines.policies.variables import Role
from pipelines.recipes import load_recipes
from pipelines.records import Usage
from pipelines.workspace import Workspace

AT = {"DARKROOM_POLICY": "openai", "DARKROOM_POLICY_URL": "http://127.0.0.1:1/v1", "DARKROOM_POLICY_MODEL": "m"}


@pytest.mark.parametrize("name", ["SEND_STOP", "SEND_SCHEMA"])
@pytest.mark.parametrize(("said", "sends"), [("0", False), ("false", False), ("1", True), ("true", True), ("", True)])
def test_what_a_server_refuses_can_be_left_out(workspace: Workspace, name: str, said: str, sends: bool) -> None:
    resource = PolicyResource.from_settings("POLICY", {**AT, f"DARKROOM_POLICY_{name}": said})
    policy = resource.for_judging("crop", workspace)
    assert isinstance(policy, OpenAIPolicy)
    assert getattr(policy.endpoint, name.lower()) is sends


def test_a_judge_may_be_sent_no_stop_strings_where_the_policy_is(workspace: Workspace) -> None:
    environment = {**AT, "DARKROOM_JUDGE_SEND_STOP": "off"}
    assert PolicyResource.from_settings("POLICY", environment).send_stop is True
    assert PolicyResource.from_settings("JUDGE", environment).send_stop is False


def test_a_setting_that_is_no_yes_or_no_is_named() -> None:
    with pytest.raises(PolicyUnavailable, match="DARKROOM_POLICY_SEND_STOP is 'perhaps'"):
        PolicyResource.from_settings("POLICY", {**AT, "DARKROOM_POLICY_SEND_STOP": "perhaps"})


@pytest.mark.parametrize(
    ("said", "purses"),
    [
        ({}, {"POLICY": "{family}", "JUDGE": "{family}"}),
        ({"DARKROOM_POLICY_PURSE": "pilot"}, {"POLICY": "pilot", "JUDGE": "pilot"}),
        ({"DARKROOM_JUDGE_BUDGET": "5"}, {"POLICY": "{family}", "JUDGE": "{family}/judge"}),
        ({"DARKROOM_JUDGE_BUDGET_HOURS": "5", "DARKROOM_POLICY_PURSE": "pilot"}, {"JUDGE": "pilot/judge"}),
        ({"DARKROOM_JUDGE_BUDGET": "5", "DARKROOM_JUDGE_PURSE": "mine"}, {"JUDGE": "mine", "POLICY": "{family}"}),
    ],
)
def test_roles_share_a_purse_unless_one_has_a_budget_of_its_own(said: dict[str, str], purses: dict[Role, str]) -> None:
    assert {role: PolicyResource.from_settings(role, {**AT, **said}).purse for role in purses} == purses


def test_the_stages_of_a_family_draw_on_one_budget_and_another_family_has_its_own(workspace: Workspace) -> None:
    resource = PolicyResource.from_settings("POLICY", {**AT, "DARKROOM_POLICY_BUDGET_TOKENS": "100"})
    recipes = load_recipes()
    purses = []
    for family in ("crop", "crop", "rotation"):
        policy = resource.for_recipe(recipes[family], workspace)
        assert isinstance(policy, OpenAIPolicy)
        purses.append(policy.purse)
    purses[0].pay(Usage(1, 80, 20))
    for purse in purses:
        purse.settle()
    assert [purse.is_spent for purse in purses] == [True, True, False]
