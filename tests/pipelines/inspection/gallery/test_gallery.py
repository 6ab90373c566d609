"""The gallery: one page that holds its rows and images, asks no network, and shows hostile text as text."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from markupsafe import escape
from PIL import Image, ImageChops, ImageStat

from darkroom.pipelines.inspection.gallery import read_rejects, write_gallery
from darkroom.pipelines.inspection.gallery.entries import _shrunk, code_html, entry_of_record
from darkroom.pipelines.records import ImageRef, Sample, Truth
from darkroom.pipelines.storage.workspace import Workspace
from tests.pipelines.publishing.shipping import edit_rows

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">&lt;\u2028"


@pytest.fixture
def folder(shipped: Path) -> Path:
    return shipped


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "pages" / "crop.html"


def images_of(page: Path) -> dict[str, str]:
    found = re.search(r'<script type="application/json" id="images">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def articles(page: Path) -> list[tuple[dict[str, list[str]], str]]:
    """The filters' values and the article of every entry."""
    found = re.findall(r'<template class="entry".*? data-filters="(.*?)">(.*?)</template>', page.read_text(), re.DOTALL)
    return [(json.loads(html.unescape(values)), article) for values, article in found]


def names_in(article: str) -> list[str]:
    return re.findall(r'data-image="(.*?)"', article)


def test_every_row_is_there_with_its_images(folder: Path, page: Path) -> None:
    written = write_gallery(page, [folder], title="crop")
    entries, images = articles(page), images_of(page)
    assert (written.n_rows, written.n_rejects, written.folder, len(entries)) == (4, 0, None, 4)
    for _, article in entries:
        assert len(names_in(article)) == 2
        assert all(images[name].startswith("data:image/jpeg;base64,") for name in names_in(article))
    filters, article = entries[0]
    assert "<h2>What does sign number 0 say?</h2>" in article
    assert "executes: passed" in filters["check"]
    assert (filters["kind"], filters["family"], filters["reason"]) == (["accepted"], ["crop"], [])


def test_only_what_was_outlined_is_said_to_be(folder: Path, page: Path) -> None:
    write_gallery(page, [folder], title="crop", limit=1)
    assert ["crops are outlined" in article for _, article in articles(page)] == [True]

    def show_all(row) -> None:
        row["images"][1] = row["images"][0]

    edit_rows(folder, show_all)
    write_gallery(page, [folder], title="crop", limit=1)
    assert ["crops are outlined" in article for _, article in articles(page)] == [False]


def test_rejects_come_with_stage_reason_evidence_and_image(folder: Path, page: Path, workspace: Workspace) -> None:
    rejected = read_rejects(workspace)
    written = write_gallery(page, [folder], title="all", rejected=rejected)
    assert (written.n_rows, written.n_rejects, written.n_not_applicable) == (4, 1, 1)
    (filters, damaged), (_, boxless) = [entry for entry in articles(page) if entry[0]["reason"]]
    assert (filters["family"], filters["reason"], filters["kind"]) == (["intake"], ["truncated_image"], ["quarantined"])
    assert names_in(damaged) == []
    assert "row/5" in damaged[damaged.index("The row") :]
    assert "<b>not_applicable</b> · at crop/drafts" in boxless
    assert "box" in boxless
    assert ('Expected answer</div><div class="answer">S1X</div>' in boxless, len(names_in(boxless))) == (True, 1)


def test_rejects_come_by_pages_what_came_furthest_first(folder: Path, page: Path, workspace: Workspace) -> None:
    rejected = read_rejects(workspace)
    pages = [rejected.page(number, 1) for number in (1, 2, 3)]
    assert [[reject.stage for reject, _ in each.rows] for each in pages] == [["samples"], ["crop/drafts"], []]
    assert [len(each.rows) for each in pages] == [1, 1, 0]
    written = write_gallery(page, [folder], title="all", rejected=pages[1])
    assert (written.n_rows, written.n_rejects, written.n_not_applicable) == (4, 0, 1)


def test_an_image_is_shown_as_it_is_only_smaller() -> None:
    image = Image.radial_gradient("L").resize((2400, 1600)).convert("RGB")
    small, fine = _shrunk(image, 900), image.resize((900, 600), Image.Resampling.LANCZOS)
    assert small.size == (900, 600)
    assert ImageStat.Stat(ImageChops.difference(small, fine)).mean < [1.0] * 3
    assert image.size == (2400, 1600)
    assert _shrunk(image.crop((0, 0, 70, 50)), 900).tobytes() == image.crop((0, 0, 70, 50)).tobytes()


