"""SQLite on a file, without its locks: a session is one process, and the kernel refuses file locks (they would be a
channel between sessions that share a file)."""

import os
import sqlite3
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

_POSITION_OF_URI = 6


def install_sqlite() -> None:
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def connect_without_locks(database: Any, *args: Any, **options: Any) -> sqlite3.Connection:
        if options.get("uri") or len(args) > _POSITION_OF_URI or _is_no_file(database):
            return connect(database, *args, **options)
        uri = f"file:{quote(os.path.abspath(os.fsdecode(database)))}?nolock=1"
        return connect(uri, *args, uri=True, **{name: value for name, value in options.items() if name != "uri"})

    sqlite3.connect = sqlite3.dbapi2.connect = connect_without_locks  # type: ignore[assignment]  # overloads


def _is_no_file(database: Any) -> bool:
    return not isinstance(database, str | bytes | os.PathLike) or os.fsdecode(database) in ("", ":memory:")
