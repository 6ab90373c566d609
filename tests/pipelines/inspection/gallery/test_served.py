"""The served gallery: an index of texts, a hundred rows a page, each row drawn when it is asked for."""

from __future__ import annotations

import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from darkroom.pipelines.inspection.gallery import read_rejects
from darkroom.pipelines.inspection.gallery.index import PAGE_ROWS, GalleryIndex, open_index
from darkroom.pipelines.inspection.gallery.served import GalleryServer, open_server
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.errors import UserError
from tests.pipelines.publishing.shipping import edit_rows


@pytest.fixture
def index(shipped: Path, workspace: Workspace, tmp_path: Path) -> GalleryIndex:
    return open_index(tmp_path / "all.index", [shipped], read_rejects(workspace))


@contextmanager
def serving(index: GalleryIndex, workspace: Workspace, **options: Any) -> Iterator[GalleryServer]:
    with open_server(index, workspace.images, title="all", **options) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def asked(server: GalleryServer, path: str, **fields: Any) -> Any:
    address = f"http://127.0.0.1:{server.server_port}{path}?{urlencode(fields)}"
    with urllib.request.urlopen(address) as answer:
        return json.load(answer)


@pytest.mark.parametrize(
    ("filters", "n"),
    [
        ({}, 6),
        ({"family": "crop"}, 5),
        ({"kind": "accepted"}, 4),
        ({"reason": "not_applicable"}, 1),
        ({"check": "executes: passed"}, 4),
        ({"search": "NUMBER 3 say"}, 1),
        ({"search": "100%_"}, 0),
        ({"search": "number", "kind": "not_applicable"}, 1),
    ],
)
def test_filters_and_search_leave_what_was_asked_for(index: GalleryIndex, filters: dict[str, str], n: int) -> None:
    assert index.page(filters, 0).n_entries == n


def test_facets_count_every_value(index: GalleryIndex) -> None:
    facets = index.facets()
    assert facets["kind"] == {"accepted": 4, "quarantined": 1, "not_applicable": 1}
    assert facets["reason"] == {"not_applicable": 1, "truncated_image": 1}
    assert facets["check"]["executes: passed"] == 4


def test_an_address_finds_its_row_on_its_page(index: GalleryIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("darkroom.pipelines.inspection.gallery.index.PAGE_ROWS", 2)
    last = index.page({}, 2).entries[-1]
    page = index.page({}, 0, row=last["link"])
    assert (page.number, page.n_pages, page.entries[-1]["link"]) == (2, 3, last["link"])
    assert index.page({}, 99).number == 2
    assert PAGE_ROWS == 100


def test_every_address_is_of_one_row(index: GalleryIndex) -> None:
    links = [entry["link"] for entry in index.page({}, 0).entries]
    assert len(set(links)) == 6


def test_an_index_is_made_again_when_a_dataset_changed(shipped: Path, tmp_path: Path) -> None:
    path = tmp_path / "crop.index"
    open_index(path, [shipped], None)
    made = path.stat().st_ino
    assert open_index(path, [shipped], None).page({"search": "otherwise"}, 0).n_entries == 0
    assert path.stat().st_ino == made
    edit_rows(shipped, lambda row: row.update(question="Otherwise?"))
    assert open_index(path, [shipped], None).page({"search": "otherwise"}, 0).n_entries == 4


def test_an_index_that_was_cut_off_is_made_again(shipped: Path, tmp_path: Path) -> None:
    path = tmp_path / "crop.index"
    path.write_bytes(b"garbage" * 100)
    assert open_index(path, [shipped], None).n_entries == 4


def test_a_row_comes_with_its_images_and_that_of_the_other_run(
    index: GalleryIndex, shipped: Path, workspace: Workspace, tmp_path: Path
) -> None:
    other = open_index(tmp_path / "other.index", [shipped], None)
    with serving(index, workspace, beside=other) as server:
        rows = asked(server, "/rows", kind="accepted", search="number 3")
        (entry,) = rows["entries"]
        drawn, beside = asked(server, "/row", n=entry["n"])["entries"]
        rejected = asked(server, "/rows", reason="not_applicable")["entries"][0]
        (reject,) = asked(server, "/row", n=rejected["n"])["entries"]
    assert "<h2>What does sign number 3 say?</h2>" in drawn["html"]
    assert drawn == beside
    names = re.findall(r'data-image="(.*?)"', drawn["html"])
    assert len(names) == 2
    assert all(drawn["files"][name].startswith("data:image/jpeg;base64,") for name in names)
    assert "</b> · at crop/drafts" in reject["html"]


@pytest.mark.parametrize("path", ["/row?n=99", "/row?n=x", "/row", "/../etc/passwd", f"/row?n={'9' * 40}"])
def test_what_is_not_there_is_404(index: GalleryIndex, workspace: Workspace, path: str) -> None:
    with serving(index, workspace) as server, pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}{path}")


@pytest.mark.parametrize("page", ["9" * 5000, "9" * 12, "x", "-1", ""])
def test_a_page_that_there_is_not_is_the_nearest_one(index: GalleryIndex, workspace: Workspace, page: str) -> None:
    with serving(index, workspace) as server:
        assert asked(server, "/rows", page=page)["number"] == 0


def test_under_another_name_the_server_answers_nothing(index: GalleryIndex, workspace: Workspace) -> None:
    with serving(index, workspace) as server:
        connection = HTTPConnection("127.0.0.1", server.server_port)
        connection.request("GET", "/rows", headers={"Host": f"attacker.example:{server.server_port}"})
        assert connection.getresponse().status == 403
        connection.close()


@pytest.mark.parametrize("cookie", ["", "darkroom_gallery=wrong", "darkroom_gallery=s\u00e4cret", "=;\x01"])
def test_a_wrong_token_is_not_let_in(index: GalleryIndex, workspace: Workspace, cookie: str) -> None:
    with serving(index, workspace, token="s\u00e4cret!") as server:
        connection = HTTPConnection("127.0.0.1", server.server_port)
        connection.request("GET", "/rows?token=s%C3%A4", headers={"Cookie": cookie.encode()})
        assert connection.getresponse().status == 403
        connection.close()


def test_with_a_token_the_page_lets_its_own_requests_in(index: GalleryIndex, workspace: Workspace) -> None:
    with serving(index, workspace, token="secret") as server:
        with pytest.raises(urllib.error.HTTPError, match="403"):
            asked(server, "/rows")
        with urllib.request.urlopen(server.address) as answer:
            cookie = answer.headers["Set-Cookie"].split(";")[0]
        address = f"http://127.0.0.1:{server.server_port}/rows"
        with urllib.request.urlopen(urllib.request.Request(address, headers={"Cookie": cookie})) as answer:
            assert json.load(answer)["n_entries"] == 6


def test_a_port_that_is_taken_is_a_message(index: GalleryIndex, workspace: Workspace) -> None:
    with serving(index, workspace) as server, pytest.raises(UserError, match="another --port"):
        open_server(index, workspace.images, title="all", host="127.0.0.1", port=server.server_port)
