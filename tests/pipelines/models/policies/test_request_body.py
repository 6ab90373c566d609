"""What is sent is the JSON of the conversation, whatever it holds."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.models.messages import ImagePart, Message, Text
from darkroom.pipelines.models.policies.http_client import body_of
from darkroom.pipelines.records import ImageRef

URLS = {str(n): b"data:image/png;base64," + b"QUJD" * n for n in range(3)}
texts = st.text(st.characters(exclude_categories=("Cs",)))
parts = st.sampled_from([ImagePart(ImageRef(sha256, 10, 10, "RGB", "PNG")) for sha256 in URLS])
said = st.builds(Message, st.just("user"), st.lists(st.builds(Text, texts) | parts, max_size=4).map(tuple))
others = st.builds(Message, st.sampled_from(["system", "assistant"]), st.lists(st.builds(Text, texts)).map(tuple))
fields = st.dictionaries(texts.filter(lambda name: name != "messages"), st.none() | texts | st.integers(), max_size=3)


def plain(part):
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": URLS[part.image.sha256].decode()}}


@given(fields, st.lists(said | others, max_size=4))
def test_the_fragments_are_the_json_of_fields_and_messages(fields, messages):
    expected = [
        {
            "role": message.role,
            "content": [plain(part) for part in message.parts]
            if message.role == "user"
            else "".join(part.text for part in message.parts),
        }
        for message in messages
    ]
    assert json.loads(b"".join(body_of(fields, messages, URLS))) == {**fields, "messages": expected}


def test_images_are_those_of_the_cache_and_no_copies():
    image = ImagePart(ImageRef("2", 10, 10, "RGB", "PNG"))
    fragments = body_of({}, [Message("user", (image, image))], URLS)
    assert sum(fragment is URLS["2"] for fragment in fragments) == 2


@pytest.mark.parametrize("fields", [{"stop": ["\ud800"]}, {"temperature": float("nan")}])
def test_what_is_no_json_in_utf_8_is_an_error(fields):
    with pytest.raises(ValueError, match=r"surrogates|Out of range"):
        body_of(fields, [], {})


@pytest.mark.parametrize(("no_proxy", "passes"), [("", True), ("models.invalid", False)])
def test_requests_take_the_proxy_of_the_environment(chat, open_policy, turn, monkeypatch, no_proxy, passes):
    async def run():
        async with chat.serving(chat.saying(chat.completion)) as proxy:
            monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
            monkeypatch.setenv("no_proxy", no_proxy)
            async with open_policy("http://models.invalid/v1", max_retries=0) as policy:
                (made,) = await asyncio.gather(policy.write(turn()), return_exceptions=True)
                return made, len(proxy.asked)

    made, n_asked = asyncio.run(run())
    assert n_asked == passes
    assert isinstance(made, Exception) != passes
