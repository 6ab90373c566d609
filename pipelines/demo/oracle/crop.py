"""The oracle of ``crop``: a crop of the target, then what it shows."""

from functools import partial
from random import Random

from pipelines.demo import data_beside
from pipelines.demo.oracle.family_script import answer_turn, crop_turn, family_script, one_of_each
from pipelines.models.policies.base import CompletionRequest
from pipelines.models.protocols import Thyme

_SAYS = data_beside(__file__)


def _look(turn: CompletionRequest) -> str:
    rng = Random(turn.task.seed)
    return crop_turn(turn, "region", rng, one_of_each(rng, _SAYS["why"], _SAYS["then"]))


script = family_script(_look, partial(answer_turn, protocol=Thyme(), phrases=_SAYS["shows"]))
