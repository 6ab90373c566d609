"""The gallery of many rows: a page of this machine's own server (standard library), which draws a row on demand."""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from darkroom.pipelines.inspection.gallery import gallery_page
from darkroom.pipelines.inspection.gallery.entries import Entry, entry_of_reject, entry_of_row
from darkroom.pipelines.inspection.gallery.index import EntryPlace, GalleryIndex
from darkroom.pipelines.inspection.pages import data_url, embedded_json
from darkroom.pipelines.publishing.dataset_reader import row_at
from darkroom.pipelines.records import Reject, Sample, from_row
from darkroom.pipelines.services import LOOPBACK, is_let_in
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.store_paths import store_path
from darkroom.sandbox.errors import UserError

_COOKIE = "darkroom_gallery"


class GalleryServer(ThreadingHTTPServer):
    """Serves the rows of ``index``; ``beside``: of another run, whose row of the same sample stands below each. Listens
    at once, at port 0 on a free one. With ``token`` a client needs it once, in the address of the page."""

    daemon_threads = True

    def __init__(
        self,
        index: GalleryIndex,
        store: ImageStore,
        *,
        title: str,
        beside: GalleryIndex | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str = "",
    ) -> None:
        self.index, self.beside, self.store, self.token, self.host = index, beside, store, token, host
        self.page = gallery_page(title, [embedded_json("facets", index.facets())], "served.js").encode(errors="replace")
        super().__init__((host, port), _GalleryHandler)

    @property
    def address(self) -> str:
        query = f"?token={self.token}" if self.token else ""
        return f"http://{self.host}:{self.server_port}/{query}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """One line; none where the browser has left."""
        error = sys.exception()
        if isinstance(error, Exception) and not isinstance(error, ConnectionError):
            print(f"error: {type(error).__name__}: {error}", file=sys.stderr)

    def rows(self, fields: Mapping[str, str]) -> dict[str, Any]:
        """A page of entries, without what they hold."""
        return asdict(self.index.page(fields, _number(fields.get("page", "")) or 0, row=fields.get("row", "")))

    def row(self, fields: Mapping[str, str]) -> dict[str, Any] | None:
        """An entry and that of the other run, each with its images; None where there is none."""
        number = _number(fields.get("n", ""))
        lookup = None if number is None else self.index.lookup(number)
        if lookup is None:
            return None
        beside = self.beside.of_sample(lookup.sample, lookup.family) if self.beside else None
        return {"entries": [_drawn(self._entry(each)) for each in (lookup, beside) if each is not None]}

    def _entry(self, lookup: EntryPlace) -> Entry:
        if lookup.reject is None:
            return entry_of_row(row_at(store_path(lookup.file), lookup.place))
        sample, reject = lookup.reject["sample"], from_row(Reject, lookup.reject["reject"])
        return entry_of_reject(reject, from_row(Sample, sample) if sample else None, self.store)


def open_server(index: GalleryIndex, store: ImageStore, **options: Any) -> GalleryServer:
    """Open a ``GalleryServer``. Raises ``UserError`` if the port is taken."""
    try:
        return GalleryServer(index, store, **options)
    except OSError as error:
        where = f"{options.get('host')}:{options.get('port')}"
        raise UserError(f"cannot listen at {where}: {error.strerror}; choose another --port") from error


class _GalleryHandler(BaseHTTPRequestHandler):
    server: GalleryServer

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        fields = dict(parse_qsl(address.query))
        if not self._is_own_name() or not self._is_let_in(fields):
            self.send_error(HTTPStatus.FORBIDDEN, "the address needs its token")
        elif address.path == "/":
            self._answer(self.server.page, "text/html; charset=utf-8")
        elif address.path == "/rows":
            self._answer_json(self.server.rows(fields))
        elif address.path == "/row":
            self._answer_row(fields)
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _answer_row(self, fields: Mapping[str, str]) -> None:
        try:
            row = self.server.row(fields)
        except UserError as error:
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, explain=str(error))
            return
        if row is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self._answer_json(row)

    def _is_own_name(self) -> bool:
        """On this machine's own address it answers to no other name, under which a foreign page could reach it."""
        name = self.headers.get("host", "").rsplit(":", 1)[0]
        return self.server.host not in LOOPBACK or name in LOOPBACK

    def _is_let_in(self, fields: Mapping[str, str]) -> bool:
        try:
            cookie = SimpleCookie(self.headers.get("cookie", "")).get(_COOKIE)
        except CookieError:
            cookie = None
        return is_let_in(fields.get("token", ""), cookie.value if cookie else "", token=self.server.token)

    def _answer_json(self, value: Any) -> None:
        self._answer(json.dumps(value, default=str).encode(), "application/json")

    def _answer(self, body: bytes, media_type: str) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        if self.server.token:
            self.send_header("Set-Cookie", f"{_COOKIE}={self.server.token}; HttpOnly; SameSite=Strict")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing: the terminal is the user's."""


def _number(text: str) -> int | None:
    """A number of an address that SQLite can hold; None for anything else."""
    return int(text) if text.isdecimal() and len(text) < 16 else None


def _drawn(entry: Entry) -> dict[str, Any]:
    return {"html": entry.html(), "files": {name: data_url(data, "image/jpeg") for name, data in entry.images.items()}}
