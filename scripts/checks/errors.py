#!/usr/bin/env python3
"""Every public error is an ExplainedError: what alerts and crash reporters show of it
is its own text, and never the name of a type with a number."""

import re

import checklib

PUBLIC = re.compile(
    r"public\s+(?:indirect\s+)?(?:enum|struct|class)\s+(?P<name>\w+)\s*:(?P<protocols>[^{]*)\{")
CONFORMS = re.compile(r"extension\s+(?:\w+\.)*(?P<name>\w+)\s*:[^{]*\bExplainedError\b")


def check(files):
    errors, explained = [], set()
    for path, text in files.items():
        if not path.endswith(".swift") or not path.startswith(checklib.SOURCES):
            continue
        code = checklib.code_only(text)
        explained.update(match["name"] for match in CONFORMS.finditer(code))
        for match in PUBLIC.finditer(code):
            if re.search(r"\bExplainedError\b", match["protocols"]):
                explained.add(match["name"])
            elif re.search(r"\bError\b", match["protocols"]):
                errors.append((path, checklib.line_of(code, match.start()), match["name"]))
    return [(path, line, f"{name} is a public error and no ExplainedError")
            for path, line, name in errors if name not in explained]


checklib.main(
    check,
    bad=[
        ({"Sources/A/A.swift": "public enum E: Error, Sendable {\n}\n"}, [1]),
        ({"Sources/A/A.swift": "\npublic struct E: Hashable, Error {}\n"}, [2]),
        ({"Sources/A/A.swift": "public enum E: Error {}\n// extension E: ExplainedError {}\n"}, [1]),
        ({"Sources/A/A.swift": "public enum E: Error {}\nextension F: ExplainedError {}\n"}, [1]),
    ],
    good=[
        {"Sources/A/A.swift": "public enum E: Error {}\n",
         "Sources/B/B.swift": "extension E: ExplainedError {}\n"},
        {"Sources/A/A.swift": "extension A.E: ExplainedError {}\n  public enum E: Error {}\n"},
        {"Sources/A/A.swift": "public enum E: ExplainedError {}\n"},
        {"Sources/A/A.swift": "enum E: Error {}\npublic enum F: Sendable {}\n"},
        {"Tests/A/A.swift": "public enum E: Error {}\n"},
    ])
