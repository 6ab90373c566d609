"""The one error of this package's border."""


class SourceFault(Exception):
    """A source as a whole is wrong: a file that is not there, a mapping that does not fit. No row can be read."""
