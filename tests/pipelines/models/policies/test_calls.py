"""Calls that fail: which are tried again, when, how often, and when all are given up."""

from __future__ import annotations

import asyncio
import json
import time
from email.utils import formatdate

import pytest
from aiohttp import web

from darkroom.pipelines.generation.rollout import parse_turn
from darkroom.pipelines.models.policies import BudgetPool, PolicyError, PolicyUnavailable, RecordedPolicy, calls
from darkroom.pipelines.models.policies.settings import EndpointSettings
from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.records.reject_reasons import Reason, RowError

KEY = "sk-secret-0123456789"


def written(chat, open_policy, turn, answer, **settings):
    """The completion, and the endpoint that was asked."""

    async def once():
        async with chat.serving(answer) as endpoint, open_policy(endpoint.url, **settings) as policy:
            return await policy.write(turn()), endpoint

    return asyncio.run(once())


def refused(chat, open_policy, turn, answer, **settings):
    """The error, and the endpoint that was asked."""

    async def once():
        async with chat.serving(answer) as endpoint, open_policy(endpoint.url, **settings) as policy:
            try:
                await policy.write(turn())
            except (PolicyError, PolicyUnavailable) as error:
                return error, endpoint
        raise AssertionError("it was answered")

    return asyncio.run(once())


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 422, 501, 505])
def test_what_is_wrong_in_itself_is_tried_once(chat, open_policy, turn, status):
    error, endpoint = refused(chat, open_policy, turn, chat.saying(lambda: chat.refusal(status, "too many images")))
    assert isinstance(error, PolicyError)
    assert "too many images" in str(error)
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_tried_again(chat, open_policy, turn, status):
    answer = chat.saying(lambda: chat.refusal(status), lambda: chat.refusal(status), chat.completion)
    completion, endpoint = written(chat, open_policy, turn, answer)
    assert completion.text == "It says 42."
    assert len(endpoint.asked) == 3


def test_a_lost_connection_and_a_body_cut_off_are_tried_again(chat, open_policy, turn):
    async def answer(endpoint, request, body):
        if len(endpoint.asked) == 1:
            request.transport.close()
        elif len(endpoint.asked) == 2:
            return await chat.cut_off(endpoint, request, body)
        return chat.completion()

    completion, endpoint = written(chat, open_policy, turn, answer)
    assert completion.text == "It says 42."
    assert len(endpoint.asked) == 3


def test_json_that_ends_too_early_is_tried_again(chat, open_policy, turn):
    answer = chat.saying(lambda: web.Response(text='{"choices": [', content_type="application/json"), chat.completion)
    assert len(written(chat, open_policy, turn, answer)[1].asked) == 2


def test_an_answer_that_is_no_completion_is_not_paid_for_again(chat, open_policy, turn):
    answer = chat.saying(lambda: web.json_response({"error": {"message": "upstream"}}))
    error, endpoint = refused(chat, open_policy, turn, answer)
    assert "upstream" in str(error)
    assert len(endpoint.asked) == 1


def hiccup(text="", *, reason="error", usage=None, **fields):
    """An HTTP 200 in which the endpoint's own side broke off."""
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": reason}
    return {"choices": [choice], "usage": usage, **fields}


HICCUPS = {
    "OpenRouter, LiteLLM": hiccup("It s"),
    "SGLang": hiccup(reason="abort"),
    "DeepSeek": hiccup(reason="insufficient_system_resource"),
    "nothing, tokens not counted": hiccup(reason="stop"),
    "nothing, no tokens": hiccup(None, reason="stop", usage={"prompt_tokens": 9, "completion_tokens": 0}),
    "OpenRouter's body": {"error": {"code": 502, "message": "upstream"}},
    "a code as text": {"error": {"code": "503", "message": "upstream"}},
    "beside a part of the answer": hiccup("It s", reason="stop", error={"code": 500, "message": "upstream"}),
    "in the choice": {"choices": [{"error": {"code": 529}, "message": {"content": "It s"}, "finish_reason": "stop"}]},
}


@pytest.mark.parametrize("body", HICCUPS.values(), ids=HICCUPS)
def test_a_hiccup_with_status_200_is_tried_again_and_is_no_result(chat, open_policy, turn, ledger, body):
    """Nothing of it is on the ledger: another run asks again, and gets the answer."""

    async def runs():
        hiccups = chat.saying(lambda: web.json_response(body))
        async with chat.serving(hiccups) as endpoint:
            async with open_policy(endpoint.url, max_retries=2) as policy:
                with pytest.raises(PolicyError):
                    await RecordedPolicy(policy, ledger).write(turn())
            assert len(endpoint.asked) == 3
            endpoint.answer = chat.saying(lambda: web.json_response(body), chat.completion)
            async with open_policy(endpoint.url, max_retries=2) as policy:
                recorded = RecordedPolicy(policy, ledger)
                return [(await recorded.write(turn())).text for _ in range(2)], len(endpoint.asked)

    assert asyncio.run(runs()) == (["It says 42."] * 2, 5)


