"""What Apple declares (facts.tsv), held against what the stubs declare and what the sources use.

- A symbol that a source uses and that has no row is a fault. So is a stub that says something else
  than its row: another label, type, optionality, isolation or sendability, or an availability that
  the oldest promised systems would notice.
- The compiler says what a source uses (its index) and what a stub declares (its symbol graph):
  nothing is guessed from text.
- Declarations are compared without what no caller can notice: names of parameters behind their
  labels, `open`, `final`, `@objc`, conformances other than a superclass, `Error` and `Sendable`.
"""

import collections
import json
import re
from pathlib import Path

FACTS = Path(__file__).resolve().parent / "facts.tsv"
SYSTEMS = {"ios": "iOS", "macos": "macOS", "tvos": "tvOS", "watchos": "watchOS",
           "visionos": "visionOS"}
COLUMNS = ["module", "symbol", "declaration", *SYSTEMS, "source", "stub", "note"]
NONE = "-"
# Where an availability names iOS alone, visionOS follows it (clang's rule): its first version has
# what iOS 17.1 has.
VISION_BEGAN = (17, 1)

UNSEEN = re.compile(
    r"@(?:objc|frozen|preconcurrency|propertyWrapper|discardableResult|NSCopying|unchecked"
    r"|_inheritActorContext|convention\(block\)|dynamicMemberLookup) |"
    r"\b(?:open|public|final|override|convenience|required|dynamic|nonisolated\(unsafe\)) ")
# What may stand first behind a class that has no superclass.
PROTOCOLS = {"", "Error", "Sendable", "Hashable", "NSObjectProtocol"}
CONFORMANCES = {"s:s8SendableP": ["Sendable"], "s:s5ErrorP": ["Error"]}
# Accessors stand beside their property, and an initializer that is inherited beside its class.
ACCESSOR = re.compile(r"(?:v[gsMr]|i[gsMr])Z?$|\(im\)init$")
HEAD = re.compile(r"((?:@\w+ )*(?:indirect )?(?:class|struct|enum) \S+)(?: : (.*?))?( where .*)?$")


class Malformed(Exception):
    """A facts file that nothing can be compared with."""


class Row:
    """What Apple declares of one symbol, and where that is written."""

    def __init__(self, line, cells):
        self.line = line
        for name, cell in zip(COLUMNS, cells):
            setattr(self, name, cell)
        # What the stub says instead, if it cannot say what Apple does: "Module: declaration".
        module, declaration = re.fullmatch(r"(?:(\w+):(?: |$))?(.*)", self.stub).groups()
        self.key = (module or self.module, self.symbol)
        self.since = {system: since(getattr(self, system), line) for system in SYSTEMS}
        self.compared = canonical(declaration or self.declaration)


class Symbol:
    """What a stub declares, and where."""

    def __init__(self, module, path, declaration, since, file, line):
        self.key, self.declaration, self.since = (module, path), declaration, since
        self.compared = canonical(declaration)
        self.file, self.line = file, line

    def row(self):
        """The row that this declaration would have; what only Apple knows is left as `?`."""
        cells = [*self.key, self.declaration, *["?" for _ in SYSTEMS], "?", "", ""]
        return "\t".join(cells)


class Fault:
    """Why the check fails, and the files that use the symbol."""

    def __init__(self, key, text, files):
        self.key, self.text, self.files = key, text, files

    def __str__(self):
        return f"{'.'.join(self.key)}: {self.text}\n    used in {', '.join(self.files)}"


def since(cell, line):
    """A version as numbers; None for a system that does not have the symbol. Raises Malformed."""
    if cell == NONE:
        return None
    if not re.fullmatch(r"\d+(\.\d+)*", cell):
        raise Malformed(f"facts.tsv:{line}: {cell!r} is no version of a system; {NONE!r} for none")
    return version(cell)


def version(text):
    numbers = [int(part) for part in text.split(".")]
    return tuple(numbers + [0] * (3 - len(numbers)))


def rows(text):
    """The rows of a facts file. Raises Malformed."""
    found, seen = [], set()
    for number, line in enumerate(text.rstrip("\n").split("\n"), 1):
        if line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != len(COLUMNS) or not all(cells[:-2]):
            raise Malformed(f"facts.tsv:{number}: a row has {len(COLUMNS)} cells, "
                            "and only stub and note may be empty")
        if cells[-2] and not cells[-1]:
            raise Malformed(f"facts.tsv:{number}: the note must say why the stub differs")
        if cells == COLUMNS:
            continue
        row = Row(number, cells)
        if (row.key, row.compared) in seen:
            raise Malformed(f"facts.tsv:{number}: {row.symbol} is declared twice alike")
        seen.add((row.key, row.compared))
        found.append(row)
    return found


def canonical(declaration):
    """A declaration without what no caller can notice."""
    text = UNSEEN.sub("", " ".join(declaration.split()))
    text = re.sub(r"^@MainActor (?!protocol|class|struct|enum)", "", text)
    head = HEAD.match(text)
    if head:
        names = (head[2] or "").split(", ")
        kept = names[:1] if " class " in f" {head[1]} " and names[0] not in PROTOCOLS else []
        kept += [name for name in ("Error", "Sendable") if name in names]
        return head[1] + (f" : {', '.join(kept)}" if kept else "") + (head[3] or "")
    opened = text.find("(")
    if re.search(r"\b(?:func|init|subscript)\b", text) and opened >= 0:
        text = text[:opened] + re.sub(r"(\w+|_) \w+:", r"\1:", text[opened:])
    if re.match(r"(?:.* )?var ", text) and "{" not in text:
        text += " { get set }"
    return text


