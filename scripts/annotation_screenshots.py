"""Takes the README's images of the annotation pages: a server of its own, a wall of images, three people's work.

python -m scripts.annotation_screenshots docs/images
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from PIL import Image

from darkroom.annotation.label_studio.server import connect, server_of
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.image_pool import materialize_pool
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.practice import exchange_practice
from darkroom.annotation.rounds.sync import Sync
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.storage.workspace import Workspace
from scripts.screenshots import browser
from tests.e2e.labelling import Labelling, field, pool_of, write_campaign
from tests.e2e.test_annotation_practice import answer_beside_the_target
from tests.e2e.visitor import Point, visitor
from tests.own_studio import own_home, running

SIZE = (1400, 740)
START_SIZE = (1400, 445)
TABLET = (1024, 768)
SCENE = 11
AUTHOR, CHECKER, PASSWORD = "mara@example.com", "jonas@example.com", "for the pictures 1"
NEWCOMER = "lena@example.com"
QUESTION, ANSWER = "Which street is named on the red sign to the right of the pagoda?", "Canal Walk"
LARGE = Box(80, 60, 800, 640)
"""The pagoda and its sign."""
ZOOMED = Box(40, 180, 1000, 800)
"""What is enlarged stays where its left upper corner is."""


def main(folder: Annotated[Path, typer.Argument(help="Folder for the images.")] = Path("docs/images")) -> None:
    """Writes start, annotate_refused, annotate and cross_check as PNG; correct, tablet and practice as WebP."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, serving(Path(home)) as workspace, browser() as port:
        studio = connect(workspace, {})
        for email in (AUTHOR, CHECKER):
            studio.add_person(email, role="annotator", password=PASSWORD)
        _sync(workspace)
        with visitor(port, SIZE) as made:
            _write(Labelling(made, studio.url), workspace, folder)
        _sync(workspace)
        with visitor(port, TABLET) as made:
            _correct(Labelling(made, studio.url), folder)
        with visitor(port, SIZE) as made:
            _check(Labelling(made, studio.url), workspace, folder)
        _ask_for_practice(workspace)
        with visitor(port, SIZE) as made:
            Labelling(made, studio.url).log_in(NEWCOMER, PASSWORD, "/darkroom/practice")
            answer_beside_the_target(made)
            made.image().save(folder / "practice.webp", quality=80)


@contextmanager
def serving(home: Path) -> Iterator[Workspace]:
    """A campaign of one wall, and its server while it is looked at."""
    write_campaign(home, (SCENE,))
    with Workspace.from_environment(own_home(home)) as workspace, running(server_of(workspace)):
        materialize_pool(workspace, Campaign.load(workspace.annotation), workspace.annotation)
        yield workspace


def _sync(workspace: Workspace) -> None:
    campaign = Campaign.load(workspace.annotation)
    with Journal(workspace.annotation) as journal, connect(workspace, {}) as studio:
        Sync(journal, studio, campaign).run(list(pool_of(workspace).values()))


def _project(workspace: Workspace, round: str) -> int:
    with Journal(workspace.annotation) as journal:
        found = journal.project(round)
    assert found is not None, "a sync makes every round's project"
    return found[0]


def _write(page: Labelling, workspace: Workspace, folder: Path) -> None:
    (item,) = pool_of(workspace).values()
    page.log_in(AUTHOR, PASSWORD)
    page.visitor.until_said("Your tasks")
    _write_image(page.visitor.image().crop((0, 0, *START_SIZE)), folder / "start.png")
    page.open_round(_project(workspace, "annotate"))
    page.draw(LARGE, item.image)
    page.choose("OCR")
    page.write("Question", QUESTION)
    page.write("Answer", ANSWER)
    page.submit()
    page.visitor.until_said("Not saved")
    _save(page, folder / "annotate_refused.png")
    page.close("Not saved")
    page.delete(LARGE, item.image)
    page.visitor.press("t")
    page.draw(Box(624, 365, 784, 413), item.image)
    page.visitor.until_said("limit 5 %")
    page.visitor.zoom(page.corners(ZOOMED, item.image)[0], steps=3)
    _save(page, folder / "annotate.png")
    page.submit()
    page.until_saved()


def _correct(page: Labelling, folder: Path) -> None:
    """The start page after a submission, and the submission opened again on a tablet."""
    page.log_in(AUTHOR, PASSWORD)
    page.visitor.until_said("Correct your last submission")
    page.visitor.image().crop((0, 0, TABLET[0], 480)).save(folder / "correct.webp", quality=80)
    page.visitor.resize(TABLET, is_tablet=True)
    page.visitor.tap("a[href*='#correct=']")
    page.visitor.until(f"{field('Answer')}?.value === {ANSWER!r}")
    page.frame()
    page.visitor.image().save(folder / "tablet.webp", quality=80)


def _check(page: Labelling, workspace: Workspace, folder: Path) -> None:
    page.log_in(CHECKER, PASSWORD)
    page.open_round(_project(workspace, "cross_check"))
    page.answer_first(ANSWER)
    page.choose("Accept")
    _save(page, folder / "cross_check.png")


def _ask_for_practice(workspace: Workspace) -> None:
    campaign = Campaign.load(workspace.annotation).model_copy(update={"practice": "example"})
    with Journal(workspace.annotation) as journal, connect(workspace, {}) as studio:
        studio.add_person(NEWCOMER, role="checker", password=PASSWORD)
        exchange_practice(workspace, campaign, journal, studio)


def _save(page: Labelling, path: Path) -> None:
    page.visitor.point(Point(1, 1))
    page.frame()
    _write_image(page.visitor.image(), path)


def _write_image(image: Image.Image, path: Path) -> None:
    """With 256 colours: a third of the size."""
    image.quantize(256).save(path, optimize=True)
    print(path)


if __name__ == "__main__":
    typer.run(main)
