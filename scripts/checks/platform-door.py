#!/usr/bin/env python3
"""One door per platform: conditions on the platform stand only in SslPinningPlatform, and in the one file that
passes on what apps call with types of Apple's alone: so each of these calls is on its client's own page.

The one exception, anywhere: Foundation's networking half is a module of its own
off Apple platforms, so these three lines, exactly, are allowed:

    #if canImport(FoundationNetworking)
      import FoundationNetworking
    #endif
"""

import re

import checklib

DOOR = "Sources/SslPinningPlatform/"
# This one condition, once: no other, and no other file.
PASSED_ON = "Sources/SslPinning/ClientChallenges.swift"
CONDITION = re.compile(
    r"^[ \t]*#(?:if|elseif)\b[^\n]*?\b(?:os|canImport|targetEnvironment|arch)\s*\(", re.M)
EXCEPTION = re.compile(
    r"[ \t]*#if canImport\(FoundationNetworking\)\n"
    r"[ \t]*(?:public |package |internal |private |fileprivate )?import FoundationNetworking\n"
    r"[ \t]*#endif[ \t]*(?:\n|\Z)")


def check(files):
    offences = []
    for path, text in files.items():
        if not path.endswith(".swift") or path.startswith(DOOR):
            continue
        if path == PASSED_ON:
            text = text.replace("#if canImport(Security)\n", "#if true\n", 1)
        if path.rsplit("/", 1)[-1] == "Package.swift":
            continue
        code = checklib.code_only(text)
        for match in CONDITION.finditer(code):
            if not EXCEPTION.match(code, match.start()):
                offences.append((path, checklib.line_of(code, match.start()),
                                 f"platform condition outside {DOOR}"))
    return offences


ALLOWED = "import Foundation\n#if canImport(FoundationNetworking)\n  import FoundationNetworking\n#endif\n"

checklib.main(
    check,
    bad=[
        ({PASSED_ON: "#if canImport(Security)\n#endif\n#if canImport(Security)\n#endif\n"}, [3]),
        ({PASSED_ON: "#if os(iOS)\n#endif\n"}, [1]),
        ({"Sources/SslPinningRules/A.swift": "let a = 1\n#if os(Linux)\n#endif\n"}, [2]),
        ({"Sources/SslPinning/A.swift": "#if !canImport(Security) && DEBUG\n#endif\n"}, [1]),
        ({"Tests/T/A.swift": "#if DEBUG\n#elseif targetEnvironment(simulator)\n#endif\n"}, [2]),
        ({"Sources/PinningPlatformOther/A.swift": "  #if os(macOS)\n  #endif\n"}, [1]),
        # The exception with a line more, an else, or another module is none.
        ({"Sources/A/A.swift": ALLOWED.replace("#endif", "  let a = 1\n#endif")}, [2]),
        ({"Sources/A/A.swift": ALLOWED.replace("#endif", "#else\n#endif")}, [2]),
        ({"Sources/A/A.swift": "#if canImport(Glibc)\n  import Glibc\n#endif\n"}, [1]),
    ],
    good=[
        {"Sources/SslPinningPlatform/A.swift": "#if os(Linux)\n#endif\n"},
        {PASSED_ON: "#if canImport(Security)\n#endif\n"},
        {"Sources/SslPinning/A.swift": ALLOWED},
        {"Sources/SslPinning/A.swift": ALLOWED.replace("  import", "  public import")},
        {"Sources/SslPinning/A.swift": "#if DEBUG\n#endif\n// #if os(Linux)\n"},
        {"Tests/T/A.swift": 'let a = """\n#if os(Linux)\n#endif\n"""\n'},
        {"Package.swift": "#if os(Linux)\n#endif\n"},
    ])
