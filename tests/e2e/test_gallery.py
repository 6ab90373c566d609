"""The gallery in a real browser: filters, search, keys, images, hostile text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from PIL import Image

from darkroom.pipelines.inspection.gallery import read_rejects, write_gallery
from darkroom.pipelines.inspection.gallery.index import open_index
from darkroom.pipelines.inspection.gallery.served import GalleryServer
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.train.runs import gallery
from scripts.screenshots import tab
from tests.pipelines.publishing.shipping import edit_rows
from tests.train.runs.test_gallery import rollout

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
Evaluate = Callable[[str], Awaitable[Any]]
SHOWN = "[...document.querySelectorAll('article')].map(node => node.querySelector('h2').textContent)"


def seen(port: int, page: Path | str, *scripts: str) -> list[Any]:
    """What each script gives on the page, one after another; a script may be a promise."""

    async def look() -> list[Any]:
        async with tab(port, (1400, 1000)) as call:
            await call("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
            await until_drawn(call)
            return [await evaluated(call, script) for script in scripts]

    return asyncio.run(look())


async def until_drawn(call: Any) -> None:
    for _ in range(1200):
        if await evaluated(call, "document.readyState === 'complete' && !!document.querySelector('article')"):
            return
        await asyncio.sleep(0.1)
    raise TimeoutError("the page drew no entry in 120 s")


async def evaluated(call: Any, script: str) -> Any:
    found = await call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
    assert "exceptionDetails" not in found, found
    return found["result"].get("value")


def chosen(name: str, value: str) -> str:
    """A script that sets a filter as a hand does, and gives the questions that are left."""
    return (
        f"(() => {{ const field = document.getElementById({name!r}); field.value = {value!r};"
        f" field.dispatchEvent(new Event('input', {{bubbles: true}})); return {SHOWN} }})()"
    )


def pressed(key: str) -> str:
    return (
        f"document.dispatchEvent(new KeyboardEvent('keydown', {{key: {key!r}}}));"
        "[...document.querySelectorAll('article')].findIndex(node => node.classList.contains('current'))"
    )


@pytest.fixture
def folder(shipped: Path) -> Path:
    return shipped


@pytest.fixture
def page(folder: Path, workspace: Workspace, tmp_path: Path) -> Path:
    path = tmp_path / "all.html"
    rejected = read_rejects(workspace)
    write_gallery(path, [folder], title="all", rejected=rejected)
    return path


def test_filters_and_search_leave_what_was_asked_for(port: int, page: Path) -> None:
    everything, crop, reason, none, again, words = seen(
        port,
        page,
        SHOWN,
        chosen("family", "crop"),
        chosen("reason", "not_applicable"),
        chosen("search", "nowhere to be found"),
        f"form.reset(); new Promise(done => setTimeout(() => done({SHOWN}), 100))",
        chosen("search", "NUMBER 3 say"),
    )
    assert len(everything) == len(again) == 6
    assert len(crop) == 5
    assert reason == ["What does sign number 1 say?"]
    assert none == []
    assert words == ["What does sign number 3 say?"]


def test_keys_go_forth_and_back_and_the_address_remembers(port: int, page: Path) -> None:
    first, second, back, address = seen(port, page, pressed("j"), pressed("j"), pressed("k"), "location.hash")
    assert (first, second, back) == (0, 1, 0)
    assert address.startswith("#row=")


@pytest.mark.parametrize("inline_bytes", [1 << 20, 1000])
def test_every_image_is_displayed(port: int, folder: Path, tmp_path: Path, inline_bytes: int) -> None:
    path = tmp_path / "pictures.html"
    write_gallery(path, [folder], title="crop", inline_bytes=inline_bytes)
    loaded = (
        "Promise.all([...document.images].map(image => { image.loading = 'eager'; return image.decode() }))"
        ".then(() => [...document.images].map(image => image.naturalWidth))"
    )
    (widths,) = seen(port, path, loaded)
    assert len(widths) == 8
    assert min(widths) > 0


def test_hostile_text_is_shown_and_does_nothing(port: int, folder: Path, tmp_path: Path) -> None:
    def spoil(row) -> None:
        row["question"] = row["answer"] = row["category"] = HOSTILE
        row["rounds"][0].update(thought=HOSTILE, code=HOSTILE)
        row["rounds"][0]["observation"].update(text=HOSTILE, error=HOSTILE)
        row["checks"][0].update(detail=HOSTILE)

    edit_rows(folder, spoil)
    path = tmp_path / "hostile.html"
    write_gallery(path, [folder], title="crop")
    waited = "new Promise(done => setTimeout(() => done(document.title), 500))"
    title, question, code, n_odd, category = seen(
        port,
        path,
        waited,
        "document.querySelector('h2').textContent",
        "document.querySelector('pre.code').textContent",
        "document.querySelectorAll('article script, img[src=x]').length",
        "document.getElementById('category').options[1].value",
    )
    assert title == "crop: gallery"
    assert question == code == category == HOSTILE
    assert n_odd == 0


def test_two_thousand_rows_are_drawn_as_they_are_looked_at(port: int, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "many.html"
    write_gallery(path, [folder], title="crop")
    found = 'document.querySelectorAll("template.entry")'
    text = path.read_text().replace(found, f"Array.from({{length: 500}}, () => [...{found}]).flat()")
    many = text.replace("http-equiv", "data-off")  # the script is another one now, whose digest the policy lacks
    path.write_text(many)
    n_entries, n_drawn, seconds = seen(
        port,
        path,
        "entries.length",
        "document.querySelectorAll('article').length",
        f"(() => {{ const began = performance.now(); {chosen('search', 'number 3')};"
        " return (performance.now() - began) / 1000 })()",
    )
    assert n_entries == 2000
    assert n_drawn < 100
    assert seconds < 2


@pytest.fixture
def served(folder: Path, workspace: Workspace, tmp_path: Path) -> Iterator[str]:
    """The address of the served gallery with all rows and rejects."""
    index = open_index(tmp_path / "all.index", [folder], read_rejects(workspace))
    with GalleryServer(index, workspace.images, title="all") as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server.address
        server.shutdown()
        thread.join()


def waited_for(condition: str) -> str:
    """A promise of what the condition gives once it holds."""
    return (
        "new Promise((done, fail) => { const began = Date.now(); const look = () => { const value = "
        f"({condition}); if (value) done(value); else if (Date.now() - began > 60000) fail(Error('never')); "
        "else setTimeout(look, 50) }; look() })"
    )


def test_the_served_gallery_filters_moves_and_has_an_address_for_each_row(port: int, served: str) -> None:
    n_images, crop, third, address = seen(
        port,
        served,
        waited_for("document.querySelectorAll('img').length >= 9 && document.querySelectorAll('img').length"),
        f"{chosen('family', 'crop')}; {waited_for(f'{SHOWN}.length === 5 && {SHOWN}')}",
        "[1, 2, 3].forEach(() => document.dispatchEvent(new KeyboardEvent('keydown', {key: 'j'})));"
        "document.querySelector('article.current h2').textContent",
        "location.hash",
    )
    assert n_images == 9
    assert len(crop) == 5
    (again,) = seen(port, served + address, waited_for("document.querySelector('article.current h2')?.textContent"))
    assert again == third


def test_rollouts_of_a_training_are_drawn_with_reward_and_advantage(port: int, tmp_path: Path) -> None:
    images = tmp_path / "rollouts" / "images"
    images.mkdir(parents=True)
    Image.new("RGB", (64, 48), "red").save(images / "a.png")
    rollouts = [rollout(1, "s1", 1.5, rounds=[]), rollout(20, "s2", 0.5, rounds=[], advantage=-0.5, answer=None)]
    (tmp_path / "rollouts" / "000001.json").write_text(json.dumps(rollouts))
    gallery.write_page(tmp_path, title="grpo")
    tags, tones, width, of_step = seen(
        port,
        tmp_path / "rollouts.html",
        "[...document.querySelectorAll('article')].map(node => node.querySelector('header').innerText)",
        "[...document.querySelectorAll('.tag.passed, .tag.failed')].map(node => node.textContent)",
        "document.images[0].decode().then(() => document.images[0].naturalWidth)",
        f"{chosen('step', 'step 20')}.length",
    )
    assert ["reward 1.5" in tags[0], "reward 0.5" in tags[1]] == [True, True]
    assert tones == ["advantage +0.75", "advantage -0.5"]
    assert (width, of_step) == (64, 1)