def symbols(folder):
    """What the stubs of a folder of symbol graphs declare, by USR."""
    graphs = [(path.name.split(".")[0].split("@")[0], json.loads(path.read_text()))
              for path in sorted(Path(folder).glob("*.symbols.json"))]
    inherits, parents = collections.defaultdict(list), {}
    for _, graph in graphs:
        for relation in graph["relationships"]:
            target = relation["target"]
            if relation["kind"] == "inheritsFrom":
                name = relation.get("targetFallback", re.split("[()]", target)[-1]).split(".")[-1]
                inherits[relation["source"]][:0] = [] if name.startswith("_") else [name]
            elif relation["kind"] == "conformsTo" and not relation.get("swiftConstraints"):
                inherits[relation["source"]] += CONFORMANCES.get(target, [])
            elif relation["kind"] in ("memberOf", "requirementOf", "optionalRequirementOf"):
                parents[relation["source"]] = relation["target"]
    declared = {symbol["identifier"]["precise"]: (module, symbol)
                for module, graph in graphs for symbol in graph["symbols"]
                if "::SYNTHESIZED::" not in symbol["identifier"]["precise"]}
    return {usr: symbol_of(usr, declared, parents, inherits) for usr in declared}


def symbol_of(usr, declared, parents, inherits):
    module, symbol = declared[usr]
    text = " ".join("".join(part["spelling"] for part in symbol["declarationFragments"]).split())
    text = re.sub(r"@(?:objc|frozen) |\bfinal ", "", text)
    head = HEAD.match(text)
    if head:
        # What is isolated to the main actor is Sendable by that; Apple's pages do not say it twice.
        names = [name for name in dict.fromkeys(inherits[usr])
                 if name != "Sendable" or "@MainActor" not in text]
        text = head[1] + (f" : {', '.join(names)}" if names else "") + (head[3] or "")
    limits = {}
    while usr in declared:
        for item in declared[usr][1].get("availability", []):
            begins = None if item.get("isUnconditionallyUnavailable") else tuple(
                item.get("introduced", {}).get(part, 0) for part in ("major", "minor", "patch"))
            name = item.get("domain")
            if name in limits and limits[name] is not None and begins is not None:
                begins = max(begins, limits[name])
            limits[name] = begins if name not in limits or limits[name] is not None else None
        usr = parents.get(usr)
    place = symbol.get("location", {})
    return Symbol(module, ".".join(symbol["pathComponents"]), text, limits,
                  place.get("uri", "").removeprefix("file://"),
                  place.get("position", {}).get("line", -1) + 1)


def by_symbol(uses, root, modules, extending, declared):
    """The files that use each symbol of the modules, by USR, relative to `root`: what a stub
    declares, and what looks as if one did, save for what modules that extend its types add."""
    ours = re.compile("|".join(f"{len(name)}{name}E" for name in extending))
    own = tuple(f"s:{len(name)}{name}" for name in modules) + tuple(
        f"c:@M@{name}@" for name in modules)
    found = collections.defaultdict(set)
    for use in uses:
        path = Path(use.file)
        if use.usr in declared or (use.usr.startswith(own) and not ACCESSOR.search(use.usr)
                                   and not ours.search(use.usr)):
            found[use.usr].add(str(path.relative_to(root) if path.is_relative_to(root) else path))
    return found


def noticed(limits, system, minimum):
    """When a symbol begins as an app notices it that begins at `minimum`; None for never."""
    name = SYSTEMS[system]
    if system == "visionos" and name not in limits and "iOS" in limits:
        begins = limits["iOS"]
        return minimum if begins is not None and begins[:2] <= VISION_BEGAN else begins
    begins = limits.get(name, minimum)
    return None if begins is None else max(begins, minimum)


def differences(row, symbol, minimums):
    """What a stub says otherwise than its row."""
    found = []
    if row.compared != symbol.compared:
        found.append(f"Apple declares  {row.compared}\n    the stub says  {symbol.compared}")
    for system, minimum in minimums.items():
        fact = row.since[system]
        fact = None if fact is None else max(fact, minimum)
        stub = noticed(symbol.since, system, minimum)
        if fact != stub:
            found.append(f"{SYSTEMS[system]}: Apple has it from {told(fact)}, "
                         f"the stub from {told(stub)}")
    return found


def told(numbers):
    return ".".join(map(str, numbers[:2])) if numbers else "no version on"


def judge(facts, declared, uses, minimums):
    """The faults, and the rows that nothing uses. `uses` maps USRs to the files that use them."""
    known = collections.defaultdict(list)
    for row in facts:
        known[row.key].append(row)
    faults, used = [], set()
    for usr in sorted(set(uses) | {usr for usr, symbol in declared.items() if symbol.key in known}):
        symbol = declared.get(usr)
        if symbol is None:
            faults.append(Fault((usr,), "no stub is known that declares it", sorted(uses[usr])))
            continue
        files = sorted(uses.get(usr, ["no source"]))
        candidates = known[symbol.key]
        if not candidates:
            faults.append(Fault(symbol.key, "facts.tsv has no row. Look it up, fill in each ?, add:\n"
                                + symbol.row(), files))
            continue
        compared = [(differences(row, symbol, minimums), row) for row in candidates]
        told_apart, row = min(compared, key=lambda pair: len(pair[0]))
        if told_apart and usr not in uses and len(candidates) < sum(
                other.key == symbol.key for other in declared.values()):
            continue  # An overload that no source uses, beside one that has the row.
        if usr in uses:
            used.add(row.line)
        faults += [Fault(symbol.key, text, files) for text in told_apart]
    return faults, [row for row in facts if row.line not in used]
