"""The one error of this package."""


class ServingFault(Exception):
    """A server cannot be started, or did not stay up: says what was found and what to do."""
