#!/usr/bin/env python3
"""mangle.py IN OUT SEED: damages the frames of a pcapng capture: flips bits, removes bytes, cuts ends.

Half of the frames get a corrected header check, so that the bytes after it are decoded, too.
"""
import random
import struct
import sys

TABLE = []
for i in range(256):
    for _ in range(8):
        i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
    TABLE.append(i)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def checked(frame):
    """Number of bytes before the header check, and the other bytes that it covers."""
    kind, units = frame[1] >> 1 & 7, struct.unpack(">H", frame[18:20])[0]
    if kind == 0:
        return 30 + units // 4, b""
    if kind == 1:
        return 100, b""
    return 20, frame[24:57] if kind == 4 else b""


def mangle(packet, rng):
    at = 14 if packet[12:14] == b"\x88\xb5" else 42
    head, frame = packet[:at], bytearray(packet[at:])
    for _ in range(rng.choice((0, 1, 1, 2, 8))):
        # Mostly spare the magic and the kind: a frame of another protocol tests nothing.
        byte = rng.randrange(1 if rng.random() < 0.3 else 2, len(frame))
        if rng.random() < 0.5:
            frame[byte] ^= 1 << rng.randrange(8)
        else:
            frame[byte] = rng.choice((0, 0xFF, rng.randrange(256)))
    if rng.random() < 0.15:
        del frame[rng.randrange(2, len(frame)):]
    if rng.random() < 0.05:
        frame += bytes(rng.randrange(64))
    if rng.random() < 0.5 and len(frame) >= 24:
        end, more = checked(frame)
        if len(frame) >= end + 4:
            struct.pack_into(">I", frame, end, crc32c(bytes(frame[:end]) + more))
    return head + bytes(frame)


def main():
    source, target, seed = sys.argv[1:]
    rng = random.Random(int(seed))
    data = open(source, "rb").read()
    out, at = bytearray(), 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            size = struct.unpack_from("<I", data, at + 20)[0]
            packet = mangle(data[at + 28:at + 28 + size], rng)
            body = data[at + 8:at + 20] + struct.pack("<II", len(packet), len(packet)) + packet + bytes(-len(packet) % 4)
            block = struct.pack("<II", 6, len(body) + 12) + body + struct.pack("<I", len(body) + 12)
            out += block
            if rng.random() < 0.1:
                out += block
        else:
            out += data[at:at + length]
        at += length
    open(target, "wb").write(out)


main()
