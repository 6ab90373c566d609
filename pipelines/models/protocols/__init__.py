"""Protocols: how a policy writes code and answers, and how observations are wrapped for it."""

from darkroom.pipelines.models.protocols.markup import Malformed, ParsedTurn
from darkroom.pipelines.models.protocols.protocol import Protocol, TurnStream, render
from darkroom.pipelines.models.protocols.pyvision import PyVision
from darkroom.pipelines.models.protocols.thyme import Thyme
from darkroom.pipelines.models.protocols.tool_call import ToolCall

PROTOCOLS: dict[str, Protocol] = {protocol.name: protocol for protocol in (Thyme(), PyVision(), ToolCall())}
"""Every protocol by its name, as trajectories record it."""

__all__ = ["PROTOCOLS", "Malformed", "ParsedTurn", "Protocol", "PyVision", "Thyme", "ToolCall", "TurnStream", "render"]
