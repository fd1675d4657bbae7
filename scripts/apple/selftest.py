"""Shows that the check can fail: errors of each kind, in every file that an app links.

- Planted in the sources, in all files at once, and found in each: a wrong type, a wrong label, a
  wrong optionality, a symbol that the oldest systems lack, and one that facts.tsv has no row for.
- At the uses that are there: a label of Apple's in each file that has one, and the name of each
  method of a delegate, one at a time.
- In facts.tsv: each row taken away, and found missing in each file that uses the symbol.
- In the stubs: for each file symbols that it uses, with another label, optionality, availability or
  sendability.
"""

import re
import shutil
import tempfile
from pathlib import Path

import compiling
import facts
from compiling import OUT, ROOT, STUBS, TARGETS, Failed, home

TRIPLE = next(iter(compiling.triples()))
MODULES = OUT / TRIPLE / "modules"

# What is planted at the end of every file, by kind. `URLSession.shared` has a stub and no row.
PLANTS = {
    "wrong type": 'private let planted: Int = "a text"',
    "wrong label": "private func planted() { _ = URL(text: \"\") }",
    "wrong optionality": "private func planted(_ url: URL) -> String { url.host }",
    "unavailable symbol": """private func planted(
  _ asked: any URLSessionTaskDelegate, _ session: URLSession, _ task: URLSessionTask
) { asked.urlSession?(session, didCreateTask: task) }""",
    "missing row": "private func planted() { _ = URLSession.shared }",
}
UNLISTED = ("Foundation", "URLSession.shared")

# Errors of other kinds: target, file, text, what takes its place.
FLAWS = [
    # What the oldest promised system does not have.
    ("SslPinningPlatform", "Locked.swift", "import Foundation\n", "import Foundation\n\n"
     "private func planted() async throws { try await Task.sleep(for: .seconds(1)) }\n"),
    # A value that two threads would share.
    ("SslPinningPlatform", "Locked.swift", "import Foundation\n", "import Foundation\nimport Security\n\n"
     "private func planted(_ trust: SecTrust) { Task.detached { _ = trust } }\n"),
    ("App", "ContentView.swift", "Form {", "NavigationStack {"),
    # What no app may use: a symbol of the package's own.
    ("App", "Sessions.swift", "client.refusal(for: error)",
     'Optional(PinEvaluation(host: "", outcome: .matched, decision: .accept))'),
    ("Listings", "Recipes-2.swift", "didReceive challenge:", "didRecieve challenge:"),
    ("Listings", "Recipes-1.swift", "client.evaluate(trust, host: host)",
     "client.evaluate(trust, host: nil)"),
    # The model off the main actor.
    ("App", "RequestModel.swift", "@MainActor\n", ""),
]
# What one system lacks and the others have.
ELSEWHERE = "import SwiftUI\n\nprivate typealias Planted = DisclosureGroup<Text, Text>"


class Trial:
    """A copy of the sources that errors are planted in, and the errors that nothing found."""

    def __init__(self, copy):
        self.copy, self.missed, self.found = Path(copy), [], 0

    def expect(self, is_found, what):
        self.found += bool(is_found)
        if not is_found:
            self.missed.append(what)

    def fresh(self, name):
        """The files of a target, as they are, in the copy."""
        folder = self.copy / home(name)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(ROOT / home(name), folder)
        return [path for path in compiling.files_of(name, TRIPLE, self.copy)
                if not path.read_text().startswith("#if os(Linux)")]

    def said(self, name, triple=TRIPLE):
        """What the compiler says of a target of the copy, without writing its module."""
        try:
            compiling.indexed(name, triple, self.copy, OUT / triple / "modules", self.copy / "index")
            return ""
        except Failed as failure:
            return str(failure)


def plant(path, error):
    """Adds `error` to a source file, inside its platform condition if it has one."""
    lines = path.read_text().rstrip("\n").split("\n")
    place = len(lines) - 1 if lines[-1] == "#endif" else len(lines)
    path.write_text("\n".join([*lines[:place], "import Foundation", error, *lines[place:]]) + "\n")


def planted(trial, rows, symbols):
    for name in TARGETS:
        for kind, error in PLANTS.items():
            files = trial.fresh(name)
            for path in files:
                plant(path, error)
            if kind != "missing row":
                said = trial.said(name)
                for path in files:
                    trial.expect(f"{path}:" in said, f"{kind} in {path.name}")
                continue
            uses = facts.by_symbol(
                compiling.indexed(name, TRIPLE, trial.copy, MODULES, trial.copy / "index"),
                trial.copy, compiling.FRAMEWORKS, TARGETS, symbols)
            faults, _ = facts.judge(rows, symbols, uses, compiling.minimums())
            seen = {file for fault in faults if fault.key == UNLISTED for file in fault.files}
            for path in files:
                trial.expect(str(path.relative_to(trial.copy)) in seen, f"{kind} in {path.name}")
        trial.fresh(name)


