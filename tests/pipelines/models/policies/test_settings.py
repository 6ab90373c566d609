"""Endpoint settings agree with the endpoint that they describe."""

from __future__ import annotations

from dataclasses import MISSING, fields

from darkroom.pipelines.models.policies import Endpoint
from darkroom.pipelines.models.policies.settings import EndpointSettings


def test_settings_have_the_defaults_of_the_endpoint():
    defaults = {field.name: field.default for field in fields(Endpoint) if field.default is not MISSING}
    shared = EndpointSettings.model_fields.keys() & defaults.keys()
    assert {name: EndpointSettings.model_fields[name].default for name in shared} == {n: defaults[n] for n in shared}


def test_every_endpoint_setting_is_described():
    assert all(field.description for field in EndpointSettings.model_fields.values())
