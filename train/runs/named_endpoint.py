"""An endpoint that an option of a command names: where nothing answers, the error names the option."""

from pipelines.models.policies import OpenAIPolicy, PolicyUnavailable
from pipelines.models.policies.settings import EndpointSettings


class NamedEndpoint(OpenAIPolicy):
    """A policy behind HTTP whose address was given with ``option``."""

    option = "--url"

    async def check(self) -> None:
        """As ``OpenAIPolicy.check``, which knows of the environment's variables only."""
        import aiohttp

        try:
            await super().check()
        except PolicyUnavailable as error:
            cause = error.__cause__
            if not isinstance(cause, aiohttp.ClientError | TimeoutError):
                raise
            raise PolicyUnavailable(
                f"nothing answers at {self.endpoint.base_url} ({type(cause).__name__}). Start the server there, or "
                f"name the one to use with {self.option}"
            ) from cause


class NamedJudge(NamedEndpoint):
    """A judge behind HTTP."""

    option = f"--judge-url or {EndpointSettings.variables('DARKROOM_JUDGE')['base_url']}"