def mislabelled(text, use, path):
    """A file's text with one label of a symbol of Apple's misspelt where it is used; None where the
    use has no label."""
    labels = [label for label in re.findall(r"(\w+):", path) if label != "_"]
    lines = text.split("\n")
    begin = sum(len(line) + 1 for line in lines[:use.line - 1])
    begin += len(lines[use.line - 1].encode()[:use.column - 1].decode())
    opened = re.compile(r"`?\w+`?\(").match(text, begin)
    if not opened:
        return None
    depth, end = 1, opened.end()
    while depth and end < len(text):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    for label in labels:
        at = re.compile(rf"[(,]\s*({label})(?: \w+)?:").search(text, opened.end() - 1, end)
        if at:
            return text[:at.end(1)] + "x" + text[at.end(1):]
    return None


def labels(trial, uses, symbols):
    """One label in each file, all at once; then each method of a delegate alone."""
    for name in TARGETS:
        trial.fresh(name)
        changed, methods = {}, []
        for use in uses[name]:
            symbol = symbols.get(use.usr)
            file = trial.copy / Path(use.file).relative_to(ROOT)
            if symbol is None or "(" not in symbol.key[1]:
                continue
            text = mislabelled(file.read_text(), use, symbol.key[1])
            if text and "optional func" in symbol.declaration and use.answers:
                methods.append((file, text, symbol.key[1]))
            elif text:
                changed.setdefault(file, text)
        for file, text in changed.items():
            file.write_text(text)
        said = trial.said(name) if changed else ""
        for file in changed:
            trial.expect(f"{file}:" in said, f"wrong label at a use in {file.name}")
        for file, text, path in methods:
            trial.fresh(name)
            file.write_text(text)
            trial.expect(f"{file}:" in trial.said(name), f"{path} misspelt in {file.name}")
        trial.fresh(name)


def flaws(trial):
    for name, file, old, new in FLAWS:
        trial.fresh(name)
        path = trial.copy / home(name) / file
        text = path.read_text()
        path.write_text(text.replace(old, new, 1))
        said = ""
        try:
            compiling.check(TRIPLE, trial.copy, only=[name], keep=True)
        except Failed as failure:
            said = str(failure)
        # An error of isolation is told where the value crosses over, which may be another file.
        trial.expect(old in text and str(trial.copy / home(name)) in said,
                     f"{(new or old).strip()[-60:]!r} in {file}")
        trial.fresh(name)
    compiling.check(TRIPLE, ROOT, only=["App"], keep=True)
    for triple, system in compiling.triples().items():
        if system not in ("tvos", "watchos"):
            continue
        compiling.check(triple, ROOT, only=["CanonicalJSON"])
        trial.fresh("CanonicalJSON")
        path = trial.copy / home("CanonicalJSON") / "Canonicalize.swift"
        path.write_text(path.read_text() + ELSEWHERE + "\n")
        trial.expect("is unavailable in" in trial.said("CanonicalJSON", triple),
                     f"what {triple} lacks")
    trial.fresh("CanonicalJSON")


def rows_taken(trial, rows, symbols, used):
    """Each row of a symbol that is used."""
    keys = {symbols[usr].key for usr in used}
    for key in sorted(keys):
        left = [row for row in rows if row.key != key]
        faults, _ = facts.judge(left, symbols, used, compiling.minimums())
        seen = {file for fault in faults if fault.key == key for file in fault.files}
        wanted = {file for usr in used if symbols[usr].key == key for file in used[usr]}
        trial.expect(wanted <= seen, f"row of {'.'.join(key)} taken away")


def altered(kind, symbol, line):
    """The line that declares a symbol, changed; None where that kind of change is not for it."""
    if kind == "label":
        changed = re.sub(r"([(,]\s*)([a-z]\w*)(?: (\w+))?:",
                         lambda part: f"{part[1]}{part[2]}x {part[3] or part[2]}:", line, count=1)
        return changed if re.search(r"\b(?:func|init)\b", line) and changed != line else None
    name = re.escape(symbol.key[1].split("(")[0].split(".")[-1])
    if kind == "optionality":
        changed = re.sub(rf"(\bvar `?{name}`?: [^={{]*?)\?( \{{.*)$", r"\1\2", line)
        if changed == line:
            changed = re.sub(rf"(\bvar `?{name}`?: [^={{?]*?)( \{{.*|)$", r"\1?\2", line)
        if changed == line:
            changed = re.sub(rf"(\bfunc {name}\b.*-> [\w.]+)( \{{.*|)$", r"\1?\2", line)
        return changed if changed != line else None
    if kind == "availability":
        return f"@available(iOS 99.0, macOS 99.0, tvOS 99.0, watchOS 99.0, *)\n{line}" \
            if re.match(r"\s*(?:@\w+ )?(?:open|public|nonisolated)\b", line) else None
    # What is an Error is Sendable by that.
    changed = re.sub(rf"(\b(?:class|struct|enum|protocol) {name}\b[^{{]*?)(?:, |: )"
                     r"(?:@unchecked )?Sendable(?= \{)", r"\1", line)
    return changed if changed != line and "Error" not in line else None


