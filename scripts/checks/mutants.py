#!/usr/bin/env python3
"""Every rule that is never broken has a mutant (scripts/mutants/), and each mutant still fits.

- A patch has its headers, and names a rule that there is.
- It applies: what a hunk finds stands exactly once in its file, so that no mutant ever comes to
  sit in another place than it was written for.
- It changes code: what it leaves behind is not what it found, comments and strings apart.

Whether the tests notice is `make mutants`.
"""

import re

import checklib
import mutantlib


def check(files):
    offences = []
    mutants = [mutantlib.parse(path, text) for path, text in files.items()
               if path.startswith(mutantlib.FOLDER) and path.endswith(".patch")]
    for mutant in mutants:
        for name in mutantlib.HEADERS:
            if not mutant.header(name):
                offences.append((mutant.path, 1, f"no header {name}:"))
        for name, (line, _) in mutant.headers.items():
            if name not in mutantlib.HEADERS + mutantlib.OPTIONAL:
                offences.append((mutant.path, line, f"unknown header {name}:"))
        if mutant.header("Rule") and not mutant.rule:
            offences.append((mutant.path, mutant.headers["Rule"][0], "there is no such rule"))
        try:
            re.compile(mutant.header("Tests"))
        except re.error as error:
            offences.append((mutant.path, mutant.headers["Tests"][0], f"no expression: {error}"))
        if not mutant.hunks:
            offences.append((mutant.path, 1, "the patch changes nothing"))
        for file, hunks in mutant.hunks.items():
            for hunk in hunks:
                if hunk.counts != (hunk.before.count("\n"), hunk.after.count("\n")):
                    offences.append((mutant.path, hunk.line, "the hunk has other lines than it says"))
                found = occurrences(hunk.before, files.get(file, ""))
                if found != 1:
                    offences.append((mutant.path, hunk.line,
                                     f"what the hunk finds stands {found} times in {file}"))
                elif file.endswith(".swift") and words(hunk.before) == words(hunk.after):
                    offences.append((mutant.path, hunk.line, "the hunk changes no code"))
    rules = {mutant.rule for mutant in mutants}
    offences += [(mutantlib.FOLDER, 0, f"no mutant for {rule}: {text}")
                 for rule, text in mutantlib.RULES.items() if rule not in rules]
    return offences


def occurrences(part, text):
    """At the beginnings of lines only."""
    starts = (at for at in range(len(text)) if at == 0 or text[at - 1] == "\n")
    return sum(text.startswith(part, at) for at in starts) if part else 0


def words(text):
    """Without comments and layout; what stands in strings counts, since they are code here."""
    return re.sub(r"//[^\n]*", "", text).split()


def sample(rule="Evaluation 1: host names", tests="A.B", hunk="-let a = 1\n+let a = 2\n",
           file="Sources/A.swift"):
    return (f"Rule: {rule}\nDisables: a,\n  and b\nTests: {tests}\n\n"
            f"--- a/{file}\n+++ b/{file}\n@@ -1,1 +1,1 @@\n{hunk}")


# One mutant per rule, but for the first.
REST = {f"scripts/mutants/{rule.replace(' ', '-')}.patch": sample(f"{rule}: {text}", file="B.swift")
        for rule, text in mutantlib.RULES.items() if rule != "Evaluation 1"}
REST["Sources/A.swift"] = REST["B.swift"] = "let a = 1\n"
PATCH = "scripts/mutants/a.patch"

checklib.main(
    check,
    bad=[
        (REST, [0]),
        ({**REST, PATCH: sample(), "Sources/A.swift": "let a = 3\n"}, [8]),
        ({**REST, PATCH: sample(), "Sources/A.swift": "let a = 1\nlet a = 1\n"}, [8]),
        ({**REST, PATCH: sample(file="Sources/Gone.swift")}, [8]),
        ({**REST, PATCH: sample(hunk="-let a = 1\n+let  a = 1  // b\n")}, [8]),
        ({**REST, PATCH: sample().replace("-1,1 +1,1", "-1,2 +1,1")}, [8]),
        ({**REST, PATCH: sample(rule="Evaluation 99: none")}, [0, 1]),
        ({**REST, PATCH: sample(tests="A(")}, [4]),
        ({**REST, PATCH: sample().replace("Disables: a", "Author: a")}, [1, 2]),
        ({**REST, PATCH: sample().replace("Tests: A.B\n", "")}, [1]),
        ({**REST, PATCH: sample().split("---")[0]}, [1]),
    ],
    good=[
        {**REST, PATCH: sample()},
        {**REST, PATCH: sample().replace("@@ -1,1 +1,1 @@", "@@ -9 +9 @@")},
        {**REST, PATCH: sample(), "Sources/A.swift": "let b = 1\nlet a = 1\n// let a = 1\n"},
        {**REST, PATCH: sample().replace("\n\n---", "\nHang: by design\n\n---")},
    ])
