"""A request with many seeds: keys and texts are those of each request by itself."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ledger import act_key
from pipelines.seeded import Seeded, spelled

_text = st.text(st.characters(codec="utf-16", exclude_categories=())) | st.sampled_from(
    ['"seed":7', '{"seed": 7}', "\ud800", "é\0"]
)
_values = st.recursive(st.none() | st.booleans() | st.integers() | _text, lambda inner: st.lists(inner, max_size=3))
_requests = st.dictionaries(_text.filter(lambda name: name != "seed"), _values, max_size=6)


@given(request=_requests, kind=_text, seed=st.integers(0, 2**31))
def test_keys_and_texts_are_those_of_the_request_with_its_seed(request, kind, seed):
    whole = {**request, "seed": seed}
    asked = Seeded(kind, request)
    assert asked.key(seed) == act_key(kind, whole)
    assert asked.text(seed) == spelled(whole) == json.dumps(whole, sort_keys=True)


@pytest.mark.parametrize("names", [(), ("a",), ("z",), ("a", "z"), ("seeds", "see")])
def test_whatever_stands_before_the_seed_and_after(names):
    request = dict.fromkeys(names, 1)
    asked = Seeded("policy", request)
    assert [asked.key(seed) for seed in (3, 4)] == [act_key("policy", {**request, "seed": seed}) for seed in (3, 4)]


def test_what_json_cannot_hold_is_no_request():
    with pytest.raises(ValueError, match="float"):
        Seeded("policy", {"temperature": float("nan")})
