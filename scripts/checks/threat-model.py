#!/usr/bin/env python3
"""docs/threat-model.md claims nothing that nobody shows: each `drill: …` is a row of the drill, each `test: …`
the name of a test, and each attacker has at least one of them."""

import re

import checklib

PAGE = "docs/threat-model.md"
CLAIM = re.compile(r"`(drill|test):\s+([^`]+)`")
# What is written in the sources, joined again where a row is made of its number.
FOLDERS = {"drill": "Server/Lab/ssl-pinning-lab/", "test": checklib.TESTS}
BEGINS = {"drill": r"\.(?:attack|change)\(\s*", "test": r"@Test\(\s*"}


def names(files, kind):
    found = set()
    for path, text in files.items():
        if path.startswith(FOLDERS[kind]) and path.endswith(".swift"):
            found |= set(re.findall(BEGINS[kind] + r'"([^"\n]+)"', text))
    return found


def check(files):
    page = files.get(PAGE)
    if page is None:
        return [(PAGE, 1, "is missing")]
    offences = []
    known = {kind: names(files, kind) for kind in FOLDERS}
    for match in CLAIM.finditer(page):
        kind, name = match[1], " ".join(match[2].split())
        if name not in known[kind]:
            offences.append((PAGE, checklib.line_of(page, match.start()), f"no {kind} is called {name!r}"))
    for section in re.finditer(r"^## (.*?)$(.*?)(?=^## |\Z)", page, re.M | re.S):
        if not CLAIM.search(section[2]):
            offences.append(
                (PAGE, checklib.line_of(page, section.start()), f"nothing shows what is said of {section[1]!r}"))
    return offences


ROW = {"Server/Lab/ssl-pinning-lab/Rows/A.swift": '.attack("rollback") {\n', "Tests/ATests/A.swift": '@Test(\n  "a b")\n'}
checklib.main(
    check,
    bad=[
        ({**ROW, PAGE: "# T\n## A\n`drill: freeze`\n"}, [3]),
        ({**ROW, PAGE: "# T\n## A\n`drill: a b`\n"}, [3]),
        ({**ROW, PAGE: "# T\n## A\n`test: a\nb` `test: a c`\n"}, [4]),
        ({**ROW, PAGE: "# T\n## A\n`drill: rollback`\n## B\nnothing\n"}, [4]),
        ({**ROW, "docs/a.md": "# T\n"}, [1]),
    ],
    good=[{**ROW, PAGE: "# T\n## A\n`drill: rollback`, `test: a\n  b`\n"}])
