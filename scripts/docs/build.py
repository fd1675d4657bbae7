#!/usr/bin/env python3
"""Builds the documentation into .build/docs/archive, from the modules of the last build.

- Every public symbol has a comment that says its units and errors (scripts/checks/doc-comments.py).
- Every listing of the articles compiles (scripts/docs/listings.py).
- The public surface is that of docs/api.md (scripts/docs/api.py), and only that is documented.
- A warning of DocC is an error: a link that leads nowhere, a parameter that is not explained.

    build.py              build everything
    build.py --self-test  plant a fault of each kind in a copy and expect it to be found
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import api  # noqa: E402
import listings  # noqa: E402
import symbolgraphs  # noqa: E402

ROOT = symbolgraphs.ROOT
CATALOGUE = ROOT / "Sources" / "SslPinning" / "SslPinning.docc"
OUT = ROOT / ".build" / "docs"
DOC_COMMENTS = ROOT / "scripts" / "checks" / "doc-comments.py"


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


def documented(graphs):
    """What is wrong with the comments of public symbols."""
    done = subprocess.run([sys.executable, DOC_COMMENTS, graphs], capture_output=True, text=True)
    return (done.stdout + done.stderr).strip() if done.returncode else ""


def self_test(graphs, reached):
    """Plants what no documentation may have, each in a copy."""
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / CATALOGUE.name
        for fault, told in [("See ``NoSuchSymbol``.", "NoSuchSymbol"),
                            ("See <doc:NoSuchArticle>.", "NoSuchArticle"),
                            ("See ``PinEvaluation``.", "PinEvaluation"),
                            ("See ``SslPinningRules/KeySetChain``.", "KeySetChain")]:
            shutil.copytree(CATALOGUE, copy)
            article = copy / "GettingStarted.md"
            article.write_text(f"{article.read_text()}\n{fault}\n")
            if told not in convert(copy, reached, Path(folder) / "archive"):
                missed.append(fault)
            shutil.rmtree(copy)
        graph = json.loads((graphs / "SslPinning.symbols.json").read_text())
        for symbol in graph["symbols"]:
            if symbol["names"]["title"] == "SslPinningClient":
                symbol.pop("docComment", None)
        bare = Path(folder) / "bare"
        bare.mkdir()
        (bare / "SslPinning.symbols.json").write_text(json.dumps(graph))
        if "SslPinningClient has no comment" not in documented(bare):
            missed.append("a type without a comment")
    own = subprocess.run([sys.executable, DOC_COMMENTS, "--self-test"]).returncode
    for fault in missed:
        print(f"docs: self-test: not found: {fault}")
    return 1 if missed or own or api.self_test(graphs) or listings.self_test() else 0


def main():
    graphs = OUT / "symbol-graphs"
    shutil.rmtree(graphs, ignore_errors=True)
    symbolgraphs.extract(graphs)
    reached = OUT / "reached"
    shutil.rmtree(reached, ignore_errors=True)
    api.write_reached(graphs, reached)
    if sys.argv[1:] == ["--self-test"]:
        return self_test(graphs, reached)
    if sys.argv[1:]:
        print(f"usage: {Path(sys.argv[0]).name} [--self-test]", file=sys.stderr)
        return 2
    failed = 0
    for said in (documented(graphs), api.faults(graphs), "\n".join(listings.faults(listings.listings())),
                 listings.type_check(listings.checked()),
                 convert(CATALOGUE, reached, OUT / "archive")):
        if said:
            print(said)
            failed = 1
    if not failed:
        print(f"docs: ok, {len(listings.checked())} listings compile; "
              f"{(OUT / 'archive').relative_to(ROOT)}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
