"""How the host interrupts code whose time is up, and leaves the session's state whole."""

import signal

from sandbox._guest.config import INTERRUPT


class Interrupted(BaseException):
    """Raised inside the code; not an Exception, so that `except Exception` does not swallow it."""


class Interruption:
    """Lets the host interrupt the code, once a call. `fired` stays true where it was swallowed, as by a finaliser."""

    def __enter__(self) -> None:
        self.fired, self._armed = False, True
        signal.signal(INTERRUPT, self._interrupt)  # anew for each call: the code may have changed it

    def __exit__(self, *_: object) -> None:
        self._armed = False

    def _interrupt(self, _number: int, _frame: object) -> None:
        if self._armed:  # else it comes too late: the code has ended
            self.fired, self._armed = True, False
            raise Interrupted
