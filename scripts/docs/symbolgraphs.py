"""The symbol graphs of the modules that an app or its tests import, as the last build left them."""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SWIFT = os.environ.get("SWIFT", "swift")

# What the catalogue documents, and what the modules' own interfaces name beside it.
MODULES = ["SslPinningRules", "SslPinningPlatform", "SslPinning", "SslPinningTesting"]
MODULE_MAPS = ["Sources/CSslPinningOpenSSL", "Sources/CSslPinningCurl", "{products}/CSslPinningShims.build"]

# What the standard library adds to a type (`!=` to an Equatable one) says nothing about the type.
FOREIGN = "::SYNTHESIZED::"
OURS = tuple(f"s:{len(module)}{module}" for module in MODULES)


class Failed(Exception):
    """What a program said that failed."""


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed((done.stdout + done.stderr).strip() or f"{command[0]} failed")
    return done


def target_info():
    return json.loads(run(SWIFT, "-print-target-info").stdout)


def programs():
    """The folder of the toolchain's programs."""
    return Path(target_info()["paths"]["runtimeResourcePath"]).parent.parent / "bin"


def products():
    """Where the build of today put its modules."""
    return ROOT / ".build" / "debug"


def imports():
    """What a compiler has to be told to import the modules of this build."""
    maps = [ROOT / folder.format(products=products()) / "module.modulemap"
            for folder in MODULE_MAPS]
    return ["-I", products() / "Modules",
            *(part for path in maps for part in ("-Xcc", f"-fmodule-map-file={path}"))]


def extract(folder):
    """Writes the symbol graphs into `folder`, without what is not ours."""
    folder.mkdir(parents=True, exist_ok=True)
    triple = target_info()["target"]["unversionedTriple"]
    for module in MODULES:
        run(programs() / "swift-symbolgraph-extract", "-module-name", module, "-target", triple,
            *imports(), "-module-cache-path", ROOT / ".build" / "docs" / "module-cache",
            "-minimum-access-level", "public", "-emit-extension-block-symbols",
            "-output-dir", folder)
    for path in folder.glob("*.symbols.json"):
        path.write_text(json.dumps(ours(json.loads(path.read_text()))))


def ours(graph):
    """A symbol graph without what other modules add to our types."""
    dropped = {symbol["identifier"]["precise"] for symbol in graph["symbols"]
               if FOREIGN in symbol["identifier"]["precise"]
               and not symbol["identifier"]["precise"].startswith(OURS)}
    graph["symbols"] = [symbol for symbol in graph["symbols"]
                        if symbol["identifier"]["precise"] not in dropped]
    graph["relationships"] = [relation for relation in graph["relationships"]
                              if relation["source"] not in dropped
                              and relation["target"] not in dropped]
    return graph
