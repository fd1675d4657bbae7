#!/usr/bin/env python3
"""The version stands in one place, and whatever else names it says the same: the line that apps put into their
manifests."""

import re

import checklib

PLACE = "Server/Sources/RegistryServer/Service/ServerVersion.swift"


def check(files):
    version = re.search(r'static let current = "(\d+\.\d+\.\d+)"', files.get(PLACE, ""))
    if not version:
        return [(PLACE, 1, "names no version of three numbers")]
    offences, readme = [], files.get("README.md", "")
    named = list(re.finditer(r'\.package\(url: "[^"]*", from: "([^"]*)"\)', readme))
    if not named:
        offences.append(("README.md", 1, "has no .package(url:from:) for apps"))
    for match in named:
        if match[1] != version[1]:
            offences.append(("README.md", checklib.line_of(readme, match.start()), f"this is {version[1]}"))
    return offences


def files(version, named):
    return {PLACE: f'  public static let current = "{version}"\n', "README.md": named}


LINE = '\n.package(url: "https://a/b.git", from: "1.2.3")\n'
checklib.main(
    check,
    bad=[(files("1.2.4", LINE), [2]), (files("1.2.3", ""), [1]), (files("1.2", LINE), [1]), ({}, [1])],
    good=[files("1.2.3", LINE)])
