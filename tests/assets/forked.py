"""A program that says where and with what it runs, then does what its word says."""

import atexit
import os
import signal
import sys
import time
from pathlib import Path

print(os.getppid(), os.getpid(), Path.cwd(), os.environ.get("WORD"), "HOME" in os.environ, *sys.argv[1:], flush=True)
if sys.argv[1] == "says":
    atexit.register(print, "at its exit")  # on a buffer that is written after that
if sys.argv[1] == "fails":
    sys.exit(3)
if sys.argv[1] == "waits":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    print("ready", flush=True)
    for _ in range(6000):
        time.sleep(0.1)
