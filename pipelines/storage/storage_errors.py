"""Errors of disks and object stores, in one line that says how to mend it."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
from typing import NamedTuple, cast

from darkroom.sandbox.errors import UserError


class StorageError(UserError):
    """A folder or an object store cannot be used: which, why, and what to do. No row is to blame."""


class AnswersPending(UserError):
    """Rows wait for answers that a batch or another process gets: not a failure, and no work is left until then."""

    exit_status = 75
    """As ``sysexits.h`` has it: try again later."""

    def __init__(self, n_rows: int = 1, where: str = "of a batch or another process") -> None:
        super().__init__(f"{n_rows:,} rows wait for answers {where}; run this again when they are there")
        self.n_rows, self.where = n_rows, where


class StoreAway(StorageError):
    """An object store, or the way to it, does not answer: it may later."""


class Store(NamedTuple):
    """Requirements of an object store: an extra of this package, credentials, and where to set another address."""

    extra: str
    credentials: str
    address: str


_S3 = Store("s3", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE", "AWS_ENDPOINT_URL")
_GCS = Store("gcs", "GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST")
AZURE = Store("azure", "AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME and _KEY", "the account's name")
STORES = {"s3": _S3, "s3a": _S3, "gs": _GCS, "gcs": _GCS, "az": AZURE, "abfs": AZURE, "abfss": AZURE, "memory": None}
"""The URLs that a home may have; ``memory`` is one process's own."""

_WHERE = "(DARKROOM_HOME, DARKROOM_LOCAL)"
_DISK = {
    errno.ENOSPC: "free or enlarge the disk",
    errno.EDQUOT: "free some of your quota, or have it raised",
    errno.EROFS: f"it is read-only: choose a folder that can be written {_WHERE}",
    errno.EACCES: f"change its permissions, or choose a folder of yours {_WHERE}",
    errno.ENOTDIR: f"a file stands where a folder is needed: choose another folder {_WHERE}",
    errno.EIO: "check the disk",
}
_DISK |= {errno.EPERM: _DISK[errno.EACCES], errno.EEXIST: _DISK[errno.ENOTDIR]}
_SQLITE = {
    "database or disk is full": "free or enlarge the disk",
    "disk I/O error": "check the disk, and that it is not full",
    "readonly database": "make it and its folder writable",
    "unable to open database file": "make it and its folder writable",
    "database is locked": "wait for the other process, or end it",
}
_NO_NAME = ("invalid bucket name", "parameter validation failed", "specified resource name")
"""What Google's store, S3's client and Azure's store say of a name."""
_NO_BUCKET = ("specified bucket does not exist", "specified container does not exist", "bucket not found")
_NOT_LET_IN = (
    *("credential", "forbidden", "access denied", "unauthorized", "signature", "authenticat", "access key"),
    *("anonymous caller", "not authorized", "config profile", "base64", "invalid_grant", "is disabled"),
)
_CLOCK = ("request time", "request date", "reasonable timeframe")
"""Of Amazon, Azure and Google."""
_FULL = ("quotaexceeded", "quota exceeded", "insufficient storage", "storage is full", "free drive threshold")
"""Of Ceph, MinIO and Google; Amazon's and Azure's own stores do not fill up."""
DATABASES = frozenset({"sqlalchemy", "sqlite3", "psycopg", "alembic"})
"""Packages whose errors are a database's."""
_DAMAGED = frozenset({"ArrowInvalid", "ComputeError"})
"""What pyarrow and polars raise of a file that is no parquet file, or was cut off."""
CLIENTS = frozenset({"botocore", "aiobotocore", "s3fs", "gcsfs", "google", "adlfs", "azure", "aiohttp"})
"""Packages whose errors are the store's, whatever their class."""


def no_bucket(where: str) -> StorageError:
    return StorageError(f"{where}: its bucket does not exist. Create it, or correct the URL")


def no_store(where: str) -> StorageError:
    store = STORES.get(where.partition("://")[0])
    address = store.address if store else "its address"
    return StorageError(f"{where}: what answers at {address} is no object store. Correct the address or its port")


def replaced_while_read(where: str) -> StorageError:
    return StorageError(f"{where} was replaced by another process while it was read: run again")


