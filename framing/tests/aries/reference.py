#!/usr/bin/env python3
"""Computes the golden vectors of golden.rs from docs/guide/src/wire-format.md alone.

No test runs it: it is an independent second source of the vectors. Prints flits of packets and
bytes of sets and frames.
"""


def bits(value, width):
    assert 0 <= value < 1 << width
    return format(value, f"0{width}b")


def octets(data):
    return "".join(bits(byte, 8) for byte in data)


def crc(stream, poly, width):
    mask = (1 << width) - 1
    state = mask
    for bit in stream:
        top = (state >> (width - 1)) ^ int(bit)
        state = (state << 1 & mask) ^ (poly if top else 0)
    return bits(state, width)


def crc32c(data):
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def to_bytes(stream):
    return int(stream, 2).to_bytes(len(stream) // 8, "big")


def node(group, router, nic):
    return bits(group, 9) + bits(router, 7) + bits(nic, 2)


def head(vc, length, to, routing, packet_id, code):
    # Virtual channel, non-minimal, length, destination, routing, packet id, poison, code.
    text = bits(vc, 3) + "0" + bits(length, 4) + to + bits(routing, 3)
    return text + bits(packet_id, 12) + "0" + bits(code, 6)


def flits(stream):
    return [int(stream[at : at + 48], 2) for at in range(0, len(stream), 48)]


def area(data):
    count = -(-(8 * len(data) + 16) // 48)
    return octets(data).ljust(48 * count - 16, "0")


def close(first, rest):
    # The check covers the head with zeros for virtual channel, non-minimal and poison.
    seen = "0000" + first[4:41] + "0" + first[42:]
    return flits(first + rest + crc(seen + rest, 0x6087, 16))


def request(to, source, routing, packet_id, command, mdh, mark, address, key, data=None):
    # The field holds an echo of five bits and an SSID of four.
    body = bits(command >> 6, 1) + source + bits(mdh, 12) + bits(mark, 9) + bits(address, 40)
    body += bits(key, 16)
    if data is not None:
        body += area(data)
    length = 1 + (len(body) + (16 if data is not None else 0)) // 48
    first = head(0, length, to, routing, packet_id, command & 63)
    return close(first, body) if data is not None else flits(first + body)


def response(to, routing, packet_id, code, data=None):
    body = area(data) if data is not None else ""
    length = 1 + (len(body) + (16 if data is not None else 0)) // 48
    first = head(4, length, to, routing, packet_id, code)
    return close(first, body) if data is not None else flits(first)


def tenth(control, number, nack, ack, load, clock, vc_ack):
    text = bits(control, 1) + bits(number & 63, 6) + bits(number >> 6, 1) + bits(nack, 1)
    return text + bits(ack, 6) + bits(load, 4) + bits(clock, 1) + bits(vc_ack, 8)


def close_set(stream):
    assert len(stream) == 460
    return to_bytes(stream + crc(stream, 0xC4047, 20))


def data_set(packet, number, nack, ack, load, clock, vc_ack):
    stream = "".join(bits(flit, 48) for flit in packet).ljust(9 * 48, "0")
    return close_set(stream + tenth(0, number, nack, ack, load, clock, vc_ack))


def control_set(probe, nack, following, ack, vc_acks, clock, pulse, load):
    stream = bits(probe, 8) + bits(0, 8) + bits(following, 32)
    stream += bits(0, 16) + bits(ack, 32)
    stream += "".join(bits(freed, 32) for freed in vc_acks) + bits(0, 32)
    stream += bits(clock, 48)
    vc_ack = vc_acks[following % 8] // 8 % 256
    return close_set(stream + tenth(1, following % 128, nack, ack % 64, load, pulse, vc_ack))


def frame(sets):
    data = bytes([0x59, 2 << 4 | 2 << 1 | 1]) + bytes.fromhex("0102fab00fab0000000700000009")
    data += (7).to_bytes(2, "big") + len(sets).to_bytes(2, "big")
    return data + crc32c(data).to_bytes(4, "big") + b"".join(sets)


def main():
    line = bytes(range(0xC0, 0x100))
    far, near = node(240, 95, 3), node(1, 2, 1)
    operands = bytes.fromhex("0123456789abcdef") + bytes.fromhex("fedcba9876543210")
    packets = {
        # Class 0 with event (argument 6) and no unused byte; adaptive mode 1.
        "PUT_64": request(far, near, 1, 0xABC, 6, 0x123, 0x155, 0xFEDCBA9876, 0xBEEF, line),
        # Eight bytes and the check leave two of twelve bytes unused.
        "PUT_8": request(near, far, 0, 1, 2, 0xFFF, 0x1FF, 8, 1, bytes(range(1, 9))),
        "GET_64": request(far, near, 7, 0xFFF, 1 << 4 | 15, 0x800, 0, 0xFFFFFFFFC0, 0xFFFF),
        # Class 3: fetching, 64 bits; argument 6: compare-and-swap.
        "COMPARE_SWAP": request(
            far, near, 4, 2, 3 << 4 | 6, 1, 2, 0x1000, 0x8001, operands
        ),
        # Class 4: 32 bits; argument 3: add.
        "ADD_32": request(near, far, 4, 3, 4 << 4 | 3, 1, 2, 0x1004, 0x8001, b"\xff\xff\xff\xfe"),
        # The last part of a message, one byte: three of four bytes are unused, plus 6 for the last part.
        "MESSAGE": request(near, far, 2, 4, 6 << 4 | 9, 7, 8, 0x40, 9, b"\x5a"),
        "CONTROL": request(near, far, 4, 5, 7 << 4 | 12, 10, 11, 12, 13, line[:16]),
        # The code of a response is the echo, plus 32 if the data have one word less than the area has room for.
        "DONE": response(near, 1, 0xABC, 0),
        "READ_64": response(near, 7, 0xFFF, 0, line),
        "READ_4": response(near, 3, 6, 0x1F, line[:4]),
        "OLD_64": response(near, 4, 2, 1, operands[:8]),
        "READ_60": response(near, 6, 7, 32 | 0x0A, line[:60]),
        "REFUSED": response(far, 0, 1, 32 | 0x1A, bytes([0, 0, 0, 10])),
        # Done, as are three other requests; the request's own number pads the area.
        "JOINED": response(far, 5, 0xFFE, 32 | 0x15, bytes.fromhex("0fff000000080ffe0ffe")),
    }
    for name, packet in packets.items():
        print(name, ", ".join(f"{flit:#014x}" for flit in packet))
    data = data_set(packets["PUT_8"] + packets["DONE"], 0x5B, 0, 0x2A, 9, 1, 0xC3)
    acks = [0x11111111, 0x22222222, 0x33333333, 0x44444444, 0x55555555, 0x66666666, 0x777777F8, 5]
    control = control_set(1, 1, 0x89ABCD5B, 0x0123456A, acks, 0xFEDCBA987654, 0, 6)
    print("DATA_SET", data.hex(" "))
    print("CONTROL_SET", control.hex(" "))
    print("SET_FRAME", frame([control, data]).hex(" "))


main()
