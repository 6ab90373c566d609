"""Several answers to one turn: one request where the endpoint takes it, else one each."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web

from darkroom.pipelines.models.policies import Completion, RecordedPolicy
from darkroom.pipelines.models.self_consistency import Vote, collect_votes


def ballot(said: Completion) -> Vote:
    return Vote(said.text == "yes")


def test_several_votes_are_one_request_where_the_endpoint_takes_it(chat, open_policy, turn, ledger):
    def answer(request) -> dict:
        choices = [
            {"message": {"content": "yes" if n < 5 else "no"}, "finish_reason": "stop"} for n in range(request["n"])
        ]
        return {"choices": choices, "usage": {"prompt_tokens": 100, "completion_tokens": 27}}

    votes, endpoint = over_http(chat, open_policy, turn, ledger, lambda request: (200, answer(request)), n_times=2)
    assert [(request["n"], request["seed"]) for request in endpoint.asked] == [(8, 7)]
    assert (votes.n_yes, votes.n_no) == (5, 3)
    assert (votes.usage.calls, votes.usage.prompt_tokens, votes.usage.completion_tokens) == (1, 100, 27)


@pytest.mark.parametrize("status", [200, 400, 422])
def test_an_endpoint_without_several_answers_is_asked_one_by_one(chat, open_policy, turn, ledger, status):
    def answer(request) -> tuple[int, dict]:
        if status != 200 and "n" in request:
            return status, {"error": {"message": "n is not supported"}}
        choice = {"message": {"content": "yes"}, "finish_reason": "stop"}
        return 200, {"choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 2}}

    votes, endpoint = over_http(chat, open_policy, turn, ledger, answer)
    assert votes.ballots == (True,) * 8
    assert sum("n" in request for request in endpoint.asked) == 1
    assert sorted(request["seed"] for request in endpoint.asked if "n" not in request) == list(
        range(7 if status != 200 else 8, 15)
    )
    assert votes.usage.prompt_tokens == 800


def over_http(chat, open_policy, turn, ledger, answer, *, n_times: int = 1):
    async def respond(_, __, request):
        status, body = answer(request)
        return web.Response(body=json.dumps(body), status=status, content_type="application/json")

    async def once():
        async with chat.serving(respond) as endpoint, open_policy(endpoint.url) as policy:
            recorded = RecordedPolicy(policy, ledger)
            for _ in range(n_times):
                votes = await collect_votes(recorded, turn(), ballot, n_votes=8)
            return votes, endpoint

    return asyncio.run(once())
