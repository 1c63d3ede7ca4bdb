"""Jars by Maven coordinates: drivers/java/pom.xml names them, one profile per purpose."""

import shutil
import subprocess

from harness.lock import making
from harness.paths import BUILD, DRIVERS

POM = DRIVERS / "java" / "pom.xml"


def classpath(profile: str) -> str:
    """The class path of a profile. Asks Maven only when pom.xml changed since the last time."""
    folder = BUILD / "maven" / profile
    stamp = folder / "pom.xml"
    with making(folder):
        if not stamp.exists() or stamp.read_bytes() != POM.read_bytes():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            subprocess.run(
                [
                    "mvn",
                    "-q",
                    "-B",
                    "-f",
                    POM,
                    "-P",
                    profile,
                    "dependency:copy-dependencies",
                    f"-DoutputDirectory={folder}",
                    "-DincludeScope=runtime",
                ],
                check=True,
                timeout=600,
            )
            shutil.copyfile(POM, stamp)
    return f"{folder}/*"
