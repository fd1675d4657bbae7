#!/usr/bin/env python3
"""What code may not do. In Sources and the app: crash on what came from outside. In the tests:
wait and hope. Anywhere: grow past what one sitting can read."""

import re

import checklib

CRASHES = [
    (re.compile(r"\btry!"), "try! crashes"),
    (re.compile(r"\bas!"), "as! crashes"),
    (re.compile(r"\bfatalError\s*\("), "fatalError crashes"),
    (re.compile(r"\bpreconditionFailure\s*\("), "preconditionFailure crashes"),
]
UNSAFE_FLAGS = re.compile(r"\bunsafeFlags\b")
# A clock of one's own may define `sleep`; calling one needs its reason.
SLEEP = re.compile(r"(?<!func )\b(?:u?sleep|nanosleep)\s*\(")
REASON = re.compile(r"//\s*why:\s*\S")
LONGEST = 500


def check(files):
    offences = []
    for path, text in files.items():
        if not path.endswith((".swift", ".c", ".h", ".py", ".sh")):
            continue
        if (count := len(text.splitlines())) > LONGEST:
            offences.append((path, count, f"{count} lines; {LONGEST} is the most"))
        if not path.endswith(".swift"):
            continue
        code = checklib.code_only(text)

        def report(pattern, message):
            for match in pattern.finditer(code):
                offences.append((path, checklib.line_of(code, match.start()), message))

        report(UNSAFE_FLAGS, "unsafeFlags bar the package from use as a dependency")
        if path.startswith(checklib.SOURCES + ("App/",)):
            for pattern, message in CRASHES:
                report(pattern, message)
        if path.startswith(checklib.TESTS):
            lines = text.split("\n")
            for match in SLEEP.finditer(code):
                number = checklib.line_of(code, match.start())
                above = lines[number - 2].strip() if number > 1 else ""
                if REASON.search(lines[number - 1]) or (
                        above.startswith("//") and REASON.search(above)):
                    continue
                offences.append((path, number, "sleeping in a test without a `// why:`"))
    return offences


checklib.main(
    check,
    bad=[
        ({"Sources/A/A.swift": "let a = try! b()\nlet c = d as! Int\n"}, [1, 2]),
        ({"App/Sources/A.swift": "let a = 1\nlet b = try! c()\n"}, [2]),
        ({"Sources/A/A.swift": "\nfatalError()\npreconditionFailure(\"x\")\n"}, [2, 3]),
        ({"Sources/A/A.swift": 'let a = "\\(try! b())"\n'}, [1]),
        ({"Sources/A/A.swift": 'let a = #"\\#(b as! Int)"#\n'}, [1]),
        ({"Package.swift": ".unsafeFlags([])\n"}, [1]),
        ({"Sources/A/A.swift": "\n" * 501}, [501]),
        ({"scripts/a.sh": "\n" * 501}, [501]),
        ({"Tests/A/A.swift": "Thread.sleep(forTimeInterval: 1)\nusleep(1)\n"}, [1, 2]),
        ({"Tests/A/A.swift": "try await Task.sleep(for: .seconds(1))\nsleep(1)\n"}, [1, 2]),
        ({"Tests/A/A.swift": "sleep(1)  // why:\nlet b = 1  // why: here\nsleep(1)\n"}, [1, 3]),
    ],
    good=[
        {"Sources/A/A.swift": "// never try! here, nor fatalError(\nlet a = try b()\n"},
        {"Sources/A/A.swift": 'let a = "try! fatalError("\n/* as! /* as! */ as! */\n'},
        {"Sources/A/A.swift": "\n" * 500},
        {"Tests/A/A.swift": "let a = try! b()\n"},
        {"Tests/A/A.swift": "usleep(1)  // why: the kernel needs a tick\n"},
        {"Tests/A/A.swift": "// why: the kernel needs a tick\nusleep(1)\n"},
        {"Tests/A/A.swift": "func sleep(until deadline: Instant) async throws {}\n"},
    ])
