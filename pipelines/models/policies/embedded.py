"""The embedded policy: scripted turns from the ground truth, so that the whole graph runs without a model or a key.

Its turns go through the same protocol, sandbox and checks as any other policy's, and the provenance of its rows names
the oracle. A package registers the script of a family as an entry point:

    [project.entry-points."darkroom.oracles"]
    crop = "darkroom.pipelines.demo.oracle.image_scripts:crop"
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import cast

from darkroom.pipelines.models.policies.policy import Completion, CompletionRequest, PolicyIdentity, PolicyUnavailable
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.stage_runs import code_digest, file_version
from darkroom.pipelines.storage.user_files import loaded

Script = Callable[[CompletionRequest], str]
"""The next turn, as text in the protocol; a pure function of the turn's task, rounds and seed."""

ORACLES = "darkroom.oracles"
"""The group of entry points: the script of each family, by name."""

RL_STAGES = "rl-stages"
"""The entry point that answers for all RL stages; no family can have this name."""

SCRIPTS_CODE = (
    "darkroom.pipelines.generation.operation_planning",
    "darkroom.pipelines.generation.recipes",
    "darkroom.pipelines.models.protocols",
    "darkroom.pipelines.models.tasks",
    "darkroom.pipelines.records",
    "darkroom.pipelines.vision",
)
"""Code that scripts use: a change gives the embedded policy another revision."""


class OraclePolicy:
    """Returns the turns of ``script``. ``revision`` is the digest of the script's source."""

    concurrency = 8

    def __init__(self, script: Script, *, revision: str) -> None:
        self._script = script
        self.identity = PolicyIdentity("oracle", "oracle", revision)

    async def check(self) -> None:
        """Always available."""

    async def write(self, request: CompletionRequest) -> Completion:
        return Completion(self._script(request))

    async def close(self) -> None:
        """Nothing to close."""


@cache
def oracles() -> Mapping[str, EntryPoint]:
    """The registered scripts by family, none of them imported yet."""
    return {entry.name: entry for entry in entry_points(group=ORACLES)}


def oracle_script(family: str) -> Script:
    """The script of a family. Raises ``PolicyUnavailable`` where no package registers one."""
    if family not in oracles():
        mend = "set DARKROOM_POLICY=openai, DARKROOM_POLICY_URL and DARKROOM_POLICY_MODEL"
        raise PolicyUnavailable(f"the embedded policy has no script for the family {family!r}: {mend}")
    return cast(Script, loaded(oracles()[family], PolicyUnavailable))


def oracle_policy(family: str, *, revision: str = "") -> OraclePolicy:
    """The embedded policy for a family; ``revision`` is the recipe's. Raises ``PolicyUnavailable`` without a script."""
    script = oracle_script(family)
    module = Path(str(sys.modules[oracles()[family].module].__file__))
    code = [code_digest(*SCRIPTS_CODE), file_version(module)]
    return OraclePolicy(script, revision=digest([revision, family, code]))