def test_a_hiccup_that_was_charged_is_in_the_budget(chat, open_policy, turn):
    async def once():
        pool = BudgetPool()
        charged = hiccup("It s", usage={"prompt_tokens": 100, "completion_tokens": 3})
        answers = chat.saying(lambda: web.json_response(charged), chat.completion)
        async with chat.serving(answers) as endpoint, open_policy(endpoint.url, budget_pool=pool) as policy:
            return (await policy.write(turn())).usage, pool.spent

    usage, spent = asyncio.run(once())
    assert (usage.prompt_tokens, usage.completion_tokens) == (10, 5)
    assert (spent.calls, spent.prompt_tokens, spent.completion_tokens) == (2, 110, 8)


def test_a_hiccup_among_several_answers_leaves_the_others(chat, open_policy, turn):
    good, bad = chat_choice("It says 42.", "stop"), chat_choice("It s", "error")
    body = {"choices": [bad, good, good], "usage": {"prompt_tokens": 10, "completion_tokens": 9}}

    async def once():
        answers = chat.saying(lambda: web.json_response(body))
        async with chat.serving(answers) as endpoint, open_policy(endpoint.url) as policy:
            return await policy.sample(turn(), 3)

    completions = asyncio.run(once())
    assert [completion.text for completion in completions] == ["It says 42."] * 2
    assert sum(completion.usage.completion_tokens for completion in completions) == 9


def chat_choice(text, reason):
    return {"message": {"role": "assistant", "content": text}, "finish_reason": reason}


@pytest.mark.parametrize(
    ("body", "reason", "expected"),
    [
        (hiccup("", reason="content_filter"), Reason.WITHHELD_TURN, "content_filter"),
        (hiccup("<code>print(1)", reason="content_filter"), Reason.WITHHELD_TURN, "content_filter"),
        (hiccup("", reason="SAFETY"), Reason.WITHHELD_TURN, "SAFETY"),
        (hiccup("<code>\nprint(1)", reason="MAX_TOKENS"), Reason.TRUNCATED_TURN, "the token limit cut the turn off"),
        (hiccup("<code>\nprint(1)", reason="model_length"), Reason.TRUNCATED_TURN, "the token limit cut the turn off"),
        (
            {"choices": [{"message": {"content": None, "refusal": "I cannot."}, "finish_reason": "stop"}]},
            Reason.WITHHELD_TURN,
            "the model refused: 'I cannot.'",
        ),
        (
            hiccup(None, reason="length", usage={"prompt_tokens": 9, "completion_tokens": 2048}),
            Reason.TRUNCATED_TURN,
            "none of its 2048 tokens is text",
        ),
        (
            hiccup("", reason="stop", usage={"prompt_tokens": 9, "completion_tokens": 7}),
            Reason.MALFORMED_TURN,
            "none of its 7 tokens is text",
        ),
    ],
)
def test_what_was_kept_back_says_by_whom_and_is_paid_once(chat, open_policy, turn, ledger, body, reason, expected):
    async def twice():
        answers = chat.saying(lambda: web.json_response(body))
        async with chat.serving(answers) as endpoint, open_policy(endpoint.url) as policy:
            made = [await RecordedPolicy(policy, ledger).write(turn()) for _ in range(2)]
            return made, len(endpoint.asked)

    made, n_asked = asyncio.run(twice())
    assert n_asked == 1
    for completion in made:
        with pytest.raises(RowError) as caught:
            parse_turn(completion, PROTOCOLS["thyme"])
        assert caught.value.reason is reason
        assert expected in caught.value.evidence


def test_whatever_an_endpoint_says_is_kept(chat, open_policy, turn):
    body = {"detail": [{"loc": ["body", "seed"], "msg": "extra fields not permitted"}]}  # FastAPI's own form
    error, _ = refused(chat, open_policy, turn, chat.saying(lambda: web.json_response(body, status=422)))
    assert "extra fields not permitted" in str(error)


def test_a_page_of_html_is_kept_in_part(chat, open_policy, turn):
    error, _ = refused(chat, open_policy, turn, chat.saying(lambda: web.Response(status=400, text="<p>" * 10_000)))
    assert 100 < len(str(error)) < 1000


