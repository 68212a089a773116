"""What is installed, for the parts that need more than a server does."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from mqis.views.doctor.findings import Area, Finding

_ENVIRONMENT = Area("environment")


def look() -> Iterator[Finding]:
    home = os.environ.get("JAVA_HOME")
    java = (home and (Path(home) / "bin" / "java").exists()) or shutil.which("java")
    if find_spec("pyspark") is None:
        yield _ENVIRONMENT.note("no Spark: the pipeline does not run here", "make pipeline")
    elif not java:
        yield _ENVIRONMENT.note("no Java: the pipeline does not run here", "make java")
    else:
        yield _ENVIRONMENT.ok("Spark and Java are here, the pipeline can run")
