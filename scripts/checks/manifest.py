#!/usr/bin/env python3
"""What Package.swift promises to those who depend on it: Swift 6 and warnings as
errors in every Swift target, no unsafe flags, no package from outside. And what their graph loads: products
are libraries, and one plugin that depends on nothing; they reach no target of the server, and no C module by a
name that others use, too. For those who depend on it, warnings are nobody's errors: Xcode does not build that."""

import json
import os
import subprocess
import sys

import checklib

# What an app may reach, beside C modules under the prefix.
OF_APPS = {"CanonicalJSON", "SslPinningRules", "SslPinningPlatform", "SslPinning", "SslPinningTesting"}
PREFIX = "CSslPinning"
# It runs an installed program.
PLUGIN = "RefreshRegistry"


def reached(manifest, names):
    """These targets and all that they depend on, whatever the platform."""
    targets = {target["name"]: target for target in manifest["targets"]}
    found, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name in found or name not in targets:
            continue
        found.add(name)
        for dependency in targets[name].get("dependencies", []):
            waiting += [value[0] for value in dependency.values()]
    return found


def graph_problems(manifest):
    for product in manifest["products"]:
        name = product["name"]
        if name == PLUGIN and "plugin" in product["type"]:
            if reached(manifest, product["targets"]) != {PLUGIN}:
                yield f"the plugin {name} depends on targets: apps would build them"
            continue
        if "library" not in product["type"]:
            yield f"the product {name} is no library: apps would load all that it needs"
        for target in sorted(reached(manifest, product["targets"])):
            if target not in OF_APPS and not target.startswith(PREFIX):
                yield f"the product {name} reaches {target}, which apps are not to meet"


def problems(manifest, is_swift):
    found = [f"depends on a package from outside: {json.dumps(dependency)}"
             for dependency in manifest["dependencies"]] + list(graph_problems(manifest))
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


def dependency_problems(manifest):
    """What is wrong with the manifest for those who depend on it."""
    return [f"{target['name']} treats warnings as errors for those who depend on it"
            for target in manifest["targets"]
            if any("treatAllWarnings" in setting["kind"] for setting in target["settings"])]


def dump(is_strict):
    """The manifest, as the Makefile has it read, or as it is read for those who depend on it."""
    environment = {name: value for name, value in os.environ.items() if name != "PINNING_BUILD_STRICT"}
    if is_strict:
        environment["PINNING_BUILD_STRICT"] = "1"
    return json.loads(subprocess.run(
        [os.environ.get("SWIFT", "swift"), "package", "--package-path", checklib.ROOT, "dump-package"],
        check=True, capture_output=True, env=environment).stdout)


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
        return len(problems({"dependencies": list(dependencies), "products": [], "targets": [target]},
                            lambda target: True))

    def graph(kind, **dependencies):
        return len(list(graph_problems({
            "products": [{"name": "P", "type": {kind: None}, "targets": ["SslPinning"]}],
            "targets": [{"name": name, "dependencies": [{"target": [other, None]} for other in others]}
                        for name, others in dependencies.items()]})))

    def plugin(others):
        return len(list(graph_problems({
            "products": [{"name": PLUGIN, "type": {"plugin": None}, "targets": [PLUGIN]}],
            "targets": [{"name": PLUGIN, "dependencies": [{"target": [other, None]} for other in others]},
                        {"name": "SslPinningRules", "dependencies": []}]})))

    assert count(strict) == 0 and count([], kind="system") == 0
    assert count([]) == 2 and count(strict[:1]) == 1 and count(strict[1:]) == 1
    assert count([{"kind": {"treatAllWarnings": {"_0": "warning"}}}, strict[1]]) == 1
    assert dependency_problems({"targets": [{"name": "A", "settings": strict[1:]}]}) == []
    assert len(dependency_problems({"targets": [{"name": "A", "settings": strict}]})) == 1
    assert count(strict + [unsafe]) == 1 and count(strict, [{"sourceControl": []}]) == 1
    assert graph("library", SslPinning=["SslPinningRules"], SslPinningRules=["CSslPinningCurl"], CSslPinningCurl=[]) == 0
    assert graph("executable", SslPinning=[]) == 1 and graph("plugin", SslPinning=[]) == 1
    assert plugin([]) == 0 and plugin(["SslPinningRules"]) == 1
    assert graph("library", SslPinning=["SslPinningRules"], SslPinningRules=["CCurl"], CCurl=[]) == 1
    assert graph("library", SslPinning=["TLSTools"], TLSTools=["CSQLite"], CSQLite=[]) == 2


if sys.argv[1:] == ["--self-test"]:
    self_test()
    sys.exit(0)
offences = problems(dump(is_strict=True), holds_swift) + dependency_problems(dump(is_strict=False))
for offence in offences:
    print(f"Package.swift:1: {offence}")
sys.exit(1 if offences else 0)
