"""A person at Label Studio's pages, and a small campaign of walls full of images for them to work on."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image

from darkroom.annotation.rounds.image_pool import POOL
from darkroom.pipelines.demo.images.scenes import scenes
from darkroom.pipelines.records import ImageRef, PoolImage
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.storage.workspace import Workspace
from tests.e2e.visitor import PATIENCE_SECONDS, Point, Visitor, next_frame

CAMPAIGN = "name: streets\nimages: [{path: images, source: ours, license: CC0-1.0}]\ngold_share: 0\n"
FRAME = (
    "(box => box && [box.x, box.y, box.width, box.height])"
    "(document.querySelector('.lsf-image')?.getBoundingClientRect())"
)
SHOWN = "window.Htx?.annotationStore?.selected && document.querySelector('.lsf-image img')?.naturalWidth > 0"
CHOSEN = "[...document.querySelectorAll('.dr-side input:checked')].map(node => node.name)"
REGIONS = "Htx.annotationStore.selected.regionStore.regions.filter(one => one.type === 'rectangleregion')"


def write_campaign(home: Path, numbers: tuple[int, ...]) -> dict[str, SourceRow]:
    """Puts these scenes of the demo into a campaign; gives them by the names of their files."""
    folder = home / "annotation" / "images"
    folder.mkdir(parents=True)
    drawn = {lazy.name: lazy for lazy in scenes(max(numbers) + 1, 0)}
    rows = {f"{number:02d}.jpg": drawn[f"scene/{number:02d}"].build() for number in numbers}
    for name, row in rows.items():
        image = row.images[0]
        assert isinstance(image, bytes)
        (folder / name).write_bytes(image)
    (home / "annotation" / "campaign.yaml").write_text(CAMPAIGN)
    return rows


def pool_of(workspace: Workspace) -> dict[str, PoolImage]:
    """The campaign's images by the digests that their addresses end in."""
    return {item.image.sha256: item for item in workspace.tables.read(POOL, PoolImage)}


