"""The embedded policy: scripts that packages register by family."""

from __future__ import annotations

import pytest

from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.models.policies import (
    RL_STAGES,
    OraclePolicy,
    PolicyUnavailable,
    oracle_policy,
    oracle_script,
    oracles,
)


def test_every_bundled_family_and_the_rl_stages_have_a_script() -> None:
    assert set(oracles()) >= {*load_recipes(), RL_STAGES}
    assert all(callable(oracle_script(family)) for family in oracles())


def test_a_family_without_a_script_says_what_to_set() -> None:
    with pytest.raises(PolicyUnavailable, match=r"no script for the family 'mirror': set DARKROOM_POLICY=openai, DARK"):
        oracle_policy("mirror", revision="1")


def test_the_revision_covers_the_recipe_and_the_script() -> None:
    policies = [
        oracle_policy(family, revision=code) for family, code in (("crop", "1"), ("crop", "2"), ("direct", "1"))
    ]
    assert len({policy.identity.revision for policy in policies}) == 3
    assert {(policy.identity.policy, policy.identity.model) for policy in policies} == {("oracle", "oracle")}
    assert isinstance(policies[0], OraclePolicy)
