"""Programs are parsed by many threads at once, and garbage is collected in between."""

from __future__ import annotations

import ast
import gc
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipelines import locate
from pipelines.syntax import parsed


@pytest.fixture
def busy_collector() -> Iterator[None]:
    """Every few objects a collection, which lets another thread run."""

    def give_way(*_: object) -> None:
        time.sleep(0)

    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(20)
    gc.callbacks.append(give_way)
    yield
    gc.callbacks.remove(give_way)
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval)


def test_threads_that_parse_at_once_do_not_disturb_each_other(busy_collector: None) -> None:
    code = Path(locate.__file__).read_text()
    with ThreadPoolExecutor(8) as threads:
        trees = list(threads.map(parsed, [code] * 120))
    assert all(isinstance(tree, ast.Module) for tree in trees)


@pytest.mark.parametrize("code", ["x = (", "\0", "(" * 1000])
def test_what_does_not_parse_is_none(code: str) -> None:
    assert parsed(code) is None


def test_a_strange_escape_is_no_warning() -> None:
    assert parsed('"\\d"') is not None
