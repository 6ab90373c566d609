"""What clients send is read fast, and judged as Python's own readers judge it."""

import base64
import binascii
import json
from random import Random

import pytest

from darkroom.pipelines.services.files import decoded
from darkroom.pipelines.services.json_bodies import parsed


def test_base64_is_refused_and_read_as_by_the_strict_reader():
    rng, n_read = Random(0), 0
    for _ in range(20_000):
        text = "".join(rng.choices("AQgw+/=-_ \n", [8, 8, 8, 8, 2, 2, 6, 1, 1, 1, 1], k=rng.randrange(9)))
        try:
            expected = binascii.a2b_base64(text, strict_mode=True)
            if text.endswith("=") and len(text.rstrip("=")) % 4 == 0:
                raise binascii.Error("padding after a whole group, which Python 3.11 reads")
        except binascii.Error:
            with pytest.raises(ValueError, match="not base64"):
                decoded(text)
        else:
            n_read += 1
            assert decoded(text) == expected
    assert 1000 < n_read < 19_000


def test_a_data_url_is_read_as_its_payload():
    data = Random(0).randbytes(100_000)
    assert decoded(f"data:image/png;base64,{base64.b64encode(data).decode()}") == data


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": [1, 2.5, -1e400, NaN, 123456789012345678901234567890], "a": "\\u00e9\\ud83d\\ude00", "b": null}',
        b'{"code": "\\ud800"}',
        b'{"code": "\xed\xa0\x80"}',
        '{"é": true}'.encode("utf-16"),
        b"[" * 400 + b"]" * 400,
    ],
)
def test_a_body_is_read_as_by_python(body):
    assert repr(parsed(body)) == repr(json.loads(body))


@pytest.mark.parametrize("body", [b"{", b'{"a": 1}}', b"", b'{"a": 01}', b'"\n"'])
def test_a_body_that_is_no_json_is_refused_as_by_python(body):
    with pytest.raises(json.JSONDecodeError) as expected:
        json.loads(body)
    with pytest.raises(json.JSONDecodeError) as error:
        parsed(body)
    assert str(error.value) == str(expected.value)
