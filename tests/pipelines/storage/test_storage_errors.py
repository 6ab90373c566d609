"""Disks and stores that cannot be used: one line that says how to mend it."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import pytest

from darkroom.pipelines.generation.stage import row_error
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.storage_errors import StorageError, StoreAway, storage_errors
from darkroom.pipelines.storage.store_paths import reach, store_path
from tests.json_endpoint import endpoint


@pytest.mark.parametrize(
    ("number", "mend"),
    [(errno.ENOSPC, "free or enlarge the disk"), (errno.EROFS, "read-only"), (errno.EACCES, "change its permissions")],
)
def test_a_disk_that_cannot_be_written_is_said_in_one_line(number, mend):
    with (
        pytest.raises(StorageError, match=rf"^cannot use /data/x: {os.strerror(number)}\. To do: .*{mend}"),
        storage_errors("/data/x"),
    ):
        raise OSError(number, os.strerror(number), "/data/x/y")


@pytest.mark.parametrize("error", [FileNotFoundError(2, "none"), KeyError("x"), OSError("cannot identify image")])
def test_errors_of_others_stay_what_they_are(error):
    with pytest.raises(type(error)) as caught, storage_errors("/data"):
        raise error
    assert caught.value is error


@pytest.mark.parametrize(
    "reason",
    [
        "The difference between the request time and the server's time is too large.",
        "Server failed to authenticate the request.\nAuthenticationErrorDetail:Request date header too old: 'Thu'",
        "('invalid_grant: Invalid JWT: Token must be a short-lived token and in a reasonable timeframe.', {})",
    ],
)
def test_a_clock_that_is_wrong_is_said(reason):
    message = r"^s3://b refuses this machine's clock.*set the clock"
    with pytest.raises(StorageError, match=message) as raised, storage_errors("s3://b"):
        raise PermissionError(reason)
    assert "\n" not in str(raised.value)


class RefreshError(Exception):
    """As Google's, whose library is in no developer's environment."""

    __module__ = "google.auth.exceptions"


def test_why_google_gives_no_token_is_said():
    message = r"^gs://b does not let you in: .*Invalid JWT Signature"
    with pytest.raises(StorageError, match=message), storage_errors("gs://b"):
        raise OSError("Invalid Credentials, 401") from RefreshError("invalid_grant: Invalid JWT Signature.")


@pytest.mark.parametrize(
    ("variable", "value", "url", "mend"),
    [
        ("AWS_ENDPOINT_URL", "localhost:9000", "s3://bucket/home", r"Invalid endpoint: .* Write http://HOST:PORT or"),
        (
            "AWS_PROFILE",
            "nobody",
            "s3://bucket/home",
            r"does not let you in: The config profile \(nobody\).*AWS_PROFILE$",
        ),
        (
            "AWS_ENDPOINT_URL",
            "http://127.0.0.1:9",
            "s3://No_Bucket!/x",
            "no bucket can have this name. Correct the URL$",
        ),
    ],
)
def test_settings_of_a_store_that_cannot_be_right_are_said_at_once(variable, value, url, mend, s3, monkeypatch):
    monkeypatch.setenv(variable, value)
    clients = store_path("s3://any/home").fs
    clients.clear_instance_cache()
    with pytest.raises(StorageError, match=mend) as raised:
        reach(store_path(url))
    clients.clear_instance_cache()
    assert "\n" not in str(raised.value)
    assert not isinstance(raised.value, StoreAway)


@pytest.mark.parametrize(
    ("url", "error", "mend"),
    [
        ("az://b", ValueError("unable to connect to account for Connection string is malformed"), "AZURE_STORAGE_CONN"),
        ("gs://b", OSError("Forbidden: b/b/o\nno right to list"), "GOOGLE_APPLICATION_CREDENTIALS"),
        ("gs://b", OSError("Anonymous caller does not have storage.objects.list access, 401"), "GOOGLE_APPLICATION"),
    ],
)
def test_who_is_not_let_in_reads_which_credentials_to_set(url, error, mend):
    with (
        pytest.raises(StorageError, match=rf"^{url} does not let you in: .* set {mend}") as raised,
        storage_errors(url),
    ):
        raise error
    assert "\n" not in str(raised.value)


def test_a_store_that_asks_for_fewer_requests_is_not_taken_for_one_where_an_object_was_replaced():
    busy = OSError(errno.EBUSY, "Please reduce your request rate.")
    with (
        pytest.raises(StorageError, match=r"reduce your request rate.*then run again") as raised,
        storage_errors("s3://b"),
    ):
        raise busy
    assert "replaced" not in str(raised.value)


def test_an_upload_to_a_bucket_that_is_gone_is_said():
    gone = pytest.raises(StorageError, match=r"^gs://b: its bucket does not exist\. Create it")
    with gone, storage_errors("gs://b", writes=True):
        raise FileNotFoundError("b/b/o")


@contextmanager
def s3_at(handler, monkeypatch):
    """S3's client talks to the handler."""
    with endpoint(handler) as address:
        variables = {
            "ENDPOINT_URL": address.removesuffix("/v1"),
            "ACCESS_KEY_ID": "tests",
            "SECRET_ACCESS_KEY": "tests",
            "DEFAULT_REGION": "us-east-1",
        }
        for name, value in variables.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        store_path("s3://any/home").fs.clear_instance_cache()
        try:
            yield
        finally:
            store_path("s3://any/home").fs.clear_instance_cache()


