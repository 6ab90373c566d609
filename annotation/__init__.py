"""Human annotation in Label Studio: a server of its own, rounds (annotate -> cross-check -> accept), quality.
Submissions lie in a journal before anything is made of them; everything else is derived from there."""

from darkroom.sandbox.errors import UserError


class AnnotationError(UserError):
    """The server, the campaign or the journal is not as it must be: what was found, and what to do."""


class FormChanged(AnnotationError):
    """The form of a project is not ours."""


class ServerUnreachable(AnnotationError):
    """The server does not answer, or answers 5xx: what is done is kept, and the next sync goes on."""
