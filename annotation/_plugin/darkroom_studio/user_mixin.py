"""Blind rounds through Label Studio's USER_MIXIN hook: who is not staff sees only their own annotations on a task."""

from __future__ import annotations

from users.mixins import UserMixin as Base


class UserMixin(Base):
    """Annotators in Label Studio's own sense of the word."""

    @property
    def is_annotator(self) -> bool:
        """Everybody but staff."""
        return not self.is_staff
