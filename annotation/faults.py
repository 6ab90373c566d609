"""What can go wrong at this package's border, as one exception for people and one for rows."""


class AnnotationFault(Exception):
    """The server, the campaign or the journal is not as it must be: what was found, and what to do."""


class ServerUnreachable(AnnotationFault):
    """The server does not answer, or answers 5xx: what is done is kept, and the next sync goes on."""
