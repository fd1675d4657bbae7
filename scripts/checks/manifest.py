#!/usr/bin/env python3
"""What Package.swift promises to those who depend on it: Swift 6 and warnings as
errors in every Swift target, no unsafe flags, no package from outside."""

import json
import os
import subprocess
import sys

import checklib


def problems(manifest, is_swift):
    found = [f"depends on a package from outside: {json.dumps(dependency)}"
             for dependency in manifest["dependencies"]]
    for target in manifest["targets"]:
        name, kinds = target["name"], [setting["kind"] for setting in target["settings"]]
        if any("unsafeFlags" in kind for kind in kinds):
            found.append(f"{name} has unsafe flags")
        if target["type"] in ("system", "plugin") or not is_swift(target):
            continue
        if {"treatAllWarnings": {"_0": "error"}} not in kinds:
            found.append(f"{name} does not treat all warnings as errors")
        if {"swiftLanguageMode": {"_0": "6"}} not in kinds:
            found.append(f"{name} is not in Swift 6 language mode")
    return found


def holds_swift(target):
    folder = "Tests" if target["type"] == "test" else "Sources"
    path = target.get("path") or f"{folder}/{target['name']}"
    return any((checklib.ROOT / path).rglob("*.swift"))


def self_test():
    strict = [{"kind": {"treatAllWarnings": {"_0": "error"}}},
              {"kind": {"swiftLanguageMode": {"_0": "6"}}}]
    unsafe = {"kind": {"unsafeFlags": {"_0": ["-O"]}}}

    def count(settings, dependencies=(), kind="regular"):
        target = {"name": "A", "type": kind, "settings": settings}
        return len(problems({"dependencies": list(dependencies), "targets": [target]},
                            lambda target: True))

    assert count(strict) == 0 and count([], kind="system") == 0
    assert count([]) == 2 and count(strict[:1]) == 1 and count(strict[1:]) == 1
    assert count([{"kind": {"treatAllWarnings": {"_0": "warning"}}}, strict[1]]) == 1
    assert count(strict + [unsafe]) == 1 and count(strict, [{"sourceControl": []}]) == 1


if sys.argv[1:] == ["--self-test"]:
    self_test()
    sys.exit(0)
dump = subprocess.run(
    [os.environ.get("SWIFT", "swift"), "package", "--package-path", checklib.ROOT, "dump-package"],
    check=True, capture_output=True).stdout
offences = problems(json.loads(dump), holds_swift)
for offence in offences:
    print(f"Package.swift:1: {offence}")
sys.exit(1 if offences else 0)
