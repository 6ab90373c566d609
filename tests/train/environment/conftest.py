"""Three rows about the colour of a sign."""

import pytest

from tests.pipelines.publishing.shipping import write_prompts
from tests.train.evaluation.conftest import COLOURS, row


@pytest.fixture(scope="module")
def dataset(store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prompts") / "deserts"
    rows = [row(store, name, seed) for seed, name in enumerate(COLOURS)]
    write_prompts(folder, rows, store=store, split="train")
    return folder
