"""Record batches (format V2) built by hand."""

import struct


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _bit in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def varint(number: int) -> bytes:
    value = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def record(offset_delta: int, value: bytes) -> bytes:
    """A record without key and headers."""
    content = b"\0" + varint(0) + varint(offset_delta) + varint(-1)
    content += varint(len(value)) + value + varint(0)
    return varint(len(content)) + content


def record_batch(
    values: list[bytes],
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    time: int = 1_700_000_000_000,
) -> bytes:
    """One batch, not compressed."""
    records = b"".join(record(at, value) for at, value in enumerate(values))
    checked = struct.pack(">hiqq", 0, len(values) - 1, time, time)
    checked += struct.pack(">qhii", producer_id, producer_epoch, base_sequence, len(values))
    checked += records
    head = struct.pack(">ibI", -1, 2, crc32c(checked))
    return struct.pack(">qi", 0, len(head) + len(checked)) + head + checked
