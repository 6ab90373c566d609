"""Dagster's event log in SQLite, with its connections kept: Dagster opens and closes a file for every event.

A new connection's engine compiles its statements anew, and the last one that closes a file copies its log into it: half
of an event's processor time, and most of its wait for the disk.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from sqlalchemy import Connection, Engine, StaticPool, create_engine

_MOST = 4
"""Files that are kept open: every run has one, beside the index of all."""


class KeptEventLog(SqliteEventLogStorage):
    """As Dagster's own, for the process that makes the runs."""

    def __init__(self, base_dir: str) -> None:
        self._engines: dict[str, Engine] = {}
        super().__init__(base_dir)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        if shard not in self._initialized_dbs:
            with super()._connect(shard):
                pass
        with self._db_lock, self._engine(shard).begin() as connection:
            yield connection

    def _engine(self, shard: str) -> Engine:
        """The one connection to a file; ``_db_lock`` lets one thread use it at a time."""
        engine = self._engines.get(shard)
        if engine is None:
            if len(self._engines) >= _MOST:
                self._close()
            options = {"timeout": SQLITE_BUSY_TIMEOUT_SECONDS, "check_same_thread": False}
            engine = create_engine(self.conn_string_for_shard(shard), poolclass=StaticPool, connect_args=options)
            self._engines[shard] = engine
        return engine

    def dispose(self) -> None:
        super().dispose()
        self._close()

    def _close(self) -> None:
        while self._engines:
            self._engines.popitem()[1].dispose()


class KeptSqliteStorage(DagsterSqliteStorage):
    """Dagster's storage in SQLite with ``KeptEventLog``."""

    def __init__(self, base_dir: str, inst_data: Any = None) -> None:
        super().__init__(base_dir, inst_data)
        self._event_log_storage = KeptEventLog(self._event_log_storage._base_dir)

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> Self:
        return cls.from_local(inst_data=inst_data, **config_value)
