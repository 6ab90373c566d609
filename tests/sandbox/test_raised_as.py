"""An error of certain kinds is raised as another one, which has it as its cause."""

import pytest

from darkroom.sandbox.errors import UserError, raised_as


def test_an_error_of_these_kinds_is_the_cause_of_the_one_that_is_made() -> None:
    with (
        pytest.raises(UserError, match="x cannot be read: 'gone'") as raised,
        raised_as(lambda error: UserError(f"x cannot be read: {error}"), ValueError, LookupError),
    ):
        {}["gone"]
    assert isinstance(raised.value.__cause__, KeyError)


def test_an_error_of_another_kind_stays() -> None:
    with pytest.raises(TypeError, match="other"), raised_as(UserError, ValueError):
        raise TypeError("other")
