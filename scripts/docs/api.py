#!/usr/bin/env python3
"""docs/api.md: every declaration that an app or its tests reach by `import SslPinning` and
`import SslPinningTesting`, from the modules of the last build.

    api.py              compare docs/api.md with the build; what differs is an error
    api.py --write      write docs/api.md
    api.py --self-test  change a copy of the surface and expect it to be seen

- The types that Exports.swift names stand beside the module's own. What all these mention of the modules below
  without being named there, such as the errors inside an error, has a section of its own: code reaches it by
  inference, and may rely on it.
- What only Apple's systems have is read from the one source file that declares it.
- The two clients offer the same calls, save for what is about the registry (ONLY).
"""

import difflib
import json
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import symbolgraphs  # noqa: E402

ROOT = symbolgraphs.ROOT
PAGE = ROOT / "docs/api.md"
SOURCES = ROOT / "Sources/SslPinning"
EXPORT = re.compile(r"^@_exported public import \w+ (\w+)\.(\w+)$", re.M)
CALL = re.compile(r"\n    public (func .*?) \{\n", re.S)
# What every type conforms to, and what the compiler adds, says nothing.
UNTOLD = {"Copyable", "Escapable", "SendableMetatype", "ExplainedError"}
# What one client has and the other does not.
ONLY = {
    "SslPinningClient": {
        "accept(document:)", "init(config:accepting:)", "initialize(config:accepting:)", "refresh()",
        "registryProblems", "registryStatus"},
    "FixedPinsClient": {
        "init(pins:reporting:storage:)", "initialize(pins:reporting:storage:)", "pins"},
}
HEAD = """# The public surface

Written by `make api` from the build, and compared with it by `make check`: a change of the surface is a change of
this page. Declarations only; what they mean stands in the documentation (`make docs`).

"""


# The modules below, of which an app sees a part.
BELOW = ("SslPinningRules", "SslPinningPlatform")


class Surface:
    """The symbols of all modules, and what they say of each other."""

    def __init__(self, graphs):
        self.symbols, self.modules, self.parents = {}, {}, {}
        self.conformances = {}
        for path in sorted(graphs.glob("*.symbols.json")):
            graph = json.loads(path.read_text())
            for symbol in graph["symbols"]:
                if symbol["kind"]["identifier"] != "swift.extension" \
                        and symbolgraphs.FOREIGN not in symbol["identifier"]["precise"]:
                    self.symbols[symbol["identifier"]["precise"]] = symbol
                    self.modules[symbol["identifier"]["precise"]] = path.name.split(".")[0].split("@")[0]
            extended = {relation["source"]: relation["target"] for relation in graph["relationships"]
                        if relation["kind"] == "extensionTo"}
            for relation in graph["relationships"]:
                if relation["kind"] == "conformsTo":
                    name = (relation.get("targetFallback") or relation["target"]).split(".")[-1]
                    if ":" not in name:
                        source = extended.get(relation["source"], relation["source"])
                        self.conformances.setdefault(source, set()).add(name)

    @staticmethod
    def path(symbol):
        return tuple(symbol["pathComponents"])

    def types(self):
        """The nominal types: by path, the identifier."""
        kinds = {"swift.struct", "swift.class", "swift.enum", "swift.protocol", "swift.actor"}
        return {self.path(symbol): precise for precise, symbol in self.symbols.items()
                if symbol["kind"]["identifier"] in kinds}

    def members(self, path):
        """What stands directly in a type, in whichever module."""
        return [symbol for symbol in self.symbols.values() if self.path(symbol)[:-1] == path]

    def mentioned(self, symbol):
        """The types that a declaration names. Of `A.B` it is B alone."""
        fragments = symbol["declarationFragments"]
        for here, then in zip(fragments, fragments[1:] + [{"spelling": ""}]):
            if here["kind"] == "typeIdentifier" and not then["spelling"].startswith("."):
                yield here.get("preciseIdentifier")

    def reached(self, paths):
        """These types, what stands in them, and what those mention, without end."""
        types, found, waiting = self.types(), set(), list(paths)
        places = {precise: path for path, precise in types.items()}
        while waiting:
            path = waiting.pop()
            if path in found or path not in types:
                continue
            found.add(path)
            for symbol in self.members(path):
                waiting += [self.path(symbol)]
                waiting += [places[name] for name in self.mentioned(symbol) if name in places]
        return found

    def text(self, symbol):
        text = "".join(part["spelling"] for part in symbol["declarationFragments"])
        return " ".join(text.split())

    def block(self, path):
        """A type with its members, as lines of Swift."""
        precise = self.types()[path]
        symbol = self.symbols[precise]
        known = sorted(self.conformances.get(precise, set()) - UNTOLD)
        kind = self.text(symbol).split(path[-1])[0]
        name = kind + ".".join(path) + (": " + ", ".join(known) if known else "")
        inside = {self.text(member) for member in self.members(path)
                  if self.path(member) not in self.types()}
        return [name + " {", *("  " + line for line in sorted(inside)), "}"]


def exports():
    """The modules and types that Exports.swift names."""
    return EXPORT.findall((SOURCES / "Exports.swift").read_text())


