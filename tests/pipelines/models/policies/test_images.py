"""Images are sent within the model's limits, encoded once, and the frame that the model saw is on the record."""

from __future__ import annotations

import asyncio
import base64
import io

import pytest
from hypothesis import given, strategies as st
from PIL import Image

from darkroom.pipelines.models.policies import RecordedPolicy, SentImage
from darkroom.pipelines.models.policies.images import ImageEncoder
from darkroom.pipelines.records import ImageRef
from darkroom.pipelines.records.geometry import Box, PixelLimits, box_from_frame
from darkroom.pipelines.storage.images import ImageMissing, ImageStore
from darkroom.pipelines.storage.ledger import Ledger

QWEN = PixelLimits(3136, 2_000_000, 28)


def decoded(url: bytes) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(url.partition(b",")[2])))


def sent_urls(body: dict) -> list[bytes]:
    parts = [part for said in body["messages"] if said["role"] == "user" for part in said["content"]]
    return [part["image_url"]["url"].encode() for part in parts if part["type"] == "image_url"]


async def urls(encoder: ImageEncoder, *images: ImageRef) -> list[bytes]:
    try:
        return await asyncio.gather(*map(encoder.url, images))
    finally:
        encoder.close()


@given(st.integers(28, 9000), st.integers(28, 9000))
def test_whatever_the_size_it_is_sent_within_the_limits_and_in_whole_steps(width, height):
    sent = QWEN.fit(width, height)
    assert 3136 <= sent[0] * sent[1] <= 2_000_000 or min(sent) == 28
    assert sent[0] % 28 == sent[1] % 28 == 0
    assert QWEN.fit(*sent) == sent


@pytest.mark.parametrize(
    ("size", "sent"),
    [((4000, 3000), (1624, 1204)), ((640, 480), (644, 476)), ((20, 30), (56, 84)), ((9000, 28), (8988, 28))],
)
def test_sizes_are_those_of_qwens_own_rule(size, sent):
    assert QWEN.fit(*size) == sent


@given(st.integers(1, 9000), st.integers(1, 9000))
def test_without_limits_nothing_is_resized(width, height):
    assert PixelLimits().fit(width, height) == (width, height)


@pytest.mark.parametrize("format", ["JPEG", "PNG"])
def test_a_large_picture_is_reduced_and_keeps_its_kind(store, make_image, encoded, format):
    image = store.ingest(encoded(make_image(0, 800, 600), format))
    (url,) = asyncio.run(urls(ImageEncoder(store, PixelLimits(maximum=120_000)), image))
    seen = decoded(url)
    assert seen.size == (400, 300)
    assert seen.format == format
    assert url.startswith(f"data:image/{format.lower()};".encode())


def test_a_picture_is_encoded_once_however_many_ask_at_once(store, make_image):
    image, encoder = store.add_pixels(make_image()), ImageEncoder(store, PixelLimits())
    assert len(set(map(id, asyncio.run(urls(encoder, *[image] * 20))))) == 1


def test_the_cache_holds_no_more_bytes_than_it_may(store, make_image):
    images = [store.add_pixels(make_image(n)) for n in range(4)]
    encoder = ImageEncoder(store, PixelLimits(), max_bytes=1)

    async def work():
        return [await encoder.url(image) for image in [*images, *images]]

    made = asyncio.run(work())
    assert (len(set(made)), len(set(map(id, made)))) == (4, 8)
    encoder.close()


def test_a_picture_that_is_gone_is_said(tmp_path):
    image = ImageRef("0" * 64, 10, 10, "RGB", "PNG")
    with pytest.raises(ImageMissing):
        asyncio.run(urls(ImageEncoder(ImageStore(str(tmp_path)), PixelLimits()), image))


def test_a_policy_sends_and_records_the_frame_that_the_model_sees(chat, open_policy, turn, store, make_image, tmp_path):
    image = store.add_pixels(make_image(0, 800, 600))

    async def run():
        async with chat.serving(chat.saying(chat.completion)) as endpoint:
            with Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as ledger:
                async with open_policy(endpoint.url, max_pixels=120_000) as policy:
                    recorded = RecordedPolicy(policy, ledger)
                    said = turn(images=(image,))
                    return await recorded.write(said), await recorded.write(said), endpoint.asked

    written, recalled, asked = asyncio.run(run())
    assert written == recalled
    assert len(asked) == 1
    assert written.frames == (SentImage(image.sha256, 400, 300),)
    assert [decoded(url).size for url in sent_urls(asked[0])] == [(400, 300)]


def test_other_limits_are_another_act(open_policy):
    async def identity(**settings):
        async with open_policy("http://127.0.0.1:1/v1", **settings) as policy:
            return policy.identity

    plain, limited = asyncio.run(identity()), asyncio.run(identity(max_pixels=2_000_000, min_pixels=3136, size_step=28))
    assert set(plain.sampling) == {"temperature", "top_p", "max_tokens"}
    assert limited.sampling["max_pixels"] == 2_000_000
    assert plain.as_json() != limited.as_json()


def test_a_picture_above_a_megabyte_is_sent_whole(chat, open_policy, turn, store):
    noise = Image.effect_noise((1500, 1200), 90)
    image = store.add_pixels(noise)

    async def run():
        async with chat.serving(chat.saying(chat.completion)) as endpoint, open_policy(endpoint.url) as policy:
            await policy.write(turn(images=(image,)))
            return sent_urls(endpoint.asked[0])

    (url,) = asyncio.run(run())
    assert base64.b64decode(url.partition(b",")[2]) == store.read(image)


def test_a_box_in_the_models_frame_is_mapped_back_to_the_stored_picture():
    assert box_from_frame((100, 50, 200, 150), (400, 300), 800, 600) == Box(200, 100, 400, 300)
    with pytest.raises(ValueError, match="fractions"):
        box_from_frame((100, 50, 500, 150), (400, 300), 800, 600)


def test_pictures_come_before_the_text_that_asks_about_them(chat, open_policy, turn, store, make_image):
    async def run():
        async with chat.serving(chat.saying(chat.completion)) as endpoint, open_policy(endpoint.url) as policy:
            await policy.write(turn(images=(store.add_pixels(make_image()),)))
            return endpoint.asked[0]["messages"]

    system, user = asyncio.run(run())
    assert system["role"] == "system"
    assert [part["type"] for part in user["content"]] == ["image_url", "text"]