def test_a_trickle_that_never_ends_is_a_timeout(chat, open_policy, turn):
    async def answer(endpoint, request, body):
        response = web.StreamResponse(headers={"content-type": "application/json"})
        await response.prepare(request)
        for _ in range(40):
            await response.write(b" ")
            await asyncio.sleep(0.05)
        return response

    error, _ = refused(chat, open_policy, turn, answer, timeout_seconds=0.3, max_retries=0)
    assert "Timeout" in str(error)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "1"}, 1.0),
        ({"retry_after": "0.4"}, 0.4),
        ({"retry_after_ms": "300", "retry_after": "60"}, 0.3),
    ],
)
def test_the_next_try_is_never_earlier_than_the_endpoint_asks(chat, open_policy, turn, headers, seconds):
    answer = chat.saying(lambda: chat.refusal(429, **headers), chat.completion)
    _, endpoint = written(chat, open_policy, turn, answer)
    assert seconds <= endpoint.at[1] - endpoint.at[0] < seconds * 1.25 + 1


def test_a_date_to_come_back_is_honoured():
    in_an_hour = calls.retry_after({"retry-after": formatdate(time.time() + 3600, usegmt=True)})
    assert in_an_hour == pytest.approx(3600, abs=5)
    assert calls.retry_after({"retry-after": formatdate(time.time() - 3600, usegmt=True)}) == 0


@pytest.mark.parametrize("said", ["", "soon", "-1", "nan", "inf", "Wed, 99 Foo 2026 00:00:00 GMT"])
def test_what_is_neither_seconds_nor_a_date_says_nothing(said):
    assert calls.retry_after({"retry-after": said}) is None


def test_waits_grow_are_bounded_and_repeat_with_the_seed():
    busy = calls.Failure("busy", may_succeed=True)
    waits = [calls.seconds_to_wait(busy, n_tries=n, seed=1) for n in range(1, 12)]
    assert waits == [calls.seconds_to_wait(busy, n_tries=n, seed=1) for n in range(1, 12)]
    assert waits != [calls.seconds_to_wait(busy, n_tries=n, seed=2) for n in range(1, 12)]
    assert all(0.25 * 2**n <= wait <= 0.5 * 2**n for n, wait in enumerate(waits[:5]))
    assert max(waits) <= 30


@pytest.mark.parametrize("answer", [lambda chat: chat.refusal(500, KEY), lambda chat: web.json_response({"echo": KEY})])
def test_the_key_is_in_no_error(chat, open_policy, turn, monkeypatch, answer):
    monkeypatch.setenv("TEST_KEY", KEY)
    settings = {"key_variable": "TEST_KEY", "max_retries": 0, "max_failures": 1}
    error, _ = refused(chat, open_policy, turn, chat.saying(lambda: answer(chat)), **settings)
    assert KEY not in str(error)
    assert "<key>" in str(error)


# --- the breaker


def all_written(chat, open_policy, turn, answer, n_calls, **settings):
    """What became of many calls at once, and the endpoint that was asked."""

    async def once():
        async with chat.serving(answer) as endpoint, open_policy(endpoint.url, **settings) as policy:
            calls = (policy.write(turn(seed=seed)) for seed in range(n_calls))
            return await asyncio.gather(*calls, return_exceptions=True), endpoint

    return asyncio.run(once())


def test_an_endpoint_that_is_broken_is_given_up_and_not_asked_again(chat, open_policy, turn):
    answer = chat.saying(lambda: chat.refusal(500, "CUDA error"))
    made, endpoint = all_written(chat, open_policy, turn, answer, 50, concurrency=2, max_retries=1, max_failures=5)
    given_up = [error for error in made if isinstance(error, PolicyError)]
    at_once = [error for error in made if isinstance(error, PolicyUnavailable)]
    assert len(given_up) + len(at_once) == 50
    assert 5 <= len(given_up) <= 6
    assert len(endpoint.asked) < 60
    for expected in ("5 calls in a row failed", "CUDA error", "run this again"):
        assert expected in str(at_once[0])


@pytest.mark.parametrize("key", ["", KEY])
def test_the_key_is_not_in_what_the_breaker_says(chat, open_policy, turn, monkeypatch, key):
    monkeypatch.setenv("TEST_KEY", key)
    answer = chat.saying(lambda: chat.refusal(401, f"bad key {KEY}"))
    settings = {"key_variable": "TEST_KEY", "max_failures": 1, "concurrency": 1}
    made, _ = all_written(chat, open_policy, turn, answer, 3, **settings)
    assert isinstance(made[-1], PolicyUnavailable)
    assert (KEY in str(made[-1])) == (not key)


