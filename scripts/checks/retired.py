#!/usr/bin/env python3
"""No word that the project gave up comes back: `scripts/checks/retired.txt` lists whole
identifiers, configuration keys, metrics and events, each with its scope and its successor."""

import re
from pathlib import Path

import checklib

LINE = re.compile(r"^(\S+) (\S+) -> (\S+)$")
# Says what things were called.
HISTORY = ("CHANGELOG.md", "docs/adr/", "Vectors/", "scripts/checks/retired")


def read(text):
    words = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        match = LINE.match(line)
        if not match:
            raise SystemExit(f"retired.txt:{number}: write `scope word -> successor`")
        words.append(match.groups())
    return words


def check(files, words):
    found = []
    for path, text in files.items():
        if path.startswith(HISTORY):
            continue
        mine = {word: new for scope, word, new in words if scope == "*" or path.startswith(scope)}
        if not mine:
            continue
        pattern = re.compile(
            r"(?<![\w.])(" + "|".join(map(re.escape, sorted(mine, key=len, reverse=True))) + r")(?!\w)")
        code = path.endswith(".swift")
        for match in pattern.finditer(text):
            start = text.rfind("\n", 0, match.start()) + 1
            # In a comment, or in a text that people read, a word of a type may begin an English sentence.
            if match[1] == "Look" and re.match(r" (?:at|further|for|up) ?", text[match.end():match.end() + 10]):
                continue
            if code and text[start:match.start()].lstrip().startswith("//"):
                continue
            found.append((path, checklib.line_of(text, match.start()),
                          f"{match[1]} is called {mine[match[1]]} now"))
    return found


WORDS = read((Path(__file__).parent / "retired.txt").read_text(encoding="utf-8"))

checklib.main(
    lambda files: check(files, WORDS),
    bad=[
        ({"Server/Sources/A/A.swift": "let a: DocumentKeeper\n"}, [1]),
        ({"Sources/A/A.swift": "\nlet a = RegistryKeeper()\n"}, [2]),
        ({"docs/metrics.md": "`ssl_pinning_look_failures_total`\n"}, [1]),
        ({"scripts/mutants/a.patch": "+  mayBeStale\n"}, [1]),
    ],
    good=[
        # Another scope, a part of a word, English in a comment, and what history tells.
        {"Sources/A/A.swift": "let a: Stage\nlet b: RegistryKeepers\n"},
        {"Server/Lab/A/A.swift": "/// Stage a key.\n"},
        {"Server/A.js": "title: \"Look at the document\"\n"},
        {"CHANGELOG.md": "RegistryKeeper\n"},
    ])
