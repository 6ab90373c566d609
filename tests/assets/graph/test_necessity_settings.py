"""Whether necessity is measured: by the launchpad, else by the environment, else where it costs nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from darkroom.assets.graph.resources import NECESSITY_VARIABLE, VerdictSettings
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.models.policies import PolicyUnavailable
from darkroom.pipelines.verification.checks import Necessity

RECIPE = replace(load_recipes()["crop"], necessity=Necessity(k=6, max_without_tools=None))
OTHER = replace(RECIPE, necessity=None)


def asked(recipe=RECIPE, *, is_free: bool = False, variable: str = "", **settings) -> Necessity | None:
    return VerdictSettings(**settings).necessity(recipe, is_free=is_free, environment={NECESSITY_VARIABLE: variable})


def test_where_answers_are_paid_for_it_is_off_until_asked_for() -> None:
    assert asked() is None
    assert asked(variable="2") == Necessity(k=2, max_without_tools=None)
    assert asked(necessity_answers=3) == Necessity(k=3, max_without_tools=None)


def test_where_answers_are_free_the_recipe_decides() -> None:
    assert asked(is_free=True) == RECIPE.necessity
    assert asked(OTHER, is_free=True) is None


def test_it_can_be_switched_off_and_asked_of_every_family() -> None:
    assert asked(is_free=True, variable="0") is None
    assert asked(is_free=True, variable="4", necessity_answers=0) is None
    assert asked(OTHER, variable="4") == Necessity(k=4)


def test_the_launchpads_bounds_come_before_the_recipes() -> None:
    found = asked(is_free=True, max_blind=0.25, max_without_tools=1.0)
    assert found == Necessity(k=6, max_blind=0.25, max_without_tools=1.0)


@pytest.mark.parametrize("value", ["yes", "-1", "2.5"])
def test_a_variable_that_is_no_number_is_named(value: str) -> None:
    with pytest.raises(PolicyUnavailable, match=NECESSITY_VARIABLE):
        asked(variable=value)


def test_at_least_two_families_of_the_demo_measure_it() -> None:
    assert len([recipe for recipe in load_recipes().values() if recipe.necessity]) >= 2
