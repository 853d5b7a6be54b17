#!/usr/bin/env python3
"""Computes the golden vectors of golden.rs, and TRAINING_FRAME of ../common/mod.rs, from docs/guide/src/wire-format.md alone.

No test runs it: it is an independent second source of the vectors. Prints contents of phits and
bytes of frames.
"""


def crc16(data, poly, crc=0xFFFF):
    for byte in data:
        for i in range(7, -1, -1):
            top = (crc >> 15) ^ (byte >> i & 1)
            crc = (crc << 1 & 0xFFFF) ^ (poly if top else 0)
    return crc


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def bits(value, width):
    return format(value, f"0{width}b")


def octets(data):
    return "".join(bits(byte, 8) for byte in data)


def close(phits, ok=0):
    data = b"".join(phit.to_bytes(3, "big") for phit in phits) + bytes([ok])
    return phits + [crc16(data, 0x31A1) | ok << 16]


def packet(dest, v, h, a, head3, hashed, stream):
    phits = [dest | v << 15 | h << 16 | a << 17 | head3 << 19]
    phits.append(int(stream[:7].ljust(7, "0"), 2) << 15 | hashed)
    for at in range(7, len(stream), 22):
        phits.append(int(stream[at : at + 22].ljust(22, "0"), 2))
    return close(phits)


def write(dest, source, tid, address, data):
    mask = ((1 << len(data)) - 1) << address % 32
    stream = bits(source, 15) + bits(tid, 20) + bits(address >> 21, 27)
    stream += bits(address >> 5 & 1, 1) + bits(mask, 32) + octets(data)
    return packet(dest, 0, 1, 0, 0, address >> 6 & 0x7FFF, stream)


def read(dest, source, tid, address, length):
    stream = bits(source, 15) + bits(tid, 20) + bits(address >> 21, 27)
    stream += bits(address & 63, 6) + bits(length - 1, 5)
    return packet(dest, 0, 1, 0, 1, address >> 6 & 0x7FFF, stream)


def response(dest, op, tid, length, status, data=b""):
    stream = bits(tid, 20) + bits(length - 1, 5) + bits(status, 4) + octets(data)
    return packet(dest, 1, 0, 1, op, 0, stream)


def vector(ports, extra):
    phits = [0, 0, extra << 12]
    for hop, port in enumerate(ports):
        phits[hop // 3] |= port << 6 * (hop % 3)
    return phits


def maintenance(op, v, hop, ports, tag, register, back=None, value=None, status=0):
    phits = [v << 15 | 1 << 18 | hop << 19, (op << 4 | len(ports)) << 15]
    phits += vector(ports, tag)
    if back is not None:
        phits += vector(back, len(back))
    phits.append(register | status << 16)
    if value is not None:
        phits += [value >> 44, value >> 22 & 0x3FFFFF, value & 0x3FFFFF]
    return close(phits)


def header(kind, end, link, fabric, tx_epoch, rx_epoch, lanes, phits):
    fields = [(link, 2), (fabric, 4), (tx_epoch, 4), (rx_epoch, 4), (lanes, 2), (phits, 2)]
    data = bytes([0x59, 2 << 4 | kind << 1 | end])
    return data + b"".join(value.to_bytes(size, "big") for value, size in fields)


def word():
    text = bits(0xBEEF, 16) + bits(18, 5) + bits(1, 3) + bits(0xBEE0, 16)
    text += bits(0xFFFFF, 20) + bits(0x12345, 20)
    data = int(text, 2).to_bytes(10, "big")
    return data + crc16(data, 0x4825).to_bytes(2, "big")


def rest():
    return b"".join(
        value.to_bytes(size, "big") for value, size in [(0x01234567, 4), (0x89ABCDEF, 4), (0xC0DE, 2)]
    )


def data_frame(tail, whole, sideband):
    kinds = ["10", "10", "11", "01", "10", "10", "11"] + ["00"] * 41
    contents = tail + whole + [0] * 41
    data = header(0, 1, 0x0102, 0xFAB00FAB, 7, 9, 7, 48)
    data += rest()
    data += int("".join(kinds), 2).to_bytes(12, "big")
    data += crc32c(data).to_bytes(4, "big")
    side = bits(int.from_bytes(sideband, "big"), 96)
    for i, content in enumerate(contents):
        data += (content | int(side[2 * i : 2 * i + 2], 2) << 22).to_bytes(3, "big")
    return data


def training_frame():
    data = header(1, 0, 0x0102, 0xFAB00FAB, 7, 0, 7, 0) + bytes([2, 0x85, 63, 17, 19, 4])
    data += (512).to_bytes(2, "big") + (4096).to_bytes(4, "big") + (8192).to_bytes(4, "big")
    data += "yarc-0".encode().ljust(32, b"\0") + "nœud".encode().ljust(32, b"\0")
    data += crc32c(data).to_bytes(4, "big")
    state = 0x59002F50
    for _ in range(16):
        state ^= state << 13 & 0xFFFFFFFF
        state ^= state >> 17
        state ^= state << 5 & 0xFFFFFFFF
        data += (state >> 8).to_bytes(3, "big")
    return data


def main():
    line = bytes(range(0xE0, 0x100))
    write_32 = write(0x1234, 0x4567, 0xABCDE, 0x123456789AC0, line)
    done = response(0x4567, 0, 0xABCDE, 1, 0)
    packets = {
        "WRITE_32": write_32,
        "WRITE_8": write(0x7FFF, 1, 0, 0x28, bytes(range(1, 9))),
        "WRITE_1": write(0, 0x7FFF, 0xFFFFF, 0xFFFFFFFFFFFF, b"\xa5"),
        "READ_13": read(0x60, 0x61, 0x12345, 0x0FEDCBA98765, 13),
        "WRITE_DONE": done,
        "READ_DATA_32": response(0x61, 1, 0x12345, 32, 0, line),
        "READ_DATA_5": response(0x61, 1, 0x12345, 5, 0, line[:5]),
        "REFUSED": response(0x61, 2, 0x12345, 1, 1),
        "REGISTER_WRITE": maintenance(
            1, 0, 0, [1, 63, 0, 31], 0x5A, 0xC0DE,
            back=[7, 8, 9, 10, 11, 12, 13, 62], value=0xFEDCBA9876543210,
        ),
        "REGISTER_READ": maintenance(0, 0, 3, [1, 2, 3, 4, 5, 6, 7], 0xFF, 1, back=[]),
        "REGISTER_READ_REPLY": maintenance(
            2, 1, 2, [7, 8, 9], 0x5A, 0xC0DE, value=0x0123456789ABCDEF
        ),
        "REGISTER_WRITE_REPLY": maintenance(3, 1, 0, [], 1, 0xFFFF, status=1),
    }
    for name, phits in packets.items():
        print(name, ", ".join(f"{phit:#08x}" for phit in phits))
    print("WORD", word().hex(" "))
    print("REST", rest().hex(" "))
    print("DATA_FRAME", data_frame(write_32[16:], done, word()).hex(" "))
    print("TRAINING_FRAME", training_frame().hex(" "))


main()
