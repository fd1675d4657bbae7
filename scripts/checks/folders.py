#!/usr/bin/env python3
"""Folders inside a target form no cycle: what uses each other is one idea, and belongs together.

- A folder uses another if a file in it names a type that a file of the other declares at its top level. Files
  beside the folders are a folder of their own, called by the target's name.
- Not counted: a name behind a dot, one that the file declares itself, and a type that several folders declare (the
  two halves of a platform)."""

import re

import checklib

DECLARATION = re.compile(
    r"(?<![\w.`])(?<!import )(?P<access>(?:private|fileprivate)\s+)?(?:final\s+|indirect\s+|nonisolated\s+|distributed\s+)*"
    r"(?:struct|class|enum|actor|protocol|typealias|associatedtype)\s+(?P<name>[A-Z]\w*)")
WORD = re.compile(r"(?<![\w.`@#])[A-Z]\w*")


def declared(code):
    """The types that a file declares: those that other files can name, and all of them."""
    outside, inside, depth, at = set(), set(), 0, 0
    for match in DECLARATION.finditer(code):
        depth += code.count("{", at, match.start()) - code.count("}", at, match.start())
        at = match.start()
        inside.add(match["name"])
        if depth == 0 and not match["access"]:
            outside.add(match["name"])
    return outside, inside


def targets_of(files):
    """{target: {folder: {path: code}}}"""
    targets = {}
    for path, text in files.items():
        target = checklib.target_of(path)
        if target is None or not path.endswith(".swift") or not path.startswith(checklib.SOURCES):
            continue
        parts = path.split(f"/{target}/", 1)[1].split("/")
        folder = parts[0] if len(parts) > 1 else target
        targets.setdefault(target, {}).setdefault(folder, {})[path] = checklib.code_only(text)
    return targets


def uses_of(folders):
    """{folder: {other: (path, line, name)}}, each with the first use."""
    homes, own = {}, {}
    for folder, files in folders.items():
        for path, code in files.items():
            outside, own[path] = declared(code)
            for name in outside:
                homes.setdefault(name, set()).add(folder)
    uses = {folder: {} for folder in folders}
    for folder, files in sorted(folders.items()):
        for path, code in sorted(files.items()):
            for match in WORD.finditer(code):
                home = homes.get(match[0], set())
                if len(home) == 1 and folder not in home and match[0] not in own[path]:
                    line = checklib.line_of(code, match.start())
                    uses[folder].setdefault(*home, (path, line, match[0]))
    return uses


def reached(uses, start):
    found, waiting = set(), [start]
    while waiting:
        for other in uses[waiting.pop()]:
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def check(files):
    offences = []
    for folders in targets_of(files).values():
        uses = uses_of(folders)
        offences += [
            (*place, f"{folder} uses {other} ({name}), and {other} leads back to {folder}")
            for folder in uses for other, (*place, name) in uses[folder].items()
            if folder in reached(uses, other)]
    return offences


def sample(**folders):
    return {f"Sources/T/{name.replace('_', '/')}.swift": text for name, text in folders.items()}


if __name__ == "__main__":
    checklib.main(
        check,
        bad=[
            (sample(A_a="struct One { let two: Two }\n", B_b="\nstruct Two {\n  let one: One\n}\n"), [1, 3]),
            (sample(A_a="struct One: Two {}\n", B_b="protocol Two: Three {}\n",
                    C_c="\n\nprotocol Three { var a: One { get } }\n"), [1, 3]),
            (sample(A_a="struct One { let two: Two }\n", b="\n\nstruct Two { let one: One }\n"), [1, 3]),
            (sample(A_a="#if os(Linux)\n  extension Two {}\n#endif\nenum One {}\n",
                    B_b="struct Two { let one: One }\n"), [1, 2]),
        ],
        good=[
            sample(A_a="struct One { let two: Two }\n",
                    B_b="struct Two {}\n", C_c="struct Three { let one: One; let two: Two }\n"),
            sample(A_a="struct One { let two: Two }\n", A_c="struct Four { let two: Two }\n",
                    B_b="struct Two { let four: Own.Four }\n"),
            sample(A_a="struct One { let two: Two }\n",
                    B_b="// One\nstruct Two { struct One {}; let one: One; let a = \"One\" }\n"),
            sample(A_a="private struct One {}\nstruct Three { let two: Two }\n",
                    B_b="struct Two<One> { let one: One }\n"),
            sample(A_a="struct One { let two: Two }\nimport C\n",
                    B_b="import D\nstruct Two {}\n", c="@_exported public import struct C.Three\nlet one: One\n"),
            sample(A_a="class Twin {}\nstruct One { let two: Two }\n",
                    B_b="class Twin {}\nstruct Two { let twin: Twin }\n"),
        ])
