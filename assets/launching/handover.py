"""A job that somebody else starts: it is known by what it reports, by its signs of life, and by its last words."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from assets.launching.job import Ending, LaunchFault
from train.exchange import Exchange

SILENT_SECONDS = 600.0
"""A job that has begun and gives no sign of life for so long is taken for dead; it gives one every two seconds."""
_LEFT_SECONDS = 30.0
_STOP_SECONDS = 20.0
_N_WORDS = 2000


class HandedOverJob:
    """A job whose file waits for somebody to start it with ``start_with``."""

    def __init__(self, exchange: Exchange, *, start_with: str, wait_hours: float) -> None:
        self._exchange, self.start_with = exchange, start_with
        self._deadline = time.monotonic() + 3600 * wait_hours
        self._sign, self._seen = "", time.monotonic()

    @property
    def where(self) -> str:
        """How it is started."""
        return f"handed over: {self.start_with}"

    def ended(self, *, closed: bool) -> Ending | None:
        """By its words; failed, too, when nobody started it in time, and when it has fallen silent."""
        words = self._exchange.last_words()
        if closed or words:
            return Ending(not words, words)
        sign, now = _text(self._exchange.alive), time.monotonic()
        if sign != self._sign:
            self._sign, self._seen = sign, now
        if not sign and now >= self._deadline:
            return Ending(
                False,
                f"nobody has started the job yet. Start it with\n\n    {self.start_with}\n\nand materialise the asset "
                "again: what the job reports is kept, and taken in.",
                can_be_taken_over=True,
            )
        if sign and now - self._seen > SILENT_SECONDS:
            return Ending(False, f"the job gave no sign of life for {SILENT_SECONDS:.0f} s. {self._log()}")
        return None

    def stop(self) -> None:
        """Leaves word that the program is to end; waits a moment for it to do so if it runs."""
        self._exchange.stop.touch()
        deadline = time.monotonic() + _STOP_SECONDS
        running = self._exchange.alive.exists()
        while running and not self._exchange.last_words() and time.monotonic() < deadline:
            time.sleep(0.5)

    def _log(self) -> str:
        logs = sorted(self._exchange.folder.glob("log-*"))
        return f"The end of {logs[-1]}:\n{_text(logs[-1])[-_N_WORDS:]}" if logs else ""


class SlurmJob(HandedOverJob):
    """A job that was given to Slurm here, so that its state is known and it can be cancelled."""

    def __init__(self, exchange: Exchange, job_id: str) -> None:
        super().__init__(exchange, start_with="sbatch", wait_hours=float("inf"))
        self.job_id, self._left = job_id, float("inf")

    @property
    def where(self) -> str:
        """The job's number."""
        return f"Slurm job {self.job_id}"

    def ended(self, *, closed: bool) -> Ending | None:
        """By its words; a job that has left the queue has a moment for its last ones."""
        if (said := super().ended(closed=closed)) is not None:
            return said
        if _is_queued(self.job_id):
            return None
        self._left = min(self._left, time.monotonic())
        if time.monotonic() - self._left < _LEFT_SECONDS:
            return None
        return Ending(False, f"{self.where} left the queue without a word. {self._log()}")

    def stop(self) -> None:
        """``scancel``; Slurm ends all that the job started."""
        _slurm("scancel", self.job_id)
        deadline = time.monotonic() + _STOP_SECONDS
        while _is_queued(self.job_id) and time.monotonic() < deadline:
            time.sleep(0.5)


def submit_to_slurm(script: Path) -> str:
    """Gives a script to Slurm; the job's number. Raises ``LaunchFault``."""
    return _slurm("sbatch", "--parsable", str(script)).partition(";")[0].strip()


def job_of(script: Path) -> str:
    """The number of the job that waits or runs with a script; empty when there is none. Raises ``LaunchFault``."""
    lines = _slurm("squeue", "--noheader", "--format", "%i %o").splitlines()
    jobs = {command: number for number, _, command in (line.strip().partition(" ") for line in lines)}
    return jobs.get(str(script), "")


def _is_queued(job_id: str) -> bool:
    command = ["squeue", "--noheader", "--jobs", job_id, "--format", "%T"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # Slurm forgets jobs that ended a while ago, and then knows no such number
    return bool(done.stdout.strip()) or (done.returncode != 0 and "Invalid job id" not in done.stderr)


def _slurm(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError as fault:
        raise LaunchFault(
            f"there is no {command[0]} on this machine: set `submit` off (DARKROOM_LAUNCH_SUBMIT=0), and start the "
            "written script where Slurm is"
        ) from fault
    except subprocess.CalledProcessError as fault:
        raise LaunchFault(f"{' '.join(command)}: {fault.stderr.strip()}") from fault


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""