def choose(kind, used, symbols, unfit):
    """For each file the first symbol that it uses and that can be changed so: by USR the place of
    its declaration and the changed line; and the files that have one."""
    chosen, covered = {}, set()
    for file in sorted({file for files in used.values() for file in files}):
        for usr in sorted(usr for usr in used if file in used[usr] and usr not in unfit):
            symbol = symbols[usr]
            if not symbol.file:
                continue  # Inherited, or made by the compiler.
            path = Path(symbol.file)
            text = altered(kind, symbol, path.read_text().split("\n")[symbol.line - 1])
            if text:
                chosen[usr] = (path.relative_to(STUBS), symbol.line, text)
                covered.add(file)
                break
    return chosen, covered


def culprits(chosen, place, symbols, said):
    """Whose change the compiler did not take: the one at the place that it names, else those of the
    file that it names, else those that it names."""
    return {usr for usr, (path, line, _) in chosen.items() if f"{place / path}:{line}:" in said} \
        or {usr for usr, (path, _, _) in chosen.items() if f"{place / path}:" in said} \
        or {usr for usr in chosen
            if re.search(rf"\b{re.escape(symbols[usr].key[1].split('(')[0].split('.')[-1])}\b", said)}


def different(kind, used, symbols, place, modules):
    """Stubs that declare something else, and the symbols that do. What the stubs themselves or the
    compiler need as it is stays."""
    unfit = set()
    while True:
        chosen, covered = choose(kind, used, symbols, unfit)
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(STUBS, place)
        for path in {path for path, _, _ in chosen.values()}:
            lines = (place / path).read_text().split("\n")
            for _, line, text in [one for one in chosen.values() if one[0] == path]:
                lines[line - 1] = text
            (place / path).write_text("\n".join(lines))
        try:
            compiling.stubs(TRIPLE, modules, place)
            return chosen, covered
        except Failed as failure:
            told = culprits(chosen, place, symbols, str(failure))
            if not told:
                raise
            unfit |= told


def stubs_differ(trial, rows, used, symbols):
    """Stubs with another label, optionality, availability or sendability of what each file uses."""
    left = {file for files in used.values() for file in files}
    for kind in ("label", "optionality", "availability", "sendability"):
        modules = trial.copy / f"modules-{kind}"
        chosen, covered = different(kind, used, symbols, trial.copy / "stubs", modules)
        compiling.declared(TRIPLE, modules, trial.copy / "declared")
        faults, _ = facts.judge(rows, facts.symbols(trial.copy / "declared"), used,
                                compiling.minimums())
        told = {fault.key for fault in faults}
        for usr in chosen:
            # Under another label or type the symbol is another one: the one in use is gone.
            trial.expect(symbols[usr].key in told or (usr,) in told,
                         f"stub of {'.'.join(symbols[usr].key)} with another {kind}")
        left -= covered
    for file in left:
        trial.expect(False, f"a stub that differs for {file}")


def malformed(trial):
    """Rows that nothing can be compared with."""
    good = facts.FACTS.read_text()
    row = good.rstrip("\n").split("\n")[-1]
    cells = row.split("\t")
    for what, bad in [
            ("a row that stands twice", row),
            ("a row without a source", "\t".join([*cells[:8], "", *cells[9:]])),
            ("a version that is none", "\t".join([*cells[:3], "?", *cells[4:]])),
            ("a row that is cut off", "\t".join(cells[:9])),
            ("a stub that differs without a why",
             "\t".join([*cells[:9], "Foundation: let other: Int", ""]))]:
        try:
            facts.rows(good + bad + "\n")
            trial.expect(False, what)
        except facts.Malformed:
            trial.expect(True, what)


def run():
    """Exit code 0 where every planted error was found."""
    compiling.check(TRIPLE, ROOT)
    uses = {name: compiling.indexed(name, TRIPLE, ROOT, MODULES, OUT / TRIPLE / "index" / name)
            for name in TARGETS}
    compiling.declared(TRIPLE, MODULES, OUT / "declared")
    rows, symbols = facts.rows(facts.FACTS.read_text()), facts.symbols(OUT / "declared")
    used = facts.by_symbol([use for found in uses.values() for use in found], ROOT,
                           compiling.FRAMEWORKS, TARGETS, symbols)
    with tempfile.TemporaryDirectory() as copy:
        trial = Trial(copy)
        planted(trial, rows, symbols)
        labels(trial, uses, symbols)
        flaws(trial)
        rows_taken(trial, rows, symbols, used)
        stubs_differ(trial, rows, used, symbols)
        malformed(trial)
    for what in trial.missed:
        print(f"check-apple: self-test: not found: {what}")
    if not trial.missed:
        print(f"check-apple: self-test: ok, {trial.found} planted errors are found, in every file")
    return 1 if trial.missed else 0
