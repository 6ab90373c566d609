"""How much one session may use."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one session. Seconds are wall clock; a mebibyte is 2**20 bytes."""

    seconds: float = 10.0
    """Time for one call (Thyme allows ten). Then the code is interrupted, and the session keeps its state."""
    grace: float = 1.0
    """Time after `seconds` in which code that swallows the interruption must still end; then the session is killed."""
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
    reply_mb: int = 96
    """Raw pixels that one observation may carry, three bytes each."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value <= 0:
                raise ValueError(f"Limits.{name} must be positive, found {value}")
