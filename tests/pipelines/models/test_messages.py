"""A question's images stand at its marks in what a policy is sent; without marks they come first, as ever."""

from __future__ import annotations

import pytest

from darkroom.pipelines.models.messages import ImagePart, Text, opening_messages
from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.records import ImageRef

ONE, TWO = (ImageRef(letter * 64, 640, 480, "RGB", "PNG") for letter in "ab")
PLACED = "Is <image> in <image>?"


def test_each_image_stands_at_its_mark():
    _, user = opening_messages("", (ONE, TWO), f"Look.\n{PLACED}\nThink.", question=PLACED)
    assert user.parts == (Text("Look.\nIs "), ImagePart(ONE), Text(" in "), ImagePart(TWO), Text("?\nThink."))


@pytest.mark.parametrize(
    ("question", "images"), [("Which?", (ONE, TWO)), (PLACED, (ONE,)), (PLACED, ()), ("Other <image>?", (ONE,))]
)
def test_images_come_first_unless_there_is_a_mark_for_each(question, images):
    text = "Which? Is <image> in <image>?"
    _, user = opening_messages("", images, text, question=question)
    assert user.parts == (*map(ImagePart, images), Text(text))


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_every_protocol_opens_with_images_at_their_places(protocol):
    parts = protocol.opening(PLACED, (ONE, TWO))[1].parts
    assert [part.image for part in parts if isinstance(part, ImagePart)] == [ONE, TWO]
    first, second, last = (n for n, part in enumerate(parts) if isinstance(part, ImagePart) or part is parts[-1])
    assert "Is " in parts[first - 1].text
    assert " in " in parts[second - 1].text
    assert parts[last].text.lstrip().startswith("?")
