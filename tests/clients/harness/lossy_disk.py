"""A file system in the memory of a process of its own that loses, at a power cut, what was not synced: of each file
some of the writes since its last fsync, in whatever order their sectors came to the disk, the last one torn; of each
folder some of the names made, moved or removed since it was synced. What the SimDisk of the simulations is, under a
real broker: it speaks the kernel's FUSE protocol itself, and needs no library.

    python3 -m harness.lossy_disk FOLDER      then on stdin: cut SEED, reorder SEED, logs FOLDER
"""

import ctypes
import enum
import errno
import json
import os
import random
import select
import stat
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

SECTOR = 512
WRITE_MAX = 128 << 10
FOREVER = 1 << 30
"""Nobody but the kernel changes anything: what it knows stays true."""


class Op(enum.IntEnum):
    """What the kernel asks, by the numbers of <linux/fuse.h>."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    MKDIR = 9
    UNLINK = 10
    RMDIR = 11
    RENAME = 12
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    FSYNCDIR = 30
    CREATE = 35
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42
    RENAME2 = 45


UNANSWERED = (Op.FORGET, Op.INTERRUPT, Op.BATCH_FORGET)
BIG_WRITES, KEEP_CACHE = 1 << 5, 1 << 1
MODE, SIZE = 1 << 0, 1 << 3  # of SETATTR


class Refused(Exception):
    def __init__(self, number: int):
        self.number = number


@dataclass
class Cut:
    """What a power cut has taken."""

    writes_lost: int = 0
    writes_torn: int = 0
    writes_reordered: int = 0
    names_lost: int = 0


@dataclass(eq=False)
class Node:
    """A file or a folder, as it is read now and as the disk has it."""

    id: int
    mode: int
    modified: int = field(default_factory=lambda: int(time.time()))
    content: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    changes: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Since the last fsync: a write, or a truncation."""
    entries: dict[bytes, "Node"] = field(default_factory=dict)
    durable_entries: dict[bytes, "Node"] = field(default_factory=dict)
    renames: list[tuple[bytes | None, bytes | None, "Node | None"]] = field(default_factory=list)
    """Since the last fsync of a folder: the name that went, the one that came, and what it names."""

    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    def change(self, position: int, data: bytes | None) -> None:
        apply(self.content, position, data)
        self.changes.append((position, data))
        self.modified = int(time.time())

    def rename(self, gone: bytes | None, made: bytes | None, target: "Node | None") -> None:
        apply_name(self.entries, gone, made, target)
        self.renames.append((gone, made, target))

    def sync(self) -> None:
        for position, data in self.changes:
            apply(self.durable, position, data)
        self.changes.clear()
        self.durable_entries = dict(self.entries)
        self.renames.clear()

    def cut(self, chance: random.Random, told: Cut, reordering: float) -> None:
        kept = chance.randint(0, len(self.changes))
        reordered = chance.random() < reordering
        for position, data in self.changes[:kept]:
            if reordered and data is not None:
                told.writes_reordered += self._write_some_sectors(position, data, chance)
            else:
                apply(self.durable, position, data)
        told.writes_lost += len(self.changes) - kept
        if kept < len(self.changes) and self.changes[kept][1]:
            position, data = self.changes[kept]
            front = data[: chance.randrange(len(data))]
            if front:
                told.writes_torn += 1
                apply(self.durable, position, front)
        self.changes.clear()
        self.content = bytearray(self.durable)
        names = chance.randint(0, len(self.renames))
        for change in self.renames[:names]:
            apply_name(self.durable_entries, *change)
        told.names_lost += len(self.renames) - names
        self.renames.clear()
        self.entries = dict(self.durable_entries)
        for entry in self.entries.values():
            entry.cut(chance, told, reordering)

    def _write_some_sectors(self, position: int, data: bytes, chance: random.Random) -> bool:
        all_there = True
        end = position + len(data)
        at = position
        while at < end:
            sector_end = min(end, (at // SECTOR + 1) * SECTOR)
            if chance.random() < 0.5:
                apply(self.durable, at, data[at - position : sector_end - position])
            else:
                all_there = False
            at = sector_end
        if len(self.durable) < end:
            self.durable.extend(bytes(end - len(self.durable)))
        return not all_there


NOTHING = Node(0, 0)
"""Where no file or folder is."""


def apply(content: bytearray, position: int, data: bytes | None) -> None:
    end = position if data is None else position + len(data)
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if data is None:
        del content[position:]
    else:
        content[position:end] = data


def apply_name(entries: dict, gone: bytes | None, made: bytes | None, target: Node | None) -> None:
    if gone is not None:
        entries.pop(gone, None)
    if made is not None:
        entries[made] = target


class LossyFiles:
    """Answers the kernel."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.root = Node(1, stat.S_IFDIR | 0o755)
        self.nodes = {1: self.root}
        self.next_id = 2
        self.device = self._mount()

    def _mount(self) -> int:
        device = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"lossy", os.fsencode(self.folder), b"fuse", 0, options) != 0:
            raise OSError(ctypes.get_errno(), "mount of a lossy disk")
        return device

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", self.folder], check=False)
        os.close(self.device)

    def cut(self, seed: int, reordering: float) -> Cut:
        """Who has files open there must be dead. `reordering`: the share of files of which later writes came to the disk
        before earlier ones."""
        self.unmount()
        told = Cut()
        self.root.cut(random.Random(seed), told, reordering)
        self.nodes = {1: self.root}
        self._number(self.root)
        self.device = self._mount()
        return told

    def logs(self, path: str) -> tuple[int, int]:
        """Bytes of the logs of a folder: those written, and those that no power cut takes."""
        now = kept = self.root
        for name in path.encode().split(b"/"):
            now = now.entries.get(name, NOTHING)
            kept = kept.durable_entries.get(name, NOTHING)
        written = [len(of.content) for name, of in now.entries.items() if name.endswith(b".log")]
        durable = [len(of.durable) for name, of in kept.durable_entries.items() if name.endswith(b".log")]
        return sum(written), sum(durable)

    def _number(self, folder: Node) -> None:
        for entry in folder.entries.values():
            self.nodes[entry.id] = entry
            self._number(entry)

    def serve(self) -> None:
        request = os.read(self.device, WRITE_MAX + 65536)
        _, code, unique, id = struct.unpack_from("=IIQQ", request)
        if code in UNANSWERED:
            return
        try:
            answer, number = self.answer(code, id, request[40:]), 0
        except Refused as refused:
            answer, number = b"", -refused.number
        os.write(self.device, struct.pack("=IiQ", 16 + len(answer), number, unique) + answer)

    def answer(self, code: int, id: int, body: bytes) -> bytes:
        if code == Op.INIT:
            numbers = (7, 31, 0, BIG_WRITES, 16, 12, WRITE_MAX, 1, 0, 0, 0)
            return struct.pack("=IIIIHHIIHHI", *numbers) + bytes(28)
        if code == Op.STATFS:
            return struct.pack("=QQQQQIIII", 1 << 20, 1 << 19, 1 << 19, 1 << 20, 1 << 19, 4096, 255, 4096, 0) + bytes(24)
        node = self.nodes[id]
        match code:
            case Op.LOOKUP:
                return self._entry(self._named(node, name_in(body)))
            case Op.GETATTR:
                return struct.pack("=QII", FOREVER, 0, 0) + self._attributes(node)
            case Op.SETATTR:
                return self._set_attributes(node, body)
            case Op.MKDIR:
                (mode,) = struct.unpack_from("=I", body)
                return self._entry(self._make(node, name_in(body[8:]), stat.S_IFDIR | mode & 0o7777))
            case Op.CREATE:
                (mode,) = struct.unpack_from("=I", body, 4)
                made = self._make(node, name_in(body[16:]), stat.S_IFREG | mode & 0o7777)
                return self._entry(made) + struct.pack("=QII", 0, KEEP_CACHE, 0)
            case Op.UNLINK | Op.RMDIR:
                return self._remove(node, name_in(body))
            case Op.RENAME:
                return self._rename(node, struct.unpack_from("=Q", body)[0], body[8:])
            case Op.RENAME2:
                to, flags = struct.unpack_from("=QI", body)
                if flags:
                    raise Refused(errno.EINVAL)
                return self._rename(node, to, body[16:])
            case Op.OPEN | Op.OPENDIR:
                return struct.pack("=QII", 0, KEEP_CACHE, 0)
            case Op.READ:
                _, position, size = struct.unpack_from("=QQI", body)
                return bytes(node.content[position : position + size])
            case Op.WRITE:
                _, position, size = struct.unpack_from("=QQI", body)
                node.change(position, body[40 : 40 + size])
                return struct.pack("=II", size, 0)
            case Op.READDIR:
                _, position, size = struct.unpack_from("=QQI", body)
                return self._listing(node, position, size)
            case Op.FSYNC | Op.FSYNCDIR:
                node.sync()
                return b""
            case Op.FLUSH | Op.RELEASE | Op.RELEASEDIR | Op.DESTROY:
                return b""
        raise Refused(errno.ENOSYS)

    def _named(self, folder: Node, name: bytes) -> Node:
        if name not in folder.entries:
            raise Refused(errno.ENOENT)
        return folder.entries[name]

    def _make(self, folder: Node, name: bytes, mode: int) -> Node:
        if name in folder.entries:
            raise Refused(errno.EEXIST)
        made = Node(self.next_id, mode)
        self.next_id += 1
        self.nodes[made.id] = made
        folder.rename(None, name, made)
        return made

    def _remove(self, folder: Node, name: bytes) -> bytes:
        if self._named(folder, name).entries:
            raise Refused(errno.ENOTEMPTY)
        folder.rename(name, None, None)
        return b""

    def _rename(self, folder: Node, to: int, names: bytes) -> bytes:
        old, new = names.split(b"\0")[:2]
        moved, goal = self._named(folder, old), self.nodes[to]
        replaced = goal.entries.get(new)
        if replaced is not None and replaced.entries:
            raise Refused(errno.ENOTEMPTY)
        if goal is folder:
            folder.rename(old, new, moved)
        else:
            goal.rename(None, new, moved)
            folder.rename(old, None, None)
        return b""

    def _set_attributes(self, node: Node, body: bytes) -> bytes:
        valid, _, _, size = struct.unpack_from("=IIQQ", body)
        if valid & SIZE:
            node.change(size, None)
        if valid & MODE:
            (mode,) = struct.unpack_from("=I", body, 68)
            node.mode = stat.S_IFMT(node.mode) | mode & 0o7777
        return struct.pack("=QII", FOREVER, 0, 0) + self._attributes(node)

    def _attributes(self, node: Node) -> bytes:
        size = len(node.content)
        links = 2 if node.is_folder() else 1
        times = (node.modified,) * 3 + (0,) * 3
        blocks = (size + 511) // 512
        numbers = (node.id, size, blocks, *times, node.mode, links, 0, 0, 0, 4096, 0)
        return struct.pack("=QQQQQQIIIIIIIIII", *numbers)

    def _entry(self, node: Node) -> bytes:
        return struct.pack("=QQQQII", node.id, 0, FOREVER, FOREVER, 0, 0) + self._attributes(node)

    def _listing(self, folder: Node, position: int, size: int) -> bytes:
        rows = b""
        for number, (name, node) in enumerate(folder.entries.items(), 1):
            if number <= position:
                continue
            row = struct.pack("=QQII", node.id, number, len(name), stat.S_IFMT(node.mode) >> 12) + name
            row += bytes(-len(row) % 8)
            if len(rows) + len(row) > size:
                break
            rows += row
        return rows


def name_in(body: bytes) -> bytes:
    return body[: body.index(b"\0")]


def obey(files: LossyFiles, what: str, argument: str) -> dict | tuple:
    if what == "logs":
        return files.logs(argument)
    return vars(files.cut(int(argument), 1 if what == "reorder" else 0.25))


def main() -> None:
    files = LossyFiles(Path(sys.argv[1]))
    print("mounted", flush=True)
    try:
        while True:
            ready, _, _ = select.select([files.device, sys.stdin], [], [])
            if sys.stdin in ready:
                line = sys.stdin.readline()
                if not line:
                    break
                print(json.dumps(obey(files, *line.split())), flush=True)
            elif files.device in ready:
                files.serve()
    finally:
        files.unmount()


class LossyDisk:
    """Such a disk at `folder`, as tests use it."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True)
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == "mounted\n"

    def __enter__(self) -> "LossyDisk":
        return self

    def __exit__(self, *_) -> None:
        self.process.stdin.close()
        self.process.wait(30)

    def _ask(self, line: str):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def cut(self, seed: int, *, reorder: bool = False) -> Cut:
        """The power goes and comes back; who used the disk must have been killed before. To `reorder` is to do so with
        each file, and not with some."""
        return Cut(**self._ask(f"{'reorder' if reorder else 'cut'} {seed}"))

    def logs(self, folder: str) -> tuple[int, int]:
        """Bytes of the logs of this folder of the disk: those written, and those that no power cut takes."""
        written, durable = self._ask(f"logs {folder}")
        return written, durable


if __name__ == "__main__":
    main()
