"""Disks and stores that cannot be used: one line that says how to mend it."""

from __future__ import annotations

import errno
import os

import pytest

from pipelines.generation.stage import row_error
from pipelines.storage.atomic_write import write_whole
from pipelines.storage.storage_errors import StorageError, storage_errors


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


def test_a_clock_that_is_wrong_is_said():
    skewed = PermissionError("The difference between the request time and the server's time is too large.")
    with pytest.raises(StorageError, match=r"refuses this machine's clock.*set the clock"), storage_errors("s3://b"):
        raise skewed


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
