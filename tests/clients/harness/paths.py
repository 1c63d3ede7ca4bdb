"""Where things are in the source tree and below its build folder."""

from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3]
BUILD = SOURCE / "build"
RELEASE = BUILD / "release"
