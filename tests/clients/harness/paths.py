"""Where things are in the source tree and below its build folder."""

from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3]
DRIVERS = SOURCE / "tests" / "clients" / "drivers"
BUILD = SOURCE / "build"
RELEASE = BUILD / "release"
