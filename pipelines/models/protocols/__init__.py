"""Protocols: how a policy writes code and answers, and how observations are wrapped for it."""

from darkroom.pipelines.models.protocols.markup import Malformed as Malformed, ParsedTurn as ParsedTurn
from darkroom.pipelines.models.protocols.protocol import (
    Protocol as Protocol,
    TurnStream as TurnStream,
    render as render,
)
from darkroom.pipelines.models.protocols.pyvision import PyVision as PyVision
from darkroom.pipelines.models.protocols.thyme import Thyme as Thyme
from darkroom.pipelines.models.protocols.tool_call import ToolCall as ToolCall

PROTOCOLS: dict[str, Protocol] = {protocol.name: protocol for protocol in (Thyme(), PyVision(), ToolCall())}
"""Every protocol by its name, as trajectories record it."""
