"""The annotation report in a real browser: its table sorts, its script is allowed, nothing is asked of a network."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from darkroom.annotation.quality.metrics import measure
from darkroom.annotation.quality.report import render
from scripts.screenshots import tab
from tests.annotation.simulation import simulate

HEAD = "[...document.querySelectorAll('table.sortable thead th')].find(node => node.textContent === {!r})"
NAMES = "[...document.querySelectorAll('table.sortable tbody th')].map(node => node.textContent)"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    campaign = simulate()
    quality = measure(campaign.states, blocked=campaign.hits, people=campaign.people)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(quality))
    return path


def seen(port: int, page: Path, *scripts: str, size: tuple[int, int] = (1280, 1000)) -> list[Any]:
    """What each script gives on the page, one after another."""

    async def look() -> list[Any]:
        async with tab(port, size) as call:
            await call("Page.navigate", url=page.as_uri())
            for _ in range(1200):
                if await evaluated(call, "document.readyState === 'complete' && !!document.querySelector('main')"):
                    return [await evaluated(call, script) for script in scripts]
                await asyncio.sleep(0.1)
            raise TimeoutError("the page was not there in 120 s")

    return asyncio.run(look())


async def evaluated(call: Any, script: str) -> Any:
    found = await call("Runtime.evaluate", expression=script, returnByValue=True)
    assert "exceptionDetails" not in found, found
    return found["result"].get("value")


def test_a_click_on_a_heading_sorts_and_a_second_one_turns_it_round(port: int, page: Path) -> None:
    click = f"{HEAD.format('Per hour')}.querySelector('button').click()"
    _, fastest, order, _, slowest = seen(port, page, click, NAMES, f"{HEAD.format('Per hour')}.ariaSort", click, NAMES)
    assert fastest[0] == slowest[-1] == "jonas@example.org"
    assert order == "descending"


def test_names_sort_from_a_to_z(port: int, page: Path) -> None:
    _, names = seen(port, page, f"{HEAD.format('Person')}.querySelector('button').click()", NAMES)
    assert names == sorted(names)


@pytest.mark.parametrize("width", [420, 1280])
def test_the_page_is_never_wider_than_its_window(port: int, page: Path, width: int) -> None:
    (found,) = seen(port, page, "document.documentElement.scrollWidth", size=(width, 900))
    assert found <= width


def test_nothing_is_asked_of_a_network(port: int, page: Path) -> None:
    (found,) = seen(port, page, "performance.getEntriesByType('resource').length")
    assert found == 0
