#!/usr/bin/env python3
"""Public symbols are documented: what they are, what they throw, what their numbers count.

    doc-comments.py FOLDER…      check the symbol graphs in these folders
    doc-comments.py --self-test  check samples, good and bad

- A public symbol has a comment of its own, or one that it inherits from a protocol.
- One that throws says what.
- One with a time (Int64, Double) says its unit, unless the name of the type or of the number says
  that it is none: an epoch, a version. What an initializer takes counts as documented where a property
  of the same name is there.
"""

import json
import re
import sys
from pathlib import Path

TIMES = {"Int64", "Double", "TimeInterval", "Duration"}
UNIT = re.compile(r"\b(seconds?|minutes?|hours?|days?|bytes|0\.\.<1|how (many|often)"
                  r"|Unix time)\b", re.I)
NO_UNIT = re.compile(r"epoch|version|threshold|failures|^(integer|real)$", re.I)
# Members that every type of their kind has, and that say no more than their name.
PLAIN = {"==(_:_:)", "!=(_:_:)", "<(_:_:)", "hash(into:)", "encode(to:)", "init(from:)"}


def text_of(symbol):
    lines = symbol.get("docComment", {}).get("lines", [])
    return "\n".join(line["text"] for line in lines)


def numbers(symbol):
    """The labels of what in a declaration may be a time."""
    label, found = "", []
    for fragment in symbol.get("declarationFragments", []):
        if fragment["kind"] in ("identifier", "externalParam", "internalParam"):
            label = fragment["spelling"]
        elif fragment["kind"] == "typeIdentifier" and fragment["spelling"] in TIMES:
            found.append(label)
    return found


def problems(symbol, properties):
    """What is wrong with one symbol, of a type with these properties."""
    kind, name = symbol["kind"]["identifier"], symbol["names"]["title"]
    plain = symbol["pathComponents"][-1] in PLAIN
    if kind in ("swift.extension", "swift.module") or plain or "::SYNTHESIZED::" in \
            symbol["identifier"]["precise"]:
        return
    text = text_of(symbol)
    if not text.strip():
        yield f"{name} has no comment"
        return
    fragments = symbol.get("declarationFragments", [])
    throws = any(part["kind"] == "keyword" and part["spelling"] == "throws" for part in fragments)
    if throws and not re.search(r"\bthrow", text, re.I):
        yield f"{name} does not say what it throws"
    name_says = NO_UNIT.search(symbol["pathComponents"][-1].split("(")[0])
    silent = [label for label in numbers(symbol) if not name_says and not NO_UNIT.search(label)
              and not (kind == "swift.init" and label in properties)]
    if silent and not UNIT.search(text):
        yield f"{name} does not say what {', '.join(silent)} counts"


def check(graph):
    """Each problem of a symbol graph, as (path, line, message)."""
    properties = {}
    for symbol in graph["symbols"]:
        path = symbol["pathComponents"]
        if symbol["kind"]["identifier"] == "swift.property":
            properties.setdefault(tuple(path[:-1]), set()).add(path[-1])
    for symbol in graph["symbols"]:
        location = symbol.get("location", {})
        path = location.get("uri", "").removeprefix("file://") or graph["module"]["name"]
        line = location.get("position", {}).get("line", 0) + 1
        known = properties.get(tuple(symbol["pathComponents"][:-1]), set())
        for problem in problems(symbol, known):
            yield path, line, problem


def sample(declaration, comment, kind="swift.method", name="a", properties=()):
    words = {"throws": "keyword", **{time: "typeIdentifier" for time in TIMES}}
    fragments = [{"kind": words.get(word, "externalParam"), "spelling": word}
                 for word in re.findall(r"\w+", declaration)]

    def symbol(kind, name, text, fragments):
        return {"kind": {"identifier": kind}, "names": {"title": name},
                "identifier": {"precise": f"s:{name}"}, "pathComponents": ["T", name],
                "declarationFragments": fragments,
                **({"docComment": {"lines": [{"text": text}]}} if text is not None else {})}

    return {"module": {"name": "M"},
            "symbols": [symbol(kind, name, comment, fragments)]
            + [symbol("swift.property", other, "Seconds.", []) for other in properties]}


BAD = [
    sample("func a()", None),
    sample("func a()", " "),
    sample("func a() throws", "Does a."),
    sample("func a(delay Double)", "Does a, later."),
    sample("let expires Int64", "When it ends.", "swift.property"),
    sample("init(expires Int64)", "Makes one.", "swift.init", "init(expires:)", ["issued"]),
]
GOOD = [
    sample("func a()", "Does a."),
    sample("func a() throws", "Does a.\n- Throws: `E`."),
    sample("func a(delay Double)", "Does a after so many seconds."),
    sample("let epoch Int64", "The key set's.", "swift.property"),
    sample("init(expires Int64)", "Makes one.", "swift.init", "init(expires:)", ["expires"]),
    sample("func hash", None, name="hash(into:)"),
    sample("extension", None, "swift.extension"),
]


def self_test():
    wrong = [graph["symbols"][0] for graph in BAD if len(list(check(graph))) != 1]
    wrong += [graph["symbols"][0] for graph in GOOD if list(check(graph))]
    for symbol in wrong:
        print(f"doc-comments: self-test: judged wrongly: {symbol}")
    return 1 if wrong else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    graphs = [path for folder in arguments for path in sorted(Path(folder).glob("*.symbols.json"))]
    if not graphs:
        print("usage: doc-comments.py FOLDER… | --self-test; and there must be symbol graphs",
              file=sys.stderr)
        return 2
    found = sorted({problem for path in graphs for problem in check(json.loads(path.read_text()))})
    for path, line, problem in found:
        print(f"{path}:{line}: error: {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
