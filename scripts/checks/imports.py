#!/usr/bin/env python3
"""Which target may import what. An arrow goes only down; the compiler refuses an
import of an undeclared target, this refuses the rest: Foundation in the pure
targets, a system library outside its one user, another test library."""

import re

import checklib

FOUNDATION = {"Foundation", "FoundationNetworking"}

# Target: the modules it may import. A target that is not listed may not exist.
RULES = {
    "CanonicalJSON": set(),
    "Pinning": {"CanonicalJSON"},
    "PinningPlatform": {
        "CanonicalJSON", "Pinning", "Security", "CryptoKit", "CSslPinningOpenSSL", "CSslPinningCurl", "CSslPinningShims",
        "Dispatch", "Synchronization", "Glibc", "Darwin"} | FOUNDATION,
    "SslPinning": {"Pinning", "PinningPlatform"} | FOUNDATION,
    "SslPinningTesting": {
        "CanonicalJSON", "Pinning", "PinningPlatform", "SslPinning"} | FOUNDATION,
    "PinningFormats": {"Pinning", "PinningPlatform"} | FOUNDATION,
    "TLSTools": {
        "CanonicalJSON", "Pinning", "PinningPlatform", "CSslPinningOpenSSL", "CSslPinningShims",
        "Dispatch", "Synchronization"} | FOUNDATION,
    "RegistryServer": {
        "CanonicalJSON", "Pinning", "PinningPlatform", "PinningFormats", "TLSTools",
        "CMicroHTTPD", "CSQLite", "CPostgreSQL", "CHiredis", "CYAML", "CZlib",
        "Dispatch", "Synchronization"} | FOUNDATION,
    "ssl-pinning": {
        "CanonicalJSON", "Pinning", "PinningPlatform", "PinningFormats", "SslPinning",
        "TLSTools", "RegistryServer", "Dispatch", "Synchronization"} | FOUNDATION,
    "drill": {
        "CanonicalJSON", "Pinning", "PinningPlatform", "SslPinning", "TLSTools",
        "RegistryServer", "TestSupport", "Dispatch", "Synchronization"} | FOUNDATION,
}

# Tests start the real components, so they may import every target, but no system
# library (CSslPinningOpenSSL excepted: certificates no tool would make) and no other test library.
TESTS = {
    "CanonicalJSON", "Pinning", "PinningPlatform", "PinningFormats", "SslPinning",
    "SslPinningTesting", "TLSTools", "RegistryServer", "ssl_pinning", "drill", "TestSupport",
    "Testing", "CSslPinningOpenSSL", "CSslPinningShims",
    "Dispatch", "Synchronization"} | FOUNDATION

IMPORT = re.compile(
    r"(?:^|;)[ \t]*(?P<attributes>(?:@\w+(?:\([^)]*\))?\s+)*)"
    r"(?:(?:public|package|internal|fileprivate|private)\s+)?"
    r"import\s+(?:(?:typealias|struct|class|enum|protocol|let|var|func|actor)\s+)?"
    r"`?(?P<module>\w+)", re.M)


def check(files):
    offences = []
    for path, text in files.items():
        if not path.endswith(".swift") or not path.startswith(("Sources/", "Tests/")):
            continue
        folder, target = path.split("/")[:2]
        if folder == "Sources" and target not in RULES:
            offences.append((path, 1, f"no import rule for the target {target}"))
            continue
        allowed = TESTS if folder == "Tests" else RULES[target]
        code = checklib.code_only(text)
        for match in IMPORT.finditer(code):
            line = checklib.line_of(code, match.start("module"))
            attributes, module = match["attributes"], match["module"]
            if module not in allowed:
                offences.append((path, line, f"{target} may not import {module}"))
            if "@_implementationOnly" in attributes:
                offences.append((path, line, "@_implementationOnly hides a dependency"))
            if "@testable" in attributes and folder == "Sources":
                offences.append((path, line, "@testable outside tests"))
    return offences


checklib.main(
    check,
    bad=[
        ({"Sources/Pinning/A.swift": "import CanonicalJSON\nimport Foundation\n"}, [2]),
        ({"Sources/Pinning/A.swift": "import struct Foundation.Data\n"}, [1]),
        ({"Sources/CanonicalJSON/A.swift": "import Pinning\n"}, [1]),
        ({"Sources/CanonicalJSON/A.swift": "let a = 1; import FoundationEssentials\n"}, [1]),
        ({"Sources/TLSTools/A.swift": "internal import CSQLite\n"}, [1]),
        ({"Sources/TLSTools/A.swift": "@preconcurrency import RegistryServer\n"}, [1]),
        ({"Sources/SslPinning/A.swift": "import CSslPinningOpenSSL\n"}, [1]),
        ({"Sources/SslPinning/A.swift": "@_implementationOnly import Pinning\n"}, [1]),
        ({"Sources/RegistryServer/A.swift": "import SslPinning\n@testable import Pinning\n"}, [1, 2]),
        ({"Sources/ssl-pinning/A.swift": "import CYAML\n"}, [1]),
        ({"Sources/Utils/A.swift": "let a = 1\n"}, [1]),
        ({"Tests/PinningTests/A.swift": "import XCTest\n"}, [1]),
    ],
    good=[
        {"Sources/Pinning/A.swift": "import CanonicalJSON\n// import Foundation\n"},
        {"Sources/Pinning/A.swift": 'let a = """\nimport Foundation\n"""\n'},
        {"Sources/PinningPlatform/A.swift": "import CSslPinningCurl\nimport struct Foundation.Data\n"},
        {"Sources/RegistryServer/A.swift": "import CSQLite\nimport CYAML\nimport CMicroHTTPD\n"},
        {"Tests/PinningTests/A.swift": "@testable import Pinning\nimport Testing\n"},
        {"Package.swift": "import PackageDescription\n"},
    ])