def test_refusals_of_single_requests_never_open_the_breaker(chat, open_policy, turn):
    async def answer(endpoint, request, body):
        return chat.refusal(400) if len(endpoint.asked) > 1 else chat.completion()

    made, endpoint = all_written(chat, open_policy, turn, answer, 40, max_failures=3, concurrency=1)
    assert sum(type(error) is PolicyError for error in made) == 39
    assert len(endpoint.asked) == 40


def test_refusals_in_other_words_are_of_their_rows(chat, open_policy, turn):
    async def answer(endpoint, request, body):
        return chat.refusal(400, "too long" + "!" * len(endpoint.asked))

    made, endpoint = all_written(chat, open_policy, turn, answer, 40, concurrency=1)
    assert all(type(error) is PolicyError for error in made)
    assert len(endpoint.asked) == 40


@pytest.mark.parametrize(
    ("message", "n_asked", "said"),
    [
        (
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            5,
            '"max_completion_tokens": 4096',
        ),
        ("temperature=1.0 is not supported with this model", 5, """DARKROOM_POLICY_EXTRA='{"temperature": null}'"""),
        ("maximum context length is 4096 tokens, request 17 has 9000", 20, "request 17"),
        ("there is no such model; please stop", 20, "please stop. Check the endpoint"),
    ],
)
def test_an_endpoint_that_refuses_every_request_stops_the_stage_with_its_sentence(
    chat, open_policy, turn, message, n_asked, said
):
    answer = chat.saying(lambda: chat.refusal(400, message))
    made, endpoint = all_written(chat, open_policy, turn, answer, 40, concurrency=1)
    assert len(endpoint.asked) == n_asked
    assert isinstance(made[-1], PolicyUnavailable)
    assert said in str(made[-1])
    assert ".." not in str(made[-1])


def test_a_field_of_null_is_left_out(chat, open_policy, turn):
    settings = EndpointSettings(extra='{"max_tokens": null, "max_completion_tokens": 9, "reasoning_effort": "low"}')
    _, endpoint = written(
        chat, open_policy, turn, chat.saying(chat.completion), extra_body=settings.endpoint.extra_body
    )
    sent = endpoint.asked[0]
    assert "max_tokens" not in sent
    assert (sent["max_completion_tokens"], sent["reasoning_effort"]) == (9, "low")


@pytest.mark.parametrize(
    "extra", ["[1]", "{", "7", '{"n": 4}', '{"stream": true}', '{"messages": []}', '{"model": "a"}']
)
def test_extra_fields_are_a_json_object(extra):
    with pytest.raises(PolicyUnavailable, match="DARKROOM_JUDGE_EXTRA is "):
        EndpointSettings.from_environment("JUDGE", {"DARKROOM_JUDGE_EXTRA": extra})


def test_failures_with_answers_between_them_never_open_the_breaker(chat, open_policy, turn):
    async def answer(endpoint, request, body):
        return chat.refusal(500) if len(endpoint.asked) % 3 else chat.completion()

    settings = {"max_failures": 3, "max_retries": 0, "concurrency": 1}
    made, _ = all_written(chat, open_policy, turn, answer, 30, **settings)
    assert not any(isinstance(error, PolicyUnavailable) for error in made)


def test_who_waits_for_another_try_learns_at_once_that_there_is_none(chat, open_policy, turn):
    async def answer(endpoint, request, body):
        if body["seed"] == 0:
            return chat.refusal(429, retry_after="60")
        await asyncio.sleep(0.2)
        return chat.refusal(429, "you have no credit", code="insufficient_quota")

    started = time.monotonic()
    made, endpoint = all_written(chat, open_policy, turn, answer, 2)
    assert time.monotonic() - started < 10
    assert len(endpoint.asked) == 2
    assert all(isinstance(error, PolicyUnavailable) and "no credit" in str(error) for error in made)


def test_an_endpoint_that_asks_to_come_back_tomorrow_stops_the_stage(chat, open_policy, turn):
    answer = chat.saying(lambda: chat.refusal(429, "daily limit", retry_after="86400"))
    error, endpoint = refused(chat, open_policy, turn, answer)
    assert isinstance(error, PolicyUnavailable)
    assert "it requires a wait of 86400 seconds" in str(error)
    assert len(endpoint.asked) == 1


def test_what_is_sent_is_what_the_endpoint_is_told_and_no_more(chat, open_policy, turn):
    _, endpoint = written(chat, open_policy, turn, chat.saying(chat.completion), extra_body={"top_k": 20})
    assert json.loads(json.dumps(endpoint.asked[0])) == {
        "model": "model",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "What does it say?"}]},
        ],
        "temperature": 1.0,
        "top_p": 1.0,
        "max_tokens": 2048,
        "seed": 7,
        "stop": ["</code>"],
        "top_k": 20,
    }
