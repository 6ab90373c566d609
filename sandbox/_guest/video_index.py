"""Where each frame of a video is: the time stamps of its packets, read once and without decoding anything.

Frame i is the i-th in the order of presentation, whatever the order in the file. What a player never shows does not
count: packets that an edit list cuts off, VP8's hidden reference pictures, and whatever precedes the first key frame,
since it cannot be decoded.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from av.packet import Packet
from av.video.stream import VideoStream

_VP8_SHOWN = 0x10


class KeyPacket(NamedTuple):
    """A place where decoding can start."""

    pts: int
    dts: int | None
    frame: int
    """Its number; where an edit list hides it, the first frame after it."""


@dataclass(frozen=True)
class FrameIndex:
    """Times are in units of the stream's time base."""

    pts: "array[int]"
    """Ascending. Equal ones are different frames."""
    durations: "array[int]"
    keys: list[KeyPacket]
    """Ascending by pts, never empty where there are frames."""
    numbers: dict[int, int] | None = None
    """From a packet's time to its frame, where the order of these times is not that of the frames."""

    def __len__(self) -> int:
        return len(self.pts)

    def number_of(self, pts: int | None, after: int) -> int | None:
        """The frame with this time; `after` is the one decoded before it, which tells frames of equal time apart."""
        if pts is None:
            return None
        if self.numbers is not None:
            return self.numbers.get(pts)
        number = bisect_left(self.pts, pts)
        if number <= after < len(self) - 1 and self.pts[after] == pts:
            number = after + 1
        return number if number < len(self) and self.pts[number] == pts else None

    def starts_for(self, number: int) -> list[KeyPacket]:
        """Where to start for a frame: the key frame at or before it, then the one before that.

        In order of presentation: a picture that is stored after a key frame but shown before it needs the key before.
        """
        last = bisect_right(self.keys, number, key=lambda key: key.frame)
        return self.keys[max(last - 2, 0) : last][::-1]

    def in_order_of(self, shown: Iterable[int | None]) -> "FrameIndex":
        """The same packets, where only the decoder knows the order: `shown` is the times of its pictures."""
        numbers = {pts: number for number, pts in enumerate(pts for pts in shown if pts is not None)}
        keys = [key._replace(frame=numbers[key.pts]) for key in self.keys if key.pts in numbers]
        return FrameIndex(array("q", sorted(numbers)), self.durations[: len(numbers)], keys, numbers)


def read_index(packets: Iterable["Packet[VideoStream]"], codec: str) -> FrameIndex:
    """Raises ValueError where packets carry no time: there is then no telling which frame is which."""
    shown = list[tuple[int, int]]()
    keys = list[tuple[int, int | None]]()
    for packet in packets:
        if packet.pts is None:
            raise ValueError("its pictures carry no times (a raw stream): put it into a container such as mp4 or mkv")
        if packet.is_keyframe:
            keys.append((packet.pts, packet.dts))
        if keys and packet.pts >= keys[0][0] and not packet.is_discard and not _is_hidden(packet, codec):
            shown.append((packet.pts, packet.duration or 0))
    shown.sort(key=lambda times: times[0])  # stable: equal times stay in the order of the file
    pts = array("q", (time for time, _ in shown))
    key_packets = [KeyPacket(time, dts, bisect_left(pts, time)) for time, dts in keys]
    return FrameIndex(
        pts, array("q", (duration for _, duration in shown)), sorted(key_packets, key=lambda key: key.pts)
    )


def _is_hidden(packet: "Packet[VideoStream]", codec: str) -> bool:
    return codec == "vp8" and not memoryview(packet)[0] & _VP8_SHOWN
