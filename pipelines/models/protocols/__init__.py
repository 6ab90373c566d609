"""Protocols: how a policy writes code and answers, and how observations are wrapped for it."""

from pipelines.models.protocols.base import Protocol, TurnStream, render
from pipelines.models.protocols.markup import Malformed, ParsedTurn
from pipelines.models.protocols.pyvision import PyVision
from pipelines.models.protocols.thyme import Thyme
from pipelines.models.protocols.tool_call import ToolCall

PROTOCOLS: dict[str, Protocol] = {protocol.name: protocol for protocol in (Thyme(), PyVision(), ToolCall())}
"""Every protocol by its name, as trajectories record it."""

__all__ = ["PROTOCOLS", "Malformed", "ParsedTurn", "Protocol", "PyVision", "Thyme", "ToolCall", "TurnStream", "render"]
