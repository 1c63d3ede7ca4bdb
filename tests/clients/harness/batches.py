"""Record batches (format V2) and messages of before them (V0 and V1) built by hand."""

import struct
import zlib

from crc32c import crc32c

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4


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
    producer = struct.pack(">qhi", producer_id, producer_epoch, base_sequence)
    return batch_around(records, len(values), time=time, producer=producer)


def batch_around(
    records: bytes,
    count: int,
    codec: int = 0,
    time: int = 1_700_000_000_000,
    producer: bytes = struct.pack(">qhi", -1, -1, -1),
) -> bytes:
    """The batch of these bytes, whatever they are: `count` records after `codec` opened them."""
    checked = struct.pack(">hiqq", codec, count - 1, time, time)
    checked += producer + struct.pack(">i", count) + records
    head = struct.pack(">ibI", -1, 2, crc32c(checked))
    return struct.pack(">qi", 0, len(head) + len(checked)) + head + checked


def message(value: bytes, offset: int = 0, codec: int = 0, magic: int = 1) -> bytes:
    """A V0 or V1 message without a key; with a codec, a wrapper of the messages in `value`."""
    checked = struct.pack(">bb", magic, codec)
    if magic == 1:
        checked += struct.pack(">q", 1_700_000_000_000)
    checked += struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", offset, 4 + len(checked), zlib.crc32(checked)) + checked


def last_offset(records: bytes) -> int:
    """Of the last batch that is all there."""
    at = offset = 0
    while at + 61 <= len(records):
        base, length = struct.unpack_from(">qi", records, at)
        (delta,) = struct.unpack_from(">i", records, at + 23)
        at += 12 + length
        offset = base + delta
    assert at == len(records)
    return offset
