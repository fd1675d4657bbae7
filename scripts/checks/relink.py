"""A mutant's programs without a build: compiles only the files that a patch changes, by the commands
of the last build, and links its programs anew with these objects in the place of theirs.

That judges as a whole build does only if no other file would compile to anything else. So it goes for

- a C file, which no other file sees; and
- a Swift file of which nothing changes but bodies of functions, initializers and accessors. The
  compiler says where they are, and every byte outside them must be the same. That is stricter than
  what the compiler's own incremental build goes by;
- unless others see into its bodies: by inlining (`@inlinable` and its like), or because the type
  behind a result (`-> some`) follows from one.

Everything else is a `Doubt`, and so is whatever does not compile or link: a build decides then.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

FUNCTION = re.compile(rb" *\((?:\w+=)?(?:func|accessor|constructor|destructor)_decl ")
BODY = re.compile(rb" *\((?:\w+=)?brace_stmt range=\[[^\]]*:(\d+):(\d+) - line:(\d+):(\d+)\]")
SEEN_INTO = re.compile(rb"@(?:_\w|inlin|export|speciali|backDeployed|frozen)|->[^{}]*\bsome\b")
# The compiler drops what a condition leaves out, and here at times what it does not.
CONDITION = re.compile(rb"^[ \t]*#(?:if|elseif|else|endif)\b[^\n]*", re.M)
# Of a module's command: what makes it build all of the module, or notes it down.
WHOLE = {"-incremental", "-enable-batch-mode", "-parseable-output", "-serialize-diagnostics",
         "-emit-dependencies"}


class Doubt(Exception):
    """Why a build must decide."""


def outside_bodies(text, dump):
    """A Swift file's bytes without the bodies of its functions, by what `-dump-parse` says of it."""
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    functions, bodies = [], []  # the depths of the functions around; (start, end) of the bodies
    for line in dump.splitlines():
        depth = len(line) - len(line.lstrip(b" "))
        while functions and functions[-1] >= depth:
            functions.pop()
        if FUNCTION.match(line):
            functions.append(depth)
        elif functions and functions[-1] == depth - 2 and (match := BODY.match(line)):
            line1, column1, line2, column2 = map(int, match.groups())
            bodies.append((lines[line1 - 1] + column1 - 1, lines[line2 - 1] + column2))
    kept, at = [], 0
    for start, end in sorted(bodies):
        if start < at:
            continue  # a function in a function
        if text[start:start + 1] + text[end - 1:end] != b"{}":
            raise Doubt("the compiler's places do not fit the file")
        kept += [text[at:start], b"{}"]
        at = end
    return b"".join(kept) + text[at:]


def run(command, what):
    done = subprocess.run(command, capture_output=True)
    if done.returncode:
        raise Doubt(f"{what}: {done.stderr.decode(errors='replace').strip()[-300:]}")
    return done.stdout


def without(command, *options):
    """The command without these options and the value that follows each."""
    kept, left = [], list(command)
    while left:
        word = left.pop(0)
        if word in options:
            left.pop(0)
        else:
            kept.append(word)
    return kept


