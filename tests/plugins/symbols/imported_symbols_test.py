#!/usr/bin/env python3
"""Plugins reach the outside through the environment alone, or no simulation could hold them: none
of the shipped ones imports a socket, a file call, a clock, a thread or a source of chance.

imported_symbols_test.py --source plugins --plugins LIB/millrace/plugins --bad LIBRARY"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

# Whole names of C functions, then patterns of demangled C++ names.
FORBIDDEN = {
    "the network": r"""socket|socketpair|connect|accept4?|bind|listen|shutdown|send|sendto|sendmsg|
        sendmmsg|sendfile|recv|recvfrom|recvmsg|recvmmsg|getsockopt|setsockopt|getaddrinfo|
        gethostbyname\w*|epoll_\w+|poll|ppoll|select|pselect|io_uring_\w+|eventfd|
        boost::asio::.*""",
    "files": r"""open|openat|creat|close|read|pread|readv|preadv2?|write|pwrite|writev|pwritev2?|
        fopen|fdopen|freopen|opendir|readdir|scandir|fsync|fdatasync|sync_file_range|rename|
        renameat2?|unlink|unlinkat|remove|mkdir|mkdirat|rmdir|link|symlink|ftruncate|truncate|
        fallocate|posix_fallocate|l?stat|fstat|fstatat|statx|statvfs|mmap|flock|fcntl|ioctl|
        std::basic_(i|o)?f(stream|ilebuf).*|std::filesystem::.*""",
    "clocks": r"""clock_gettime|clock_getres|time|gettimeofday|ftime|clock|times|timerfd_\w+|
        timer_\w+|setitimer|alarm|(localtime|gmtime|mktime)(_r)?|
        std::chrono::.*::now\(\).*""",
    "threads and waiting": r"""pthread_create|pthread_cond_\w+|sem_\w+|nanosleep|clock_nanosleep|
        u?sleep|sched_yield|fork|vfork|clone|exec\w+|posix_spawn\w*|system|popen|
        std::thread::.*|std::jthread::.*|std::condition_variable.*|std::this_thread::.*|
        std::__future_base::.*""",
    "chance": r"""getrandom|getentropy|arc4random\w*|s?rand|rand_r|s?random|[dlm]rand48|
        std::random_device::.*""",
    "the process's surroundings": r"""getenv|secure_getenv|setenv|gethostname|getpid|dlopen|
        signal|sigaction""",
}

# Large-file names of the same functions end in 64; a version follows an @.
PATTERNS = {
    what: re.compile("(" + re.sub(r"\s", "", names) + r")(64)?(@.*)?")
    for what, names in FORBIDDEN.items()
}

# PLUGIN: {SYMBOL: why it must}. Empty today: what a plugin's package does in its own shared library
# is not the plugin's import.
EXCEPTIONS: dict[str, dict[str, str]] = {}


def imports_of(library: Path) -> list[str]:
    listed = subprocess.run(
        ["nm", "--dynamic", "--undefined-only", "--demangle", str(library)],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    return [line.split(maxsplit=1)[1] for line in listed.splitlines()]


def forbidden_in(library: Path, allowed: dict[str, str]) -> list[str]:
    found = []
    for symbol in imports_of(library):
        for what, pattern in PATTERNS.items():
            if pattern.fullmatch(symbol) and symbol not in allowed:
                found.append(f"{symbol} ({what})")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--plugins", type=Path, required=True)
    parser.add_argument("--bad", type=Path, required=True)
    arguments = parser.parse_args()

    failures = []
    seen = " ".join(forbidden_in(arguments.bad, {}))
    for what in ("the network", "files", "clocks", "threads and waiting"):
        if f"({what})" not in seen:
            failures.append(f"{arguments.bad}: uses {what}, which this test did not see")

    names = sorted(
        folder.parent.relative_to(arguments.source).as_posix()
        for folder in arguments.source.glob("*/*/CMakeLists.txt")
    )
    if not names:
        failures.append(f"{arguments.source}: holds no plugin")
    for name in names:
        library = arguments.plugins / f"{name}.so"
        if not library.exists():
            failures.append(f"{library}: is missing; build everything first")
            continue
        failures += [
            f"{name}.so: imports {symbol}; use the environment (millrace/environment.h)"
            for symbol in forbidden_in(library, EXCEPTIONS.get(name, {}))
        ]

    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{len(names)} plugins, {len(failures)} findings")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