@contextmanager
def storage_errors(where: str, *, writes: bool = False) -> Iterator[None]:
    """Errors of the disk or the store at ``where``, raised within, are ``StorageError``; a missing file in a bucket
    that is there stays a ``FileNotFoundError``. ``writes``: within is an upload alone, which needs only the bucket."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ == "FileExpired":  # of S3's client, by entity tags
            raise replaced_while_read(where) from error
        if writes and isinstance(error, FileNotFoundError):
            raise no_bucket(where) from error
        # of the reason why Google gives no token, its client says "Invalid Credentials" alone
        is_token = type(error.__cause__).__name__ == "RefreshError"
        explained = _explained(where, cast(Exception, error.__cause__) if is_token else error)
        if explained is None:
            raise
        raise explained from error


def _explained(where: str, error: Exception) -> StorageError | None:
    """None: it is none of the disk's or the store's errors."""
    protocol, is_url, _ = where.partition("://")
    if type(error).__name__ in _DAMAGED:
        reason = str(error).splitlines()[0].rstrip(".")
        return StorageError(f"{where} is damaged ({reason}). To do: delete it, and run the command again that makes it")
    if not is_url or protocol in ("file", "local"):
        message = disk_message(where, error) if isinstance(error, OSError) else None
        return StorageError(message) if message else None
    store = STORES.get(protocol)
    reason = (str(error).splitlines() or [""])[0].rstrip(".") or type(error).__name__
    if isinstance(error, ImportError):
        package = f"'darkroom-toolkit[{store.extra}]'" if store else f"the fsspec package of {protocol}://"
        return StorageError(f"{where} needs a package that is not installed. Run: pip install {package}")
    if isinstance(error, ValueError) and "rotocol" in reason:
        protocols = ", ".join(STORES)
        return StorageError(f"{where}: there is no store {protocol}://. Use a folder, or a URL with {protocols}")
    if isinstance(error, ValueError) and "unable to connect to account" in reason:  # Azure's, of credentials
        return _not_let_in(where, reason, store)
    if store and isinstance(error, ValueError) and "nvalid endpoint" in reason:  # S3's
        return StorageError(f"{where}: {reason}. Write http://HOST:PORT or https://HOST in {store.address}")
    if isinstance(error, RecursionError):
        modules = (str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__))
        if any(module.split(".")[0] in CLIENTS for module in modules):
            return no_store(where)  # S3's client follows a redirect that names no other place for ever
    if isinstance(error, OSError) or type(error).__module__.split(".")[0] in CLIENTS:
        return _answer_of_store(where, error, reason, store)
    return None


def disk_message(where: str, error: OSError) -> str | None:
    """Advice for a disk's error; None for any other."""
    mend = _DISK.get(error.errno or 0)
    return mend and f"cannot use {where}: {error.strerror}. To do: {mend}"


def sqlite_mend(reason: str) -> str | None:
    """Advice where SQLite cannot use a file that may be sound; None for other errors."""
    return next((mend for words, mend in _SQLITE.items() if words in reason), None)


def _answer_of_store(where: str, error: Exception, reason: str, store: Store | None) -> StorageError | None:
    message = str(error).lower()
    if any(words in message for words in _NO_BUCKET):
        return no_bucket(where)
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError | FileExistsError):
        return None
    if any(words in message for words in _NO_NAME):
        return StorageError(f"{where}: no bucket can have this name. Correct the URL")
    if any(words in message for words in _CLOCK):
        return StorageError(f"{where} refuses this machine's clock: {reason}. To do: set the clock (NTP)")
    if any(words in message for words in _FULL):
        return StorageError(f"{where} is full: {reason}. To do: free or enlarge the store, then run again")
    if isinstance(error, PermissionError) or any(words in message for words in _NOT_LET_IN):
        return _not_let_in(where, reason, store)
    network = f"check the network and {store.address}" if store else "check the network"
    return StoreAway(f"cannot use {where}: {reason}. To do: {network}, then run again: finished work is kept")


def _not_let_in(where: str, reason: str, store: Store | None) -> StorageError:
    credentials = f"; set {store.credentials}" if store else ""
    return StorageError(f"{where} does not let you in: {reason}. To do: check credentials and rights{credentials}")
