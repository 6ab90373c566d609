"""Human annotation in Label Studio: a server of its own, rounds (annotate -> cross-check -> accept), quality.

    darkroom annotate up            a server, installed, migrated and started
    darkroom annotate users add     annotators and experts
    darkroom annotate sync          what people did comes in, what they can do next goes out

What people submitted lies in a journal before anything is made of it; everything else is derived from there.
"""

from sandbox.errors import UserError


class AnnotationError(UserError):
    """The server, the campaign or the journal is not as it must be: what was found, and what to do."""


class ServerUnreachable(AnnotationError):
    """The server does not answer, or answers 5xx: what is done is kept, and the next sync goes on."""
