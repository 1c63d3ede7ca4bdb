"""Files of plugins as packages, disks and people leave them."""

import shutil
from pathlib import Path

SECTIONS_AT, SECTION_BYTES = 0x28, 64
KIND_AT, OFFSET_AT = 4, 0x18
RELOCATIONS = 4


def install(plugin: Path, at: Path) -> None:
    """As dpkg does it: another file in the place of one that may be mapped."""
    at.parent.mkdir(parents=True, exist_ok=True)
    fresh = at.with_suffix(".new")
    shutil.copy(plugin, fresh)
    fresh.rename(at)


def install_damaged(plugin: Path, at: Path) -> None:
    """Its first relocation writes where nothing is: that ends whoever maps it. All else is whole."""
    content = bytearray(plugin.read_bytes())

    def number(at: int, size: int) -> int:
        return int.from_bytes(content[at : at + size], "little")

    section = number(SECTIONS_AT, 8)
    while number(section + KIND_AT, 4) != RELOCATIONS:
        section += SECTION_BYTES
    offset = number(section + OFFSET_AT, 8)
    content[offset : offset + 8] = (1 << 46).to_bytes(8, "little")
    at.parent.mkdir(parents=True, exist_ok=True)
    at.write_bytes(content)
