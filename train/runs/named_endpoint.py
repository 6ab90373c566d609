"""An endpoint that an option of a command names: where nothing answers, the error names the option."""

from darkroom.pipelines.models.policies import OpenAIPolicy
from darkroom.pipelines.models.policies.settings import EndpointSettings


class NamedEndpoint(OpenAIPolicy):
    """A policy behind HTTP whose address was given with ``--url``."""

    another = "name the one to use with --url"


class NamedJudge(OpenAIPolicy):
    """A judge behind HTTP."""

    another = f"name the one to use with --judge-url or {EndpointSettings.variables('DARKROOM_JUDGE')['base_url']}"
