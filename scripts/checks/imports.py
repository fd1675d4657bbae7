#!/usr/bin/env python3
"""Which target may import what. An arrow goes only down; the compiler refuses an
import of an undeclared target, this refuses the rest: Foundation in the pure
targets, a system library outside its one user, another test library."""

import re

import checklib

FOUNDATION = {"Foundation", "FoundationNetworking"}
THREADS = {"Dispatch", "Synchronization"}
SDK = {"CanonicalJSON", "SslPinningRules", "SslPinningPlatform"}

# Target: the modules it may import. A target that is not listed may not exist.
RULES = {
    "CanonicalJSON": set(),
    "SslPinningRules": {"CanonicalJSON"},
    "SslPinningPlatform": {
        "CanonicalJSON", "SslPinningRules", "Security", "CryptoKit", "CSslPinningOpenSSL",
        "CSslPinningCurl", "CSslPinningShims", "Glibc", "Darwin"} | THREADS | FOUNDATION,
    "SslPinning": {"SslPinningRules", "SslPinningPlatform"} | FOUNDATION,
    "SslPinningTesting": SDK | {"SslPinning"} | FOUNDATION,
    "TLSTools": SDK | {"CSslPinningOpenSSL", "CSslPinningShims"} | THREADS | FOUNDATION,
    "HTTPServing": SDK | {"TLSTools", "CMicroHTTPD"} | THREADS | FOUNDATION,
    "PolicyFormats": SDK | FOUNDATION | {"FoundationXML"},
    "RegistryCore": {"CanonicalJSON", "SslPinningRules"},
    "RegistryStores": SDK | {
        "TLSTools", "RegistryCore", "CSQLite", "CPostgreSQL", "CHiredis"} | THREADS | FOUNDATION,
    "RegistryServer": SDK | {
        "TLSTools", "HTTPServing", "RegistryCore", "RegistryStores", "CYAML", "CZlib",
    } | THREADS | FOUNDATION,
    "ssl-pinning": SDK | {
        "SslPinning", "TLSTools", "PolicyFormats", "RegistryCore", "RegistryStores", "RegistryServer", "CPSL",
    } | THREADS | FOUNDATION,
    "FaultLab": SDK | {"TLSTools", "CSslPinningOpenSSL"} | THREADS | FOUNDATION,
    "ssl-pinning-lab": SDK | {
        "SslPinning", "TLSTools", "HTTPServing", "RegistryCore", "RegistryStores", "RegistryServer",
        "FaultLab", "TestSupport",
    } | THREADS | FOUNDATION,
}

# What one file may import beyond its target.
ALONE = {"Sources/SslPinning/ClientChallenges.swift": {"Security"}}

# Tests start the real components, so they may import every target, but no system
# library (CSslPinningOpenSSL excepted: certificates no tool would make) and no other test library.
TESTS = {
    "SslPinning", "SslPinningTesting", "TLSTools", "PolicyFormats", "HTTPServing", "RegistryCore", "RegistryStores",
    "RegistryServer", "FaultLab", "ssl_pinning",
    "ssl_pinning_lab", "TestSupport", "Testing", "CSslPinningOpenSSL", "CSslPinningShims",
} | SDK | THREADS | FOUNDATION

IMPORT = re.compile(
    r"(?:^|;)[ \t]*(?P<attributes>(?:@\w+(?:\([^)]*\))?\s+)*)"
    r"(?:(?:public|package|internal|fileprivate|private)\s+)?"
    r"import\s+(?:(?:typealias|struct|class|enum|protocol|let|var|func|actor)\s+)?"
    r"`?(?P<module>\w+)", re.M)


def check(files):
    offences = []
    for path, text in files.items():
        target = checklib.target_of(path)
        if not path.endswith(".swift") or target is None:
            continue
        is_test = path.startswith(checklib.TESTS)
        if not is_test and target not in RULES:
            offences.append((path, 1, f"no import rule for the target {target}"))
            continue
        allowed = TESTS if is_test else RULES[target] | ALONE.get(path, set())
        code = checklib.code_only(text)
        for match in IMPORT.finditer(code):
            line = checklib.line_of(code, match.start("module"))
            attributes, module = match["attributes"], match["module"]
            if module not in allowed:
                offences.append((path, line, f"{target} may not import {module}"))
            if "@_implementationOnly" in attributes:
                offences.append((path, line, "@_implementationOnly hides a dependency"))
            if "@testable" in attributes and not is_test:
                offences.append((path, line, "@testable outside tests"))
    return offences


checklib.main(
    check,
    bad=[
        ({"Sources/SslPinning/A.swift": "import Foundation\nimport Security\n"}, [2]),
        ({"Sources/SslPinningRules/A.swift": "import CanonicalJSON\nimport Foundation\n"}, [2]),
        ({"Sources/SslPinningRules/A.swift": "import struct Foundation.Data\n"}, [1]),
        ({"Sources/CanonicalJSON/A.swift": "import SslPinningRules\n"}, [1]),
        ({"Sources/CanonicalJSON/A.swift": "let a = 1; import FoundationEssentials\n"}, [1]),
        ({"Server/Sources/TLSTools/A.swift": "internal import CSQLite\n"}, [1]),
        ({"Server/Sources/TLSTools/A.swift": "@preconcurrency import RegistryServer\n"}, [1]),
        ({"Sources/SslPinning/A.swift": "import CSslPinningOpenSSL\n"}, [1]),
        ({"Sources/SslPinning/A.swift": "@_implementationOnly import SslPinningRules\n"}, [1]),
        ({"Server/Sources/RegistryServer/A.swift": "import SslPinning\n@testable import SslPinningRules\n"}, [1, 2]),
        ({"Server/Sources/ssl-pinning/A.swift": "import CYAML\n"}, [1]),
        ({"Sources/Utils/A.swift": "let a = 1\n"}, [1]),
        ({"Tests/SslPinningRulesTests/A.swift": "import XCTest\n"}, [1]),
    ],
    good=[
        {"Sources/SslPinningRules/A.swift": "import CanonicalJSON\n// import Foundation\n"},
        {"Sources/SslPinningRules/A.swift": 'let a = """\nimport Foundation\n"""\n'},
        {"Sources/SslPinningPlatform/A.swift": "import CSslPinningCurl\nimport struct Foundation.Data\n"},
        {"Server/Sources/RegistryServer/A.swift": "import RegistryStores\nimport CYAML\nimport HTTPServing\n"},
        {"Tests/SslPinningRulesTests/A.swift": "@testable import SslPinningRules\nimport Testing\n"},
        {"Package.swift": "import PackageDescription\n"},
    ])
