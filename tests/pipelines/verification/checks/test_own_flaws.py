"""A family's own reasons for which a check says no."""

import pytest

from darkroom.pipelines.verification.checks import Flaw, OwnFlaw, check
from darkroom.pipelines.verification.checks.check import decided, failed
from darkroom.sandbox.errors import UserError

NOT_MIRRORED = OwnFlaw("not_mirrored")


@check()
def mirrored_back(case):
    """The image is mirrored back."""
    return failed(NOT_MIRRORED, "it is not")


@check()
def drawn(case):
    """Drawn."""
    return decided(False, OwnFlaw("not_sketched"), "no pencil")


def test_it_is_stored_as_its_name(make_case):
    assert [each(make_case()).reason for each in (mirrored_back, drawn)] == ["not_mirrored", "not_sketched"]
    assert all(type(each(make_case()).reason) is str for each in (mirrored_back, drawn))


@pytest.mark.parametrize("name", ["", "Not_mirrored", "not mirrored", "1st", "x" * 41, "a\nb", "spiegel_verkehrt_ß"])
def test_another_spelling_is_an_error_that_shows_the_right_one(name):
    with pytest.raises(UserError, match="'not_mirrored'"):
        OwnFlaw(name)


def test_what_there_is_already_is_not_named_anew():
    with pytest.raises(UserError, match=r"Flaw\.NOT_UPRIGHT"):
        OwnFlaw(Flaw.NOT_UPRIGHT.value)
