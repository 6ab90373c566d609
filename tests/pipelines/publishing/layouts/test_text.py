import re

import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.models.messages import ImagePart, Text
from darkroom.pipelines.publishing.layouts.turns import PLACEHOLDERS, escaped, plain, unescaped, with_placeholders
from darkroom.pipelines.records import ImageRef
from tests.pipelines.models.protocols.pieces import PIECES

WORDS = [f"<{name}>" for name in PLACEHOLDERS] + [
    "<|im_end|>",
    "<|image_pad|>",
    "<",
    ">",
    "|",
    " ",
    "image",
    "<|",
    "|>",
]
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from([*WORDS, *PIECES]), max_size=12).map("".join))
IMAGE = ImagePart(ImageRef("0" * 64, 1, 1, "RGB", "PNG"))


@given(TEXTS)
def test_what_was_escaped_comes_back(text):
    assert unescaped(escaped(text)) == text


@given(TEXTS)
def test_no_placeholder_and_no_special_token_is_left(text):
    assert not re.search(rf"<({'|'.join(PLACEHOLDERS)})>|<\|\w+\|>", escaped(text))


@given(TEXTS, TEXTS)
def test_different_texts_stay_different(one, other):
    assert (escaped(one) == escaped(other)) == (one == other)


@given(st.lists(st.one_of(TEXTS.map(Text), st.just(IMAGE)), max_size=6))
def test_there_are_as_many_placeholders_as_images_wherever_texts_are_joined(parts):
    assert with_placeholders(parts).count("<image>") == parts.count(IMAGE)


@given(TEXTS)
def test_a_placeholder_is_ordinary_text_where_messages_have_parts(text):
    assert plain(f"{text}<image>").endswith("<image>")


@pytest.mark.parametrize("text", ["a < image", "x<y>z", "<table>", "<code>", "<answer>7</answer>", "<tool_call>"])
def test_other_tags_stay_as_they_are(text):
    assert escaped(text) == text
