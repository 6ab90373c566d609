"""What can go wrong with the sandbox itself; what goes wrong in the model's code is an `Observation`.

SandboxError
├── SandboxUnavailable   this machine cannot give the protection that was asked for
├── SandboxClosed        the pool, group or session was closed, or its process ended
├── ImageUnreadable      an input image could not be decoded
└── ProtocolViolation    a session sent bytes that are not a reply; never leaves the package
"""


class UserError(Exception):
    """What a user can fix, in any package: commands print its message and exit with status 1."""


class SandboxError(Exception):
    """Every error that this package raises on purpose."""


class SandboxUnavailable(SandboxError, UserError):
    """A protection is missing; the message names it, the reason and the remedy. Nothing was started."""


class SandboxClosed(SandboxError):
    """The pool, group or session was closed, or its process ended."""


class ImageUnreadable(SandboxError):
    """An input image could not be decoded; the others of the group may be fine."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(f"image {index} cannot be decoded: {reason}")
        self.index = index
        self.reason = reason


class ProtocolViolation(SandboxError):
    """A session sent bytes that are not a reply; the session becomes `protocol` and is killed."""