def test_a_familys_rejects_are_its_own(folder: Path, workspace: Workspace) -> None:
    assert [rejected.family for rejected, _ in read_rejects(workspace, ["crop"]).rows] == ["crop"]
    assert list(read_rejects(workspace, ["rotation"]).rows) == []


def test_an_image_that_is_gone_is_said_and_the_reject_still_shown(
    folder: Path, page: Path, workspace: Workspace, tmp_path: Path
) -> None:
    elsewhere = replace(workspace, images_url=str(tmp_path / "empty"))
    rejected = read_rejects(elsewhere, ["crop"])
    write_gallery(page, [], title="crop", rejected=rejected)
    ((_, article),) = articles(page)
    assert names_in(article) == []
    assert "(1 of its images are not in the store)" in article


def test_many_images_go_to_a_folder_that_holds_no_others(folder: Path, page: Path) -> None:
    written = write_gallery(page, [folder], title="crop", inline_bytes=1000)
    assert written.folder == page.parent / "crop_files"
    images = images_of(page)
    assert all((page.parent / address).read_bytes().startswith(b"\xff\xd8") for address in images.values())
    (written.folder / "left.jpg").write_bytes(b"left")
    write_gallery(page, [folder], title="crop", inline_bytes=1000)
    assert {path.name for path in written.folder.iterdir()} == set(images)
    write_gallery(page, [folder], title="crop")
    assert not written.folder.exists()


def test_the_page_asks_no_network(folder: Path, page: Path) -> None:
    write_gallery(page, [folder], title="crop")
    text = page.read_text()
    assert "default-src 'none'" in text
    assert "http://" not in text
    assert "https://" not in text


def test_hostile_text_cannot_leave_its_place(folder: Path, page: Path) -> None:
    def spoil(row) -> None:
        row["question"] = row["final_thought"] = row["answer"] = row["source_row"] = HOSTILE
        row["rounds"][0].update(thought=HOSTILE, code=HOSTILE)
        row["rounds"][0]["observation"].update(text=HOSTILE)

    edit_rows(folder, spoil)
    write_gallery(page, [folder], title=HOSTILE)
    text = page.read_text()
    assert text.count("<script") == text.count("</script>") == 2
    assert "<img src" not in text
    (_, article), *_ = articles(page)
    assert article.count(str(escape(HOSTILE))) >= 5
    assert "".join(re.findall(r"</?template", article)) == ""


@pytest.mark.parametrize("code", ["", "\n\nx = 1", "if x:\n\ty = 'é'  # ok\n", "def (:", "\r\n a", HOSTILE])
def test_the_text_of_highlighted_code_is_the_code(code: str) -> None:
    assert html.unescape(re.sub(r"<[^>]*>", "", code_html(code))) == code.replace("\r\n", "\n")


def test_the_limit_is_for_each_dataset(folder: Path, page: Path) -> None:
    assert write_gallery(page, [folder, folder], title="both", limit=1).n_rows == 2


def test_rejects_and_their_samples_wait_on_disk(workspace: Workspace, folder: Path) -> None:
    """They are read again each time, in the same order, each with its own sample."""
    rejected = read_rejects(workspace)
    rows = list(rejected.rows)
    assert len(rejected.rows) == len(rows) == 2
    assert list(rejected.rows) == rows
    assert [sample and sample.sample_id for _, sample in rows] == [one.sample_id or None for one, _ in rows]


def test_a_page_is_the_same_whenever_it_is_written(folder: Path, page: Path, workspace: Workspace) -> None:
    written = []
    for _ in range(2):
        write_gallery(page, [folder], title="crop", rejected=read_rejects(workspace))
        written.append(page.read_bytes())
    assert written[0] == written[1]
    assert not [path for path in page.parent.iterdir() if path != page]


def test_a_question_numbers_the_images_that_are_shown_below_it():
    images = tuple(ImageRef(letter * 64, 640, 480, "RGB", "PNG") for letter in "ab")
    sample = Sample("s", "test", "1", "", images, "Is <image> in <image>?", ("A. <image>",), "A", Truth(), "")
    content = entry_of_record(sample).content
    assert (content["question"], content["choices"]) == ("Is [image 1] in [image 2]?", ["A. [image 3]"])