def listing(surface, paths):
    lines = [line for path in sorted(paths) for line in [*surface.block(path), ""]]
    return "```swift\n" + "\n".join(lines).rstrip() + "\n```\n"


def apples_own():
    """What only Apple's systems have: the calls by the extension that they stand in."""
    text = (SOURCES / "ClientChallenges.swift").read_text()
    lines = []
    for part in text.split("\n  extension ")[1:]:
        calls = [re.sub(r"\( | \)", lambda match: match[0].strip(), " ".join(call.split()))
                 for call in CALL.findall(part)]
        lines += [f"extension {part.split(' ')[0]} {{", *("  " + call for call in calls), "}", ""]
    return "```swift\n" + "\n".join(lines).rstrip() + "\n```\n"


def parts(surface):
    """The types of an app, of its tests, those named in Exports.swift, and those that all these mention."""
    types = surface.types()
    app, tests = ({path for path, precise in types.items() if surface.modules[precise] == module}
                  for module in ("SslPinning", "SslPinningTesting"))
    named = {(name,) for _, name in exports()}
    named |= {path for path in types if path[:1] in named} - tests
    return app, tests, named, surface.reached(app | tests | named) - app - tests - named


def page(graphs):
    surface = Surface(graphs)
    app, tests, named, behind = parts(surface)
    return (HEAD + "## `import SslPinning`\n\n" + listing(surface, app | named)
            + "\n## On Apple's systems besides\n\n" + apples_own()
            + "\n## `import SslPinningTesting`\n\n" + listing(surface, tests)
            + "\n## Mentioned by these\n\n" + listing(surface, behind))


def write_reached(graphs, folder):
    """The graphs without what of the modules below no app reaches: for the documentation."""
    surface = Surface(graphs)
    seen = set().union(*parts(surface))
    outer = {path[:end] for path in seen for end in range(1, len(path))}
    folder.mkdir(parents=True)
    for path in graphs.glob("*.symbols.json"):
        graph = json.loads(path.read_text())
        if path.name.split(".")[0].split("@")[0] in BELOW:
            graph["symbols"] = [
                symbol for symbol in graph["symbols"] if symbol["kind"]["identifier"] == "swift.extension"
                or surface.path(symbol) in seen | outer or surface.path(symbol)[:-1] in seen]
            left = {symbol["identifier"]["precise"] for symbol in graph["symbols"]}
            graph["relationships"] = [
                relation for relation in graph["relationships"]
                if relation["source"] in left and (relation["target"] in left or "targetFallback" in relation)]
        (folder / path.name).write_text(json.dumps(graph))


def unlike(graphs):
    """Where the two clients differ and should not."""
    surface = Surface(graphs)
    calls = {name: {symbol["pathComponents"][-1]: surface.text(symbol)
                    for symbol in surface.members((name,))} for name in ONLY}
    first, second = calls
    for name, other in ((first, second), (second, first)):
        for call in sorted(set(calls[name]) - set(calls[other]) - ONLY[name]):
            yield f"{name} has {call}, and {other} does not"
        for call in sorted(ONLY[name] - set(calls[name])):
            yield f"{name} has no {call}"
    for call in sorted(set(calls[first]) & set(calls[second])):
        if calls[first][call] != calls[second][call]:
            yield f"the clients' {call} differ"


def faults(graphs, written=None):
    """What is wrong with the surface; nothing where all is well."""
    written = PAGE.read_text() if written is None else written
    differences = list(difflib.unified_diff(
        written.splitlines(), page(graphs).splitlines(), "docs/api.md", "the build", "", "", 0, ""))
    hint = ["docs: the public surface changed; hint: if that is meant, `make api`"]
    return "\n".join([*unlike(graphs), *((hint + differences) if differences else [])])


def self_test(graphs):
    """Takes a call from one client, in a copy, and expects both checks to see it; and Apple's calls to be found."""
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        written = page(graphs)
        for path in graphs.glob("*.symbols.json"):
            graph = json.loads(path.read_text())
            graph["symbols"] = [symbol for symbol in graph["symbols"]
                                if symbol["pathComponents"] != ["FixedPinsClient", "events"]]
            (Path(folder) / path.name).write_text(json.dumps(graph))
        said = faults(Path(folder), written)
        missed += [text for text in ("SslPinningClient has events", "the public surface changed")
                   if text not in said]
    missed += [text for text in ("func evaluate(_ trust: SecTrust, host: String) -> PinEvaluation",
                                 "extension FixedPinsClient {") if text not in apples_own()]
    missed += [text for text in ("enum SslPinningConfig", "class RegistryUpdater", "struct Statement:")
               if text in written]
    for text in missed:
        print(f"api: self-test: wrong about: {text}")
    return 1 if missed else 0


def main(arguments):
    graphs = ROOT / ".build/docs/api"
    symbolgraphs.extract(graphs)
    if arguments == ["--self-test"]:
        return self_test(graphs)
    if arguments == ["--write"]:
        PAGE.write_text(page(graphs))
        return 0
    if arguments:
        print("usage: api.py [--write | --self-test]", file=sys.stderr)
        return 2
    said = faults(graphs)
    if said:
        print(said)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
