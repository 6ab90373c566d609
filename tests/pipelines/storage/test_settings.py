"""Settings models: which variables set which fields, what falls back to what, and what an error names."""

from __future__ import annotations

import pytest

from darkroom.pipelines.storage.settings import EnvironmentSettings, WorkspaceSettings, setting
from darkroom.sandbox.errors import UserError


class Oven(EnvironmentSettings):
    """A model of its own, to test the base."""

    kind: str = setting("", "gas", description="Kind of the oven.")
    degrees: int = setting("_HEAT", 180, ge=0, description="Temperature in degrees.")
    fan: str = setting("_FAN", "off", formerly="_VENT", description="Fan.")
    trays: int = setting(None, 2, description="Number of trays.")


def test_each_field_is_set_by_its_own_variable():
    assert Oven.variables("DARKROOM_OVEN") == {"kind": "DARKROOM_OVEN", "degrees": "DARKROOM_OVEN_HEAT"} | {
        "fan": "DARKROOM_OVEN_FAN"
    }
    assert Oven.read({"DARKROOM_OVEN_HEAT": "220", "DARKROOM_OTHER": "9"}, "DARKROOM_OVEN") == Oven(degrees=220)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("DARKROOM_OVEN_HAET", "DARKROOM_OVEN_HEAT"), ("DARKROOM_RANGE_FANS", "DARKROOM_RANGE_FAN")],
)
def test_a_variable_that_sets_nothing_is_refused_with_what_was_meant(name: str, meant: str):
    with pytest.raises(UserError, match=rf"^{name} is no setting\. Did you mean {meant}\?"):
        Oven.read({name: "9"}, "DARKROOM_OVEN", "DARKROOM_RANGE")
    assert Oven.read({name: ""}, "DARKROOM_OVEN", "DARKROOM_RANGE") == Oven()


def test_what_a_prefix_leaves_unset_comes_from_the_next_one():
    environment = {"A": "wood", "A_HEAT": "", "B": "gas", "B_HEAT": "90"}
    assert Oven.read(environment, "A", "B") == Oven(kind="wood", degrees=90)


def test_the_name_of_earlier_versions_counts_where_todays_is_unset():
    assert Oven.read({"A_VENT": "on"}, "A").fan == "on"
    assert Oven.read({"A_VENT": "on", "A_FAN": "low"}, "A").fan == "low"
    assert Oven.read({"A_VENT": "on", "B_FAN": "low"}, "A", "B").fan == "on"


@pytest.mark.parametrize(("name", "text"), [("A_HEAT", "hot"), ("B_HEAT", "-1")])
def test_an_error_names_the_variable_that_was_read_in_one_line(name: str, text: str):
    with pytest.raises(UserError, match=f"^{name} is '{text}': Input should be [^\n]*$"):
        Oven.read({name: text}, "A", "B")


def test_models_made_in_code_read_no_variable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DARKROOM_HOME", "/elsewhere")
    monkeypatch.setenv("HOME", "/elsewhere")
    assert WorkspaceSettings().home == "data"
    assert WorkspaceSettings.from_environment().home == "/elsewhere"


@pytest.mark.parametrize("model", [Oven, WorkspaceSettings])
def test_every_field_is_described(model: type[EnvironmentSettings]):
    assert all(field.description for field in model.model_fields.values())
