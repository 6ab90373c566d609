"""A role's settings: from the environment to the endpoint that is asked."""

from __future__ import annotations

import pytest

from assets.resources import PolicyResource
from pipelines.policies import OpenAIPolicy, PolicyUnavailable
from pipelines.workspace import Workspace

AT = {"DARKROOM_POLICY": "openai", "DARKROOM_POLICY_URL": "http://127.0.0.1:1/v1", "DARKROOM_POLICY_MODEL": "m"}


@pytest.mark.parametrize("name", ["SEND_STOP", "SEND_SCHEMA"])
@pytest.mark.parametrize(("said", "sends"), [("0", False), ("false", False), ("1", True), ("true", True), ("", True)])
def test_what_a_server_refuses_can_be_left_out(workspace: Workspace, name: str, said: str, sends: bool) -> None:
    resource = PolicyResource.from_settings("POLICY", {**AT, f"DARKROOM_POLICY_{name}": said})
    policy = resource.for_judging(workspace.images)
    assert isinstance(policy, OpenAIPolicy)
    assert getattr(policy.endpoint, name.lower()) is sends


def test_a_judge_may_be_sent_no_stop_strings_where_the_policy_is(workspace: Workspace) -> None:
    environment = {**AT, "DARKROOM_JUDGE_SEND_STOP": "off"}
    assert PolicyResource.from_settings("POLICY", environment).send_stop is True
    assert PolicyResource.from_settings("JUDGE", environment).send_stop is False


def test_a_setting_that_is_no_yes_or_no_is_named() -> None:
    with pytest.raises(PolicyUnavailable, match="DARKROOM_POLICY_SEND_STOP is 'perhaps'"):
        PolicyResource.from_settings("POLICY", {**AT, "DARKROOM_POLICY_SEND_STOP": "perhaps"})
