"""Signatures of local features do not depend on how many descriptors are worked on together."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from pipelines.selection.duplicates import local_features
from pipelines.selection.duplicates.local_features import SIGNATURE_WORDS


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 96])
def test_signatures_are_those_of_all_descriptors_projected_at_once(n: int):
    descriptors = np.random.default_rng(n).gamma(0.5, 30, (n, 128)).astype(np.float32)
    in_parts = local_features._signatures(descriptors)
    with mock.patch.object(local_features, "_AT_ONCE", 1_000):
        at_once = local_features._signatures(descriptors)
    assert in_parts.shape == (n, SIGNATURE_WORDS)
    assert in_parts.tolist() == at_once.tolist()
