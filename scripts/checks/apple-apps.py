#!/usr/bin/env python3
"""What an app that links the package would have to answer for on Apple's systems.

- No call that Apple has apps give a reason for (its list of required-reason APIs: files' times and metadata, the
  time since boot, disk space, keyboards, user defaults). So the package needs no privacy manifest of its own, and an
  app declares nothing on its account. The sample app is held to the same.
- No `Span` in what an app links: with a minimum below Apple's systems 26 it costs the app one more library,
  libswiftCompatibilitySpan, which some ways of packaging leave out; the app then ends at its start.
"""

import re

import checklib

LINKED = tuple(f"Sources/{name}/" for name in (
    "CanonicalJSON", "SslPinningRules", "SslPinningPlatform", "SslPinning", "SslPinningTesting"))
# What is compiled on Linux alone is in no app.
ELSEWHERE = re.compile(r"#if os\(Linux\)\n")

REASONS = re.compile(
    r"(?<!func )\b(?:"
    # Files' times and metadata.
    r"f?stat|fstatat|lstat|f?getattrlist|getattrlistat|getattrlistbulk"
    r"|creationDate(?:Key)?|modificationDate|fileModificationDate|contentModificationDate(?:Key)?"
    # The time since boot.
    r"|systemUptime|mach_absolute_time"
    # Disk space.
    r"|f?statv?fs|volumeAvailableCapacity\w*|volumeTotalCapacity\w*|systemFreeSize|systemSize"
    # Keyboards, user defaults.
    r"|activeInputModes|UserDefaults|AppStorage|SceneStorage"
    r")\b")
SPANS = re.compile(r"\b(?:(?:Mutable|Output)?(?:Raw)?Span\b|Span<)|\.(?:mutable)?[sS]pan\b|\.utf8Span\b")


def check(files):
    offences = []
    for path, text in files.items():
        is_linked = path.startswith(LINKED)
        if not (is_linked or path.startswith("App/")) or not path.endswith(".swift"):
            continue
        if ELSEWHERE.match(text):
            continue
        code = checklib.code_only(text)
        for match in REASONS.finditer(code):
            offences.append((path, checklib.line_of(code, match.start()),
                             f"Apple has apps give a reason for {match.group()}"))
        for match in SPANS.finditer(code) if is_linked else ():
            offences.append((path, checklib.line_of(code, match.start()),
                             "Span costs an app a library below Apple's systems 26"))
    return offences


checklib.main(
    check,
    bad=[
        ({"Sources/SslPinning/A.swift": "let a = 1\nlet b = ProcessInfo.processInfo.systemUptime\n"}, [2]),
        ({"Sources/SslPinningPlatform/A.swift": "var s = stat()\nif fstat(1, &s) == 0 {}\n"}, [1, 2]),
        ({"Sources/SslPinningPlatform/Apple/A.swift":
          "#if canImport(Security)\n  let a = mach_absolute_time()\n#endif\n"}, [2]),
        ({"App/Sources/A.swift": "@AppStorage(\"a\") var a = 1\n"}, [1]),
        ({"App/Sources/A.swift": "\nlet a = UserDefaults.standard\n"}, [2]),
        ({"Sources/SslPinningRules/A.swift": "let a = [URLResourceKey.contentModificationDateKey]\n"}, [1]),
        ({"Sources/CanonicalJSON/A.swift": "func a(_ b: Span<UInt8>) {}\nlet c = d.span\n"}, [1, 2]),
        ({"Sources/SslPinningRules/A.swift": "func a(_ b: borrowing RawSpan) {}\n"}, [1]),
    ],
    good=[
        # In no app: the server, and what is compiled on Linux alone.
        {"Server/Sources/RegistryServer/A.swift": "let a = stat()\nlet b: Span<UInt8>\n"},
        {"Sources/SslPinningPlatform/Linux/A.swift": "#if os(Linux)\n  var s = stat()\n#endif\n"},
        {"Sources/SslPinningRules/A.swift": "// not stat(), no Span\nlet a = \"systemUptime\"\nlet status = 1\n"},
        {"App/Sources/A.swift": "let a: TimeSpan\nlet b = c.span\n"},
    ])
