"""Base64 that clients send is read as Python's strict reader reads it."""

import base64
import binascii
from random import Random

import pytest

from darkroom.pipelines.services.files import decoded


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
