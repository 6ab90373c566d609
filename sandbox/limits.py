"""Limits of one session."""

from dataclasses import dataclass

_WALL_CEILING = 10.0
_DECODE_SECONDS = 30.0
"""Charged per image, of which the largest take one or two; a call's `seconds` are meant for the code."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one session; a mebibyte is 2**20 bytes."""

    seconds: float = 10.0
    """What one call may be charged (Thyme allows ten): the CPU time of its threads, or the wall clock less its waiting
    for a CPU, whichever is more (`clock`). Then the code is interrupted, and the session keeps its state."""
    grace: float = 1.0
    """Charged after the interruption to code that swallows it; then the session is killed."""
    wall_seconds: float | None = None
    """Ceiling of a call by the wall clock. None: ten times `seconds`. A call that reaches it for want of a CPU is no
    verdict on the code: its session is `lost`."""
    memory_mb: int = 1024
    """Address space beyond what the warm libraries already hold."""
    disk_mb: int = 64
    files: int = 512
    file_mb: int = 32
    """Largest single file."""
    output_chars: int = 16_384
    """Characters of output that an observation keeps: three quarters from the head, the rest from the tail."""
    max_images: int = 8
    max_pixels: int = 50_000_000
    """Largest image, in pixels: of the input, of the code's own and of an observation."""
    input_mb: int = 512
    """Files of a group's images and videos together; in the sandbox they are in memory."""
    input_pixels: int = 200_000_000
    """Pixels of a group's images together, decoded for all of its sessions: seven to ten bytes of memory each."""
    reply_mb: int = 96
    """Raw pixels that one observation may carry, three bytes each."""

    def __post_init__(self) -> None:
        for name in ("seconds", "grace", "wall_seconds"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, float(value))  # 10 and 10.0 are one limit, and have one digest
        for name, value in vars(self).items():
            if value is not None and value <= 0:
                raise ValueError(f"Limits.{name} must be positive, found {value}")
        if self.wall_seconds is not None and self.wall_seconds < self.seconds:
            raise ValueError(f"Limits.wall_seconds is {self.wall_seconds}, below seconds ({self.seconds})")

    @property
    def wall_ceiling(self) -> float:
        """Most seconds by the wall clock per second charged."""
        return _WALL_CEILING if self.wall_seconds is None else self.wall_seconds / self.seconds

    def for_decoding(self, n_images: int) -> "Limits":
        """Limits for decoding a group's images, in `seconds`."""
        return Limits(seconds=max(self.seconds, _DECODE_SECONDS) * max(n_images, 1))

    @property
    def most_wall_seconds(self) -> float:
        """After which a call is given up, grace included."""
        return (self.seconds + self.grace) * self.wall_ceiling
