"""The stream's frames, as the documentation of the crate `gnntop-wire` describes them: taken apart, changed, and put
together with right checksums, so that readers see the changes."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

SYNC = b"\xa7g"
HEADER_LEN = 12
DEFINITIONS, BLOCK = 2, 4
LZ4 = 1
MAX_PAYLOAD_LEN = 1 << 18
# Varints before a block's body: track, sequence, count, dropped, time, length of the body.
BLOCK_FIELDS = 6


@dataclass
class Frame:
    """A frame without its checksums."""

    kind: int
    flags: int
    payload: bytes

    def encoded(self) -> bytes:
        """The frame as it is in a stream."""
        length = min(len(self.payload), MAX_PAYLOAD_LEN).to_bytes(3, "little")
        checked = bytes([self.kind, self.flags]) + length + self.payload[:MAX_PAYLOAD_LEN]
        check = 0x5A
        for byte in checked[:5]:
            check = ((check << 3 | check >> 5) & 0xFF) ^ byte
        return SYNC + bytes([check]) + zlib.crc32(checked).to_bytes(4, "little") + checked


def frames(stream: bytes) -> list[Frame]:
    """Takes an undamaged stream apart."""
    found, at = [], 0
    while at < len(stream):
        length = int.from_bytes(stream[at + 9 : at + 12], "little")
        payload = stream[at + HEADER_LEN : at + HEADER_LEN + length]
        found.append(Frame(stream[at + 7], stream[at + 8], payload))
        at += HEADER_LEN + length
    return found


def mutant(streams: list[bytes], chance: random.Random) -> bytes:
    """One of these streams with some changes: to its frames, to their content, and sometimes to random bytes."""
    changed = frames(chance.choice(streams))
    for _ in range(chance.randint(1, 6)):
        chance.choice(CHANGES)(changed, streams, chance)
    out = b"".join(frame.encoded() for frame in changed)
    if chance.random() < 0.1:  # damage that checksums show
        out = scribble(out, chance)
    if chance.random() < 0.1:
        out = out[: chance.randrange(len(out) + 1)]
    return out


def _any_frame(changed: list[Frame], chance: random.Random) -> int:
    return chance.randrange(len(changed))


def _scribble_frame(changed: list[Frame], _: list[bytes], chance: random.Random) -> None:
    if changed:
        at = _any_frame(changed, chance)
        changed[at] = replace(changed[at], payload=scribble(changed[at].payload, chance))


def _scribble_block(changed: list[Frame], _: list[bytes], chance: random.Random) -> None:
    """Changes events behind their compression."""
    blocks = [at for at, frame in enumerate(changed) if frame.kind == BLOCK]
    if blocks:
        at = chance.choice(blocks)
        fields, body = _open_block(changed[at])
        body = scribble(body, chance)
        if chance.random() < 0.2:
            body = body * chance.randint(2, 40)
        if chance.random() < 0.3:
            fields[chance.randrange(BLOCK_FIELDS - 1)] = chance.choice(NUMBERS)
        fields[-1] = len(body)
        changed[at] = Frame(BLOCK, 0, b"".join(map(varint, fields)) + body)


def _repeat_frames(changed: list[Frame], _: list[bytes], chance: random.Random) -> None:
    if changed:
        at = _any_frame(changed, chance)
        changed[at:at] = changed[at : at + chance.randint(1, 5)] * chance.randint(1, 20)


def _drop_frames(changed: list[Frame], _: list[bytes], chance: random.Random) -> None:
    if changed:
        at = _any_frame(changed, chance)
        del changed[at : at + chance.randint(1, 5)]


def _swap_frames(changed: list[Frame], _: list[bytes], chance: random.Random) -> None:
    if changed:
        one, other = _any_frame(changed, chance), _any_frame(changed, chance)
        changed[one], changed[other] = changed[other], changed[one]


def _take_of_another(changed: list[Frame], streams: list[bytes], chance: random.Random) -> None:
    """Frames of another session: its names, tracks and times mean something else."""
    others = frames(chance.choice(streams))
    begin = chance.randrange(len(others))
    at = chance.randrange(len(changed) + 1)
    changed[at:at] = others[begin : begin + chance.randint(1, 30)]


def _change_kind(changed: list[Frame], _: list[bytes], chance: random.Random) -> None:
    if changed:
        at = _any_frame(changed, chance)
        changed[at] = replace(changed[at], kind=chance.randrange(8), flags=chance.choice((0, 0, 1, 255)))


def _drive_the_terminal(changed: list[Frame], _: list[bytes], chance: random.Random) -> None:
    """Names that would set the window's title, clear the screen, or turn the direction of a line."""
    named = [at for at, frame in enumerate(changed) if frame.kind in (1, DEFINITIONS)]
    if named:
        at = chance.choice(named)
        payload = bytearray(changed[at].payload)
        evil = chance.choice((b"\x1b]0;x\x07", b"\x1b[2J", "\u202e\u2066".encode(), b"\x9b2J", b"a\r\nb\0"))
        begin = chance.randrange(max(1, len(payload) - len(evil)))
        payload[begin : begin + len(evil)] = evil
        changed[at] = replace(changed[at], payload=bytes(payload))


CHANGES: list[Callable[[list[Frame], list[bytes], random.Random], None]] = [
    _scribble_frame,
    _scribble_block,
    _scribble_block,
    _scribble_block,
    _repeat_frames,
    _drop_frames,
    _swap_frames,
    _take_of_another,
    _change_kind,
    _drive_the_terminal,
]
NUMBERS = (0, 1, 127, 128, 2**31 - 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1)


def scribble(data: bytes, chance: random.Random) -> bytes:
    """Some bytes flipped, removed, inserted, or set to the largest numbers."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(changed) + 1)
        how = chance.randrange(4)
        if how == 0 and at < len(changed):
            changed[at] ^= 1 << chance.randrange(8)
        elif how == 1:
            del changed[at : at + chance.randint(1, 12)]
        elif how == 2:
            changed[at:at] = chance.randbytes(chance.randint(1, 12))
        else:
            number = varint(chance.choice(NUMBERS))
            changed[at : at + chance.choice((0, 1, len(number)))] = number
    return bytes(changed)


def varint(number: int) -> bytes:
    """LEB128."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def _open_block(frame: Frame) -> tuple[list[int], bytes]:
    """The numbers before a block's body, and the body without compression."""
    fields, at = [], 0
    for _ in range(BLOCK_FIELDS):
        number = shift = 0
        while at < len(frame.payload):
            byte = frame.payload[at]
            number |= (byte & 127) << shift
            shift, at = shift + 7, at + 1
            if byte < 128:
                break
        fields.append(number)
    body = frame.payload[at:]
    return fields, _decompressed(body) if frame.flags & LZ4 else body


def _decompressed(block: bytes) -> bytes:
    """An LZ4 block; of a damaged one, the part before the damage."""
    out, at = bytearray(), 0
    try:
        while at < len(block):
            token, at = block[at], at + 1
            length, at = _length(block, at, token >> 4)
            out += block[at : at + length]
            at += length
            if at >= len(block):
                break
            offset, at = int.from_bytes(block[at : at + 2], "little"), at + 2
            length, at = _length(block, at, token & 15)
            for _ in range(length + 4):
                out.append(out[-offset])
    except IndexError:
        pass
    return bytes(out)


def _length(block: bytes, at: int, length: int) -> tuple[int, int]:
    if length == 15:
        while True:
            byte, at = block[at], at + 1
            length += byte
            if byte < 255:
                break
    return length, at
