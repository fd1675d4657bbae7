#!/usr/bin/env python3
"""Builds the documentation into .build/docs/archive, from the modules of the last build.

- Every public symbol has a comment that says its units and errors (scripts/checks/doc-comments.py).
- Every listing of the articles compiles (scripts/docs/listings.py).
- A warning of DocC is an error: a link that leads nowhere, a parameter that is not explained.

    build.py              build everything
    build.py --self-test  plant a fault of each kind in a copy and expect it to be found
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import symbolgraphs  # noqa: E402

ROOT = symbolgraphs.ROOT
CATALOGUE = ROOT / "Sources" / "SslPinning" / "SslPinning.docc"
OUT = ROOT / ".build" / "docs"


def convert(catalogue, graphs, archive):
    """What DocC says of a catalogue over these symbol graphs; nothing where all is well."""
    done = subprocess.run(
        [symbolgraphs.programs() / "docc", "convert", catalogue,
         "--additional-symbol-graph-dir", graphs, "--output-dir", archive,
         "--fallback-display-name", "SslPinning", "--fallback-bundle-identifier", "ssl-pinning",
         "--warnings-as-errors", "--ide-console-output"],
        capture_output=True, text=True)
    said = (done.stdout + done.stderr).strip()
    if done.returncode == 0 and "warning:" not in said and "error:" not in said:
        return ""
    return said or f"docc ended with {done.returncode}"


def main():
    graphs = OUT / "symbol-graphs"
    shutil.rmtree(graphs, ignore_errors=True)
    symbolgraphs.extract(graphs)
    said = convert(CATALOGUE, graphs, OUT / "archive")
    if said: print(said)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