class Plan:
    """The commands of the last build of `tree`."""

    def __init__(self, tree, build):
        self.tree, self.build = tree, (build / "debug").resolve()
        self.folder = build.parent / "plan"
        self.folder.mkdir(exist_ok=True)
        text = (build / "debug.yaml").read_text()
        self.commands = [
            {part: json.loads(value) for part, value in re.findall(r"^    (\w+): (\[.*\])$", each, re.M)}
            for each in re.split(r'^  (?="[^\n]*":\n    tool: )', text, flags=re.M)[1:]]
        self.compiles, self.outside, self.links = {}, {}, {}

    def made_by(self, wanted):
        """The arguments of the one command for which this is true."""
        found = [each["args"] for each in self.commands if each.get("args") and wanted(each)]
        if len(found) != 1:
            raise Doubt(f"{len(found)} commands do it")
        return found[0]

    def compile(self, file):
        """How the build compiles this file alone; what it writes is missing."""
        path = str(self.tree / file)
        if file.endswith(".c"):
            command = self.made_by(lambda each: each["inputs"] == [path])
            return without(command, "-index-store-path", "-MF", "-MT", "-o")
        if path not in self.compiles:
            whole = without(self.made_by(lambda each: path in each["inputs"]), "-index-store-path")
            jobs = run([word for word in whole if word not in WHOLE] + ["-driver-print-jobs"], "the driver")
            for words in map(shlex.split, jobs.decode().splitlines()):
                if "-primary-file" in words and "-c" in words:
                    primary = words[words.index("-primary-file") + 1]
                    self.compiles[primary] = without(words, "-o")
        if path not in self.compiles:
            raise Doubt(f"nothing compiles {file}")
        return self.compiles[path]

    def swapped_objects(self, patched, place):
        """Compiles the files below `patched`; {the build's object: the one that stands in for it}."""
        files = sorted(str(path.relative_to(patched)) for path in patched.rglob("*") if path.is_file())
        overlay = place / "overlay.json"
        overlay.write_text(json.dumps({
            "version": 0, "case-sensitive": "true", "use-external-names": "false",
            "roots": [{"type": "file", "name": str(self.tree / file),
                       "external-contents": str(patched / file)} for file in files]}))
        objects = {}
        for number, file in enumerate(files):
            if not file.endswith((".c", ".swift")):
                raise Doubt(f"no object comes of {file}")
            command = self.compile(file)
            if file.endswith(".swift"):
                if file not in self.outside:
                    self.outside[file] = self.seen_of(self.tree / file, command, place)
                if self.outside[file] != self.seen_of(patched / file, command, place):
                    raise Doubt(f"it changes what others see of {file}")
                if SEEN_INTO.search(self.outside[file]):
                    raise Doubt(f"others see into {file}")
            option = "-vfsoverlay" if file.endswith(".swift") else "-ivfsoverlay"
            made = place / f"{number}.o"
            run([*command, option, str(overlay), "-o", str(made)], "does not compile")
            objects[self.object(file)] = str(made)
        return objects

    def seen_of(self, path, command, place):
        """What other files see of this one."""
        text, parsed = path.read_bytes(), place / "parsed.swift"
        parsed.write_bytes(CONDITION.sub(lambda found: b" " * len(found[0]), text))
        language = command[command.index("-swift-version") + 1]
        return outside_bodies(text, run(
            [command[0], "-frontend", "-dump-parse", "-parse-as-library", "-swift-version", language,
             str(parsed)], "does not parse"))

    def object(self, file):
        """Where the build puts what it compiles of this file."""
        path, ending = str(self.tree / file), f"/{Path(file).name}.o"
        return next(output for each in self.commands if path in each.get("inputs", [])
                    for output in each["outputs"] if output.endswith(ending))

    def link(self, program):
        """How the build links a program; what it writes is missing. LLVM's linker takes a third of
        the time of the one that Debian's Swift uses, and nothing here reads what tells a debugger."""
        if program not in self.links:
            command = self.made_by(lambda each: each["outputs"] == [str(self.build / program)])
            extract, link = map(shlex.split, run(command + ["-driver-print-jobs"], "the driver")
                                .decode().splitlines())
            libraries = self.folder / f"{program}.autolink"
            theirs = extract[extract.index("-o") + 1]
            run([*without(extract, "-o"), "-o", str(libraries)], "the libraries")
            libraries.write_text("\n".join(dict.fromkeys(libraries.read_text().split("\n"))))
            link = [f"@{libraries}" if word == f"@{theirs}" else word for word in without(link, "-o")]
            self.links[program] = link + ["-fuse-ld=lld", "-Xlinker", "--strip-debug"]
        return self.links[program]

    def put_together(self, programs, objects, place):
        """Links each program in `place` if one of the objects belongs into it; else it is the build's."""
        for program in programs:
            command = self.link(program)
            path = place / program
            path.unlink(missing_ok=True)
            if objects and not any(word in objects for word in command):
                os.link(self.build / program, path)
            else:
                run([objects.get(word, word) for word in command] + ["-o", str(path)], "does not link")


def emptied(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


SWIFT = b"""struct A {
  let kept = { 1 }
  init() { self.b = 2 }
  func first() -> Int { func second() {}; return 3 }
  var e: Int { get { 4 } set {} }
}
"""
DUMP = b"""(source_file "a.swift"
  (struct_decl range=[a.swift:1:1 - line:6:1] "A"
    (pattern_binding_decl range=[a.swift:2:3 - line:2:18]
      (original_init=closure_expr type="<null>"
        (brace_stmt range=[a.swift:2:14 - line:2:18])))
    (constructor_decl range=[a.swift:3:3 - line:3:23] "init()"
      (brace_stmt range=[a.swift:3:10 - line:3:23]))
    (func_decl range=[a.swift:4:3 - line:4:52] "first()"
      (brace_stmt range=[a.swift:4:23 - line:4:52]
        (func_decl range=[a.swift:4:25 - line:4:40] "second()"
          (brace_stmt range=[a.swift:4:39 - line:4:40]))))
    (var_decl range=[a.swift:5:7 - line:5:7] "e"
      (accessor_decl range=[a.swift:5:16 - line:5:24] get for="e"
        (brace_stmt range=[a.swift:5:20 - line:5:24]))
      (accessor_decl range=[a.swift:5:26 - line:5:31] set for="e"
        (brace_stmt range=[a.swift:5:30 - line:5:31])))))
"""


def self_test():
    problems = []
    seen = outside_bodies(SWIFT, DUMP)
    if seen != (b"struct A {\n  let kept = { 1 }\n  init() {}\n  func first() -> Int {}\n"
                b"  var e: Int { get {} set {} }\n}\n"):
        problems.append(f"outside bodies stands {seen}")
    try:
        outside_bodies(b" " + SWIFT, DUMP.replace(b":3:10 ", b":3:11 "))
        problems.append("places that do not fit are taken")
    except Doubt:
        pass
    for text in (b"@inlinable func a() {}", b"@_transparent func a() {}", b"func a() -> some B {}",
                 b"var a: () -> (some B) {}", b"@inline(__always) func a() {}"):
        if not SEEN_INTO.search(text):
            problems.append(f"not seen into: {text}")
    if SEEN_INTO.search(b"@Sendable func a(_ b: some B) throws -> Int {}"):
        problems.append("a parameter is taken for a result")
    if without(["a", "-o", "b", "c"], "-o") != ["a", "c"]:
        problems.append("an option's value stays")
    return problems