class Labelling:
    """One person, logged in or not, on one server."""

    def __init__(self, visitor: Visitor, url: str) -> None:
        self.visitor = visitor
        self.url = url

    def log_in(self, email: str, password: str, page: str = "/projects/") -> None:
        """On the page that whoever is not logged in is sent to, by keyboard."""
        self.visitor.open(self.url + page)
        for field, text in (("email", email), ("password", password)):
            self.visitor.until(f"document.readyState === 'complete' && document.activeElement.name === '{field}'")
            self.visitor.enter(text)
            self.visitor.press("Tab" if field == "email" else "Enter")

    def open_round(self, project: int) -> str:
        """Opens the link that annotators use, for the first time: reads the guide and closes it; gives what it said."""
        self._open(project)
        self.visitor.until_said("Labeling Instructions")
        said = self.visitor.text().partition("Labeling Instructions")[2]
        self.close("Labeling Instructions")
        self.visitor.until(SHOWN)
        return said

    def reopen_round(self, project: int) -> None:
        """Opens it again, after work has begun: the guide is read, and stays behind its button."""
        self._open(project)
        self.visitor.until(SHOWN)
        assert "Labeling Instructions" not in self.visitor.text()
        assert "Instructions" in self.visitor.text().split()

    def open_task(self, project: int) -> None:
        """Opens it the first time or again: closes the guide, if it opens."""
        self._open(project)
        self.visitor.until(SHOWN)
        if self.visitor.run("window.dataManager.store.project.show_instruction"):
            self.visitor.until_said("Labeling Instructions")
            self.close("Labeling Instructions")

    def _open(self, project: int) -> None:
        self.visitor.until("document.readyState === 'complete' && !location.pathname.startsWith('/user/login')")
        self.visitor.open(f"{self.url}/projects/{project}/data?labeling=1")

    def close(self, text: str) -> None:
        """Closes the window with this text."""
        self.visitor.click("[aria-label='Close modal']")
        self.visitor.until(f"!document.body.innerText.includes({json.dumps(text)})")

    @property
    def data(self) -> Mapping[str, Any]:
        """The task's data."""
        found: Mapping[str, Any] = json.loads(self.visitor.run("JSON.stringify(Htx.task.dataObj)"))
        return found

    def frame(self) -> tuple[float, float, float, float]:
        """Where the image is in the window (x, y, width, height), once it has stopped moving."""
        readings: list[Any] = []
        while len(readings) < 4 or len(set(readings[-4:])) > 1:
            readings.append(tuple(self.visitor.until(next_frame(FRAME))))
            assert len(readings) < 400, f"the image does not lie still: {readings[-4:]}"
            time.sleep(0.15)
        found: tuple[float, float, float, float] = readings[-1]
        return found

    def corners(self, box: Box, image: ImageRef) -> tuple[Point, Point]:
        """Two corners of a box of the image, in the window."""
        x, y, width, height = self.frame()
        across, down = width / image.width, height / image.height
        return Point(x + box.x1 * across, y + box.y1 * down), Point(x + box.x2 * across, y + box.y2 * down)

    def shown(self, box: Box, image: ImageRef) -> Image.Image:
        """What the window shows of a box of the image."""
        start, end = self.corners(box, image)
        return self.visitor.image().crop((round(start.x), round(start.y), round(end.x), round(end.y)))

    def draw(self, box: Box, image: ImageRef) -> None:
        """Draws a box with the mouse."""
        start, end = self.corners(box, image)
        before = self.visitor.run(f"{REGIONS}.length")
        self.visitor.drag([start, Point((start.x + end.x) / 2, (start.y + end.y) / 2), end])
        self.visitor.until(f"{REGIONS}.length === {before + 1}")

    def delete(self, box: Box, image: ImageRef) -> None:
        """Clicks on the one box that is there, and deletes it."""
        start, end = self.corners(box, image)
        self.visitor.drag([Point((start.x + end.x) / 2, (start.y + end.y) / 2)])
        self.visitor.until("Htx.annotationStore.selected.selectedRegions.length")
        self.visitor.press("Backspace")
        self.visitor.until(f"!{REGIONS}.length")

    def choose(self, title: str) -> None:
        """Clicks on a choice."""
        self.visitor.click(f"(document.querySelector('input[name=\"{title}\"]').closest('label'))")
        self.visitor.until(f"document.querySelector('input[name=\"{title}\"]').checked")

    def write(self, heading: str, text: str) -> None:
        """Fills in the field below a heading."""
        self.visitor.type(field(heading), text)

    def answer_first(self, text: str) -> None:
        """Gives an own answer to a cross-check, and waits for the record."""
        self.visitor.type("input[name=own_answer]", text)
        self.visitor.press("Enter")
        self.visitor.until("!document.querySelector('.dr-first') && " + SHOWN)

    def written(self, heading: str) -> str:
        """What the field below a heading holds."""
        return str(self.visitor.until(f"{field(heading)}.value"))

    def chosen(self) -> list[str]:
        """The titles of what is chosen, in the order of the page."""
        found: list[str] = self.visitor.run(CHOSEN)
        return found

    def until_chosen(self, *titles: str) -> None:
        """Waits until just these are; the page draws them after it has their values."""
        self.visitor.until(f"JSON.stringify({CHOSEN}) === {json.dumps(json.dumps(titles, separators=(',', ':')))}")

    def until_drafted(self, word: str) -> None:
        """Waits until the server has said that it holds a draft with this word."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not any(word in draft.body for draft in self.visitor.answers("/drafts")):
            assert time.monotonic() < deadline, f"no draft with {word!r}"
            self.visitor.run("0")  # what came meanwhile is noted with it
            time.sleep(0.1)

    def submit(self) -> None:
        """Presses the button."""
        self.visitor.click("button[name=submit]")

    def until_saved(self) -> None:
        """Waits until Label Studio says so."""
        self.visitor.until_said("Annotation saved successfully")


def field(heading: str) -> str:
    """An expression for the field below a heading; Label Studio changes its element and name as it is edited."""
    return (
        f"([...document.querySelectorAll('.dr-side h4')].find(node => node.textContent.includes({json.dumps(heading)}))"
        "?.nextElementSibling.querySelector('textarea, input'))"
    )