REFUSALS = {
    "AccessDenied": ("Access Denied", r"does not let you in: .*check credentials and rights"),
    "QuotaExceeded": ("", r"is full: .*QuotaExceeded.*\. To do: free or enlarge the store, then run again$"),
    "XMinioStorageFull": (
        "Storage backend has reached its minimum free drive threshold.",
        r"is full: .* To do: free or enlarge the store, then run again$",
    ),
}


@pytest.mark.parametrize("code", REFUSALS)
def test_a_store_that_refuses_writes_or_is_full_is_said(code, monkeypatch):
    message, words = REFUSALS[code]

    class Refuses(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # the client asks whether it may go on

        def do_PUT(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
            self.send_response(403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with s3_at(Refuses, monkeypatch), pytest.raises(StorageError, match=rf"^s3://bucket/home/rows {words}") as raised:
        write_whole(store_path("s3://bucket/home/rows"), "rows")
    # a stage does not wait for it as for a store that is away
    assert not isinstance(raised.value, StoreAway)


@pytest.mark.parametrize("status", [200, 301])
def test_a_web_server_in_the_place_of_a_store_is_said(status, monkeypatch):
    class Console(BaseHTTPRequestHandler):
        def do_GET(self):
            body = b"<!DOCTYPE html><title>Console</title>"
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    message = r"^s3://bucket/home: what answers at AWS_ENDPOINT_URL is no object store\. Correct the address"
    with s3_at(Console, monkeypatch), pytest.raises(StorageError, match=message):
        reach(store_path("s3://bucket/home"))


def test_a_recursion_of_others_is_not_the_stores():
    def endless():
        endless()

    with pytest.raises(RecursionError), storage_errors("s3://bucket/home"):
        endless()


def test_a_file_in_the_place_of_a_folder_is_said(tmp_path):
    (tmp_path / "home").write_text("")
    with pytest.raises(StorageError, match="a file stands where a folder is needed"):
        write_whole(tmp_path / "home" / "below" / "file", "")


def test_a_disk_that_is_full_is_said(tmp_path):
    full = pytest.raises(StorageError, match="No space left on device")
    with full, storage_errors(str(tmp_path)), open("/dev/full", "w") as file:
        file.write("x")


def test_a_disk_that_is_full_is_no_fault_of_the_row():
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(StorageError, match=r"^cannot use a disk of this machine: No space left .* enlarge the disk$"):
        row_error(full)
