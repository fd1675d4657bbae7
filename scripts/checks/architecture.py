#!/usr/bin/env python3
"""ARCHITECTURE.md leads somewhere: each file that it names is there, and is the only one of that name; each walk names
at most 12 source files."""

import re

import checklib

PAGE = "ARCHITECTURE.md"
NAMED = re.compile(r"`([\w.+/-]+\.(?:swift|c|h|py|md))`")
WALK = re.compile(r"^### (.*?)$(.*?)(?=^##|\Z)", re.M | re.S)
MOST = 12


def check(files):
    page = files.get(PAGE, "")
    offences = []
    for match in NAMED.finditer(page):
        found = sum(f"/{path}".endswith(f"/{match[1]}") for path in files)
        if found != 1:
            offences.append((PAGE, checklib.line_of(page, match.start()),
                             f"{match[1]} is the name of {found or 'no'} file{'s' if found > 1 else ''}"))
    for walk in WALK.finditer(page):
        named = {path.rsplit("/", 1)[-1] for path in NAMED.findall(walk[2])}
        if len(named) > MOST:
            offences.append((PAGE, checklib.line_of(page, walk.start()), f"{walk[1]!r} names {len(named)} files"))
    return offences


FILES = {f"Sources/{name}.swift": "" for name in ("A/A", "A/B", "B/B", *(f"C/C{number}" for number in range(13)))}
LONG = "".join(f"`C{number}.swift` " for number in range(13))
checklib.main(
    check,
    bad=[
        ({**FILES, PAGE: "# T\nsee `A/C.swift`\n"}, [2]),
        ({**FILES, PAGE: "`B.swift`\n"}, [1]),
        ({**FILES, PAGE: f"### W\n\n{LONG}\n"}, [1]),
    ],
    good=[
        {**FILES, PAGE: "`A.swift`, `B/B.swift`, `B` and `B.other`\n"},
        {**FILES, PAGE: f"### W\n{LONG[:-13]}\n### V\n`A.swift`\n## Rules\n{LONG}\n"},
    ])
