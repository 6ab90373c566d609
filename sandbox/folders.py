"""Removes what a session left in its folder on the host (the lite tier), however deep it is nested."""

import os
import stat
from collections import deque
from contextlib import suppress
from itertools import count


def remove_tree(folder: str) -> None:
    """Delete the folder and what is below it; links are not followed. What cannot be deleted stays.

    `shutil.rmtree` recurses once per level, and code can nest folders deeper than Python's stack or any path is long:
    here a folder within a folder is first moved to the top.
    """
    numbers = count()
    waiting = deque([folder])
    while waiting:
        _empty(waiting.popleft(), folder, waiting, numbers)
    with suppress(OSError):
        os.rmdir(folder)


def _empty(folder: str, top: str, waiting: "deque[str]", numbers: "count[int]") -> None:
    """Delete the files; folders go to the top, to be emptied in their turn."""
    with suppress(OSError):
        for name in os.listdir(folder):
            path = f"{folder}/{name}"
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                os.unlink(path)
            elif folder == top:
                waiting.append(path)
            else:
                waiting.append(_moved_up(path, top, numbers))
    if folder != top:
        with suppress(OSError):
            os.rmdir(folder)


def _moved_up(path: str, top: str, numbers: "count[int]") -> str:
    target = f"{top}/.removed-{next(numbers)}"
    while os.path.lexists(target):
        target = f"{top}/.removed-{next(numbers)}"
    os.rename(path, target)
    return target
