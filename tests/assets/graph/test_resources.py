"""A role's settings: from the environment to the endpoint that is asked."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from darkroom.assets.definitions import definitions
from darkroom.assets.graph.resources import PolicyResource
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.models.policies import BudgetSpent, OpenAIPolicy, PolicyUnavailable
from darkroom.pipelines.models.policies.settings import Role
from darkroom.pipelines.records import Usage
from darkroom.pipelines.storage.workspace import Workspace

AT = {"DARKROOM_POLICY": "openai", "DARKROOM_POLICY_URL": "http://127.0.0.1:1/v1", "DARKROOM_POLICY_MODEL": "m"}


@pytest.mark.parametrize("name", ["SEND_STOP", "SEND_SCHEMA"])
@pytest.mark.parametrize(("said", "sends"), [("0", False), ("false", False), ("1", True), ("true", True), ("", True)])
def test_what_a_server_refuses_can_be_left_out(workspace: Workspace, name: str, said: str, sends: bool) -> None:
    resource = PolicyResource.from_environment("POLICY", {**AT, f"DARKROOM_POLICY_{name}": said})
    policy = resource.for_judging("crop", workspace)
    assert isinstance(policy, OpenAIPolicy)
    assert getattr(policy.endpoint, name.lower()) is sends


def test_a_launch_that_changes_one_field_keeps_the_others(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in AT.items():
        monkeypatch.setenv(name, value)

    @dg.op
    def asked(policy: PolicyResource) -> tuple[str, dict[str, object]]:
        made = policy.for_judging("crop", workspace)
        assert isinstance(made, OpenAIPolicy)
        return made.endpoint.model, dict(made.endpoint.extra_body)

    resources = definitions().resources or {}

    @dg.job(resource_defs={"policy": resources["policy"]})
    def launched() -> None:
        asked()

    config = {"resources": {"policy": {"config": {"extra": '{"top_k": 4, "temperature": null}'}}}}
    done = launched.execute_in_process(run_config=config)
    assert done.output_for_node("asked") == ("m", {"top_k": 4, "temperature": None})


def test_a_judge_may_be_sent_no_stop_strings_where_the_policy_is(workspace: Workspace) -> None:
    environment = {**AT, "DARKROOM_JUDGE_SEND_STOP": "off"}
    assert PolicyResource.from_environment("POLICY", environment).send_stop is True
    assert PolicyResource.from_environment("JUDGE", environment).send_stop is False


def test_a_setting_that_is_no_yes_or_no_is_named() -> None:
    with pytest.raises(PolicyUnavailable, match="DARKROOM_POLICY_SEND_STOP is 'perhaps'"):
        PolicyResource.from_environment("POLICY", {**AT, "DARKROOM_POLICY_SEND_STOP": "perhaps"})


@pytest.mark.parametrize(
    ("role", "said", "meant"),
    [
        ("POLICY", {"DARKROOM_POLICY_URL": "http://127.0.0.1:1/v1"}, "DARKROOM_POLICY=openai"),
        ("JUDGE", {"DARKROOM_JUDGE_MODEL": "m"}, "DARKROOM_JUDGE=openai"),
        ("JUDGE", {"DARKROOM_POLICY_MODEL": "m", "DARKROOM_POLICY": ""}, "DARKROOM_POLICY=openai"),
        (
            "JUDGE",
            {"DARKROOM_JUDGE_URL": "http://127.0.0.1:1/v1", "DARKROOM_POLICY": "oracle"},
            "DARKROOM_JUDGE=openai",
        ),
    ],
)
def test_an_endpoint_of_no_kind_is_not_replaced_by_the_oracle(role: Role, said: dict[str, str], meant: str) -> None:
    with pytest.raises(PolicyUnavailable, match=f"is set, and .* is not: set {meant} "):
        PolicyResource.from_environment(role, said)
    meant_so = {**said, f"DARKROOM_{role}": "oracle", "DARKROOM_POLICY": "oracle"}
    assert PolicyResource.from_environment(role, meant_so).kind == "oracle"


@pytest.mark.parametrize(
    ("said", "pools"),
    [
        ({}, {"POLICY": "{family}", "JUDGE": "{family}"}),
        ({"DARKROOM_POLICY_PURSE": "pilot"}, {"POLICY": "pilot", "JUDGE": "pilot"}),
        ({"DARKROOM_JUDGE_BUDGET": "5"}, {"POLICY": "{family}", "JUDGE": "{family}/judge"}),
        ({"DARKROOM_JUDGE_BUDGET_HOURS": "5", "DARKROOM_POLICY_PURSE": "pilot"}, {"JUDGE": "pilot/judge"}),
        ({"DARKROOM_JUDGE_BUDGET": "5", "DARKROOM_JUDGE_PURSE": "mine"}, {"JUDGE": "mine", "POLICY": "{family}"}),
    ],
)
def test_roles_share_a_budget_pool_unless_one_has_a_budget_of_its_own(
    said: dict[str, str], pools: dict[Role, str]
) -> None:
    assert {role: PolicyResource.from_environment(role, {**AT, **said}).purse for role in pools} == pools


def test_the_stages_of_a_family_draw_on_one_budget_and_another_family_has_its_own(workspace: Workspace) -> None:
    resource = PolicyResource.from_environment("POLICY", {**AT, "DARKROOM_POLICY_BUDGET_TOKENS": "100"})
    recipes = load_recipes()
    pools = []
    for family in ("crop", "crop", "rotation"):
        policy = resource.for_recipe(recipes[family], workspace)
        assert isinstance(policy, OpenAIPolicy)
        pools.append(policy.budget_pool)
    pools[0].pay(Usage(1, 80, 20))
    for pool in pools:
        pool.settle()
    for pool in pools[:2]:
        with pytest.raises(BudgetSpent):
            pool.require()
    pools[2].require()


def test_a_local_policy_without_a_checkpoint_says_so(workspace: Workspace, tmp_path: Path) -> None:
    recipe = load_recipes()["crop"]
    with pytest.raises(PolicyUnavailable, match="DARKROOM_POLICY_MODEL: the folder of a checkpoint"):
        PolicyResource(kind="local").for_recipe(recipe, workspace)
    with pytest.raises(PolicyUnavailable, match=str(tmp_path)):
        PolicyResource(kind="local", model=str(tmp_path)).for_recipe(recipe, workspace)
