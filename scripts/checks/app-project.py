#!/usr/bin/env python3
"""The sample app's project files, which no Xcode has read: they name what is there,
leave nothing out, and agree with each other and with Package.swift."""

import plistlib
import posixpath
import re
from xml.etree import ElementTree

import checklib
import openstep

PROJECT = "App/App.xcodeproj/project.pbxproj"
SCHEME = "App/App.xcodeproj/xcshareddata/xcschemes/App.xcscheme"
WORKSPACE = "SslPinning.xcworkspace/contents.xcworkspacedata"
PLIST = "App/Info.plist"
EXAMPLE = "App/Config.xcconfig.example"
BASE = "App/App.xcconfig"
SECRET = "App/Config.xcconfig"
NEEDED = [PROJECT, SCHEME, WORKSPACE, PLIST, EXAMPLE, BASE, "Package.swift", ".gitignore"]

IMPORTS = {"Foundation", "SslPinning", "SwiftUI"}
ID = re.compile(r"[0-9A-F]{24}\Z")
BUNDLE_ID = re.compile(r"[A-Za-z][A-Za-z0-9-]*(\.[A-Za-z0-9-]+){2,}\Z")
# What Xcode itself puts into an Info.plist.
BUILT_IN = {"DEVELOPMENT_LANGUAGE", "EXECUTABLE_NAME", "PRODUCT_NAME",
            "PRODUCT_BUNDLE_PACKAGE_TYPE"}


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


def exists(files, path):
    return path in files or any(name.startswith("" if path == "." else path + "/") for name in files)


def settings_of(text):
    """The assignments of an xcconfig file, and the lines whose value a comment cuts short."""
    found, cut = {}, []
    for number, line in enumerate(text.split("\n"), 1):
        if match := re.match(r"\s*(\w+)\s*=\s*(.*)", line):
            found[match[1]] = match[2].strip()
            if "//" in match[2]:
                cut.append(number)
    return found, cut


class Project:
    """The objects of a project file, with the offences found on the way."""

    def __init__(self, files):
        self.files, self.offences = files, []
        reader = openstep.Reader(files[PROJECT])
        self.lines, self.root = reader.lines, reader.value["rootObject"]
        self.objects = reader.value["objects"]

    def report(self, message, at=None):
        self.offences.append((PROJECT, self.lines.get(at, 1), message))

    def of(self, isa):
        return {id: item for id, item in self.objects.items() if item["isa"] == isa}

    def one(self, isa):
        found = self.of(isa)
        if len(found) != 1:
            self.report(f"{len(found)} objects of the kind {isa}")
            return None, {}
        return next(iter(found.items()))

    def check_ids(self):
        used = {self.root: 1}
        for id, item in self.objects.items():
            if not ID.match(id):
                self.report(f"{id} is no identifier", id)
            for text in strings(item):
                if ID.match(text):
                    used[text] = used.get(text, 0) + 1
                    if text not in self.objects:
                        self.report(f"{text} is not in the project", id)
        for id in self.objects:
            if id not in used:
                self.report(f"nothing refers to {id}", id)

    def paths(self, id, folder="App"):
        """Where the files below a group are: {id: path}."""
        item = self.objects.get(id, {})
        tree = item.get("sourceTree")
        if tree not in ("<group>", "BUILT_PRODUCTS_DIR"):
            self.report(f"the source tree {tree} depends on the machine", id)
        path = posixpath.normpath(posixpath.join(folder, item.get("path", ".")))
        if "children" not in item:
            return {id: path} if tree == "<group>" else {}
        found = {}
        for child in item["children"]:
            found |= self.paths(child, path)
        return found

    def check_files(self, target):
        paths = self.paths(self.objects[self.root]["mainGroup"])
        for id, path in paths.items():
            if not exists(self.files, path):
                self.report(f"{path} does not exist", id)
        phases = [self.objects.get(id, {}) for id in target["buildPhases"]]
        built = [
            paths.get(self.objects.get(id, {}).get("fileRef"))
            for phase in phases if phase.get("isa") == "PBXSourcesBuildPhase"
            for id in phase["files"]]
        for path in sorted(self.files):
            if path.startswith("App/") and path.endswith(".swift") and built.count(path) != 1:
                self.report(f"{path} is compiled {built.count(path)} times")
        for path in built:
            if path and not path.endswith(".swift"):
                self.report(f"{path} is among the sources")
        return phases

    def check_package(self, target, phases):
        id, package = self.one("XCLocalSwiftPackageReference")
        if package and posixpath.normpath("App/" + package["relativePath"]) != ".":
            self.report("the package is not the one at the root", id)
        id, product = self.one("XCSwiftPackageProductDependency")
        if not product:
            return
        name = product["productName"]
        if f'.library(name: "{name}"' not in self.files["Package.swift"]:
            self.report(f"the package has no library {name}", id)
        linked = [self.objects.get(file, {}).get("productRef") for phase in phases
                  if phase.get("isa") == "PBXFrameworksBuildPhase" for file in phase["files"]]
        if id not in target["packageProductDependencies"] or id not in linked:
            self.report(f"{name} is not linked", id)

    def configurations(self, owner):
        ids = self.objects[owner["buildConfigurationList"]]["buildConfigurations"]
        return {self.objects[id]["name"]: (id, self.objects[id]) for id in ids}

    def check_settings(self, target):
        oldest = re.search(r"\.iOS\(\.v(\d+)\)", self.files["Package.swift"])
        common = self.configurations(self.objects[self.root])
        own = self.configurations(target)
        if set(common) != {"Debug", "Release"} or set(own) != set(common):
            self.report("other configurations than Debug and Release")
            return
        for name, (id, configuration) in own.items():
            every = common[name][1]["buildSettings"] | configuration["buildSettings"]
            wanted = {"SWIFT_VERSION": "6.0", "IPHONEOS_DEPLOYMENT_TARGET": f"{oldest[1]}.0",
                      "INFOPLIST_FILE": "Info.plist", "GENERATE_INFOPLIST_FILE": "NO",
                      "SDKROOT": "iphoneos"}
            for key, value in wanted.items():
                if every.get(key) != value:
                    self.report(f"{name}: {key} is not {value}", id)
            if not BUNDLE_ID.match(every.get("PRODUCT_BUNDLE_IDENTIFIER", "")):
                self.report(f"{name}: no bundle identifier", id)
            for key in every:
                if key.startswith("INFOPLIST_KEY_"):
                    self.report(f"{name}: {key} does not belong beside an Info.plist", id)
            base = self.objects.get(configuration.get("baseConfigurationReference"), {})
            if base.get("path") != "App.xcconfig":
                self.report(f"{name} does not read App.xcconfig", id)


def check_scheme(files, target_id):
    root = ElementTree.fromstring(files[SCHEME])
    wanted = {"BlueprintIdentifier": target_id, "BlueprintName": "App", "BuildableName": "App.app",
              "ReferencedContainer": "container:App.xcodeproj"}
    references = list(root.iter("BuildableReference"))
    if not references:
        yield SCHEME, 1, "the scheme builds nothing"
    for reference in references:
        for key, value in wanted.items():
            if reference.get(key) != value:
                yield SCHEME, 1, f"{key} is {reference.get(key)}, not {value}"
    for action in root:
        if action.get("buildConfiguration", "Debug") not in ("Debug", "Release"):
            yield SCHEME, 1, f"no configuration {action.get('buildConfiguration')}"


def check_workspace(files):
    found = set()
    for reference in ElementTree.fromstring(files[WORKSPACE]).iter("FileRef"):
        kind, _, path = reference.get("location", "").partition(":")
        path = posixpath.normpath(path or ".")
        found.add(path)
        if kind != "group" or not exists(files, path):
            yield WORKSPACE, 1, f"{path} does not exist"
    for path in {".", "App/App.xcodeproj"} - found:
        yield WORKSPACE, 1, f"{path} is missing"


def check_configuration(files):
    plist = plistlib.loads(files[PLIST].encode())
    used = set(re.findall(r"\$\((\w+)\)", " ".join(
        text for text in strings(plist) if "$(" in text)))
    own = {name for name in used if name.startswith("SSL_")}
    settings = {"PRODUCT_BUNDLE_IDENTIFIER", "MARKETING_VERSION", "CURRENT_PROJECT_VERSION"}
    for name in sorted(used - own - settings - BUILT_IN):
        yield PLIST, 1, f"nobody sets {name}"
    if plist.get("CFBundleIdentifier") != "$(PRODUCT_BUNDLE_IDENTIFIER)":
        yield PLIST, 1, "the bundle identifier is not the project's"
    if "NSAppTransportSecurity" in plist:
        yield PLIST, 1, "App Transport Security is weakened"
    for path, names in [(EXAMPLE, own | {"SLASH"}), (BASE, own)]:
        found, cut = settings_of(files[path])
        for name in sorted(names ^ set(found)):
            yield path, 1, f"{name} is in one of this file and {PLIST} only"
        for line in cut:
            yield path, line, "two slashes begin a comment; write $(SLASH)$(SLASH)"
    include = '#include? "Config.xcconfig"'
    if not files[BASE].rstrip().endswith("\n" + include):
        yield BASE, 1, f"{include} is not the last line, so that it wins"
    if SECRET in files or "/" + SECRET not in files[".gitignore"].split("\n"):
        yield ".gitignore", 1, f"{SECRET} is not ignored"
    code = "".join(text for path, text in files.items()
                   if path.startswith("App/") and path.endswith(".swift"))
    for name in sorted(own):
        if plist.get(name) != f"$({name})" or f'"{name}"' not in code:
            yield PLIST, 1, f"the app does not read {name}"


def check(files):
    if missing := [path for path in NEEDED if path not in files]:
        return [(path, 1, "is missing") for path in missing]
    offences = [
        (path, checklib.line_of(text, match.start()), f"the app may not import {match[1]}")
        for path, text in files.items() if path.startswith("App/") and path.endswith(".swift")
        for match in re.finditer(r"^[ \t]*(?:@\w+ )?import (\w+)", checklib.code_only(text), re.M)
        if match[1] not in IMPORTS]
    try:
        project = Project(files)
    except openstep.Unreadable as error:
        return offences + [(PROJECT, error.line, str(error))]
    project.check_ids()
    target_id, target = project.one("PBXNativeTarget")
    if not project.offences:
        if (target["name"], target["productType"]) != (
                "App", "com.apple.product-type.application"):
            project.report("the target is no application App", target_id)
        phases = project.check_files(target)
        project.check_package(target, phases)
        project.check_settings(target)
    offences += project.offences + list(check_scheme(files, target_id))
    return offences + list(check_workspace(files)) + list(check_configuration(files))


# The samples are the project itself, and the project with one thing wrong.
GOOD = {path: text for path, text in checklib.tracked_text_files().items()
        if path.startswith(("App/", "SslPinning.xcworkspace/")) or path in NEEDED}


def wrong(path, old, new, at=None):
    """One replacement, to be reported where `at` stands afterwards, or on line 1."""
    text = GOOD.get(path, "")
    if text.count(old) < 1:
        return {}, [f"{old} is not in {path}"]
    text = text.replace(old, new)
    lines = [1] if at is None else [
        number for number, line in enumerate(text.split("\n"), 1) if re.search(at, line)]
    return GOOD | {path: text}, lines


SWIFT = "App/Sources/SampleApp.swift"
checklib.main(
    check,
    bad=[
        ({path: text for path, text in GOOD.items() if path != SWIFT}, wrong(
            PROJECT, "x", "x", r"path = SampleApp.swift")[1]),
        ({path: text for path, text in GOOD.items() if path != SCHEME}, [1]),
        (GOOD | {"App/Sources/New.swift": "let a = 1\n"}, [1]),
        (GOOD | {SECRET: ""}, [1]),
        wrong(PROJECT, "\tobjects = {", "\tobjects = ", r"5A0100000000000000000001 .*isa"),
        wrong(PROJECT, "5A0200000000000000000002 /* ClientStateView.swift */ = {",
              "5A0200000000000000000001 = {", r"5A0200000000000000000001 = {"),
        wrong(PROJECT, "fileRef = 5A0200000000000000000002", "fileRef = 5A0200000000000000000099",
              r"5A0100000000000000000002 .*= {|5A0200000000000000000099 is"),
        wrong(PROJECT, "\t\t\t\t5A0100000000000000000002 /* ClientStateView.swift in Sources */,\n",
              "", r"5A0100000000000000000002 .*= {"),
        wrong(PROJECT, "relativePath = ..;", "relativePath = ../..;", r'"\.\." \*/ = {'),
        wrong(PROJECT, "productName = SslPinning;", "productName = TLSTools;", r"/\* SslPinning \*/ = {"),
        wrong(PROJECT, 'path = Info.plist; sourceTree = "<group>"',
              'path = Info.plist; sourceTree = "<absolute>"', r"/\* Info.plist \*/ = {"),
        wrong(PROJECT, "SWIFT_VERSION = 6.0;", "SWIFT_VERSION = 5.0;",
              r"000000000000000000(15|16) /\* (Debug|Release) \*/ = {"),
        wrong(PROJECT, "TARGET = 15.0;", "TARGET = 16.0;",
              r"000000000000000000(15|16) /\* (Debug|Release) \*/ = {"),
        wrong(PROJECT, '"com.example.ssl-pinning.App"', '"App"',
              r"000000000000000000(15|16) /\* (Debug|Release) \*/ = {"),
        wrong(PROJECT, "product-type.application", "product-type.framework",
              r"5A0000000000000000000001 /\* App \*/ = {"),
        wrong(SCHEME, "5A0000000000000000000001", "5A0000000000000000000002"),
        wrong(SCHEME, 'buildConfiguration = "Release"', 'buildConfiguration = "Store"'),
        wrong(WORKSPACE, "group:App/App.xcodeproj", "group:App/Other.xcodeproj"),
        wrong(WORKSPACE, '"group:"', '"group:App"'),
        wrong(PLIST, "<key>LSRequiresIPhoneOS</key>",
              "<key>NSAppTransportSecurity</key>\n<dict/>\n<key>LSRequiresIPhoneOS</key>"),
        wrong(PLIST, "$(SSL_PINNING_ENDPOINT)", "$(SSL_PINNING_URL)"),
        wrong(PLIST, "$(MARKETING_VERSION)", "$(VERSION)"),
        wrong(PLIST, "$(PRODUCT_BUNDLE_IDENTIFIER)", "com.example.other"),
        wrong(EXAMPLE, "https:$(SLASH)$(SLASH)", "https://", r"= https://"),
        wrong(EXAMPLE, "SLASH = /\n", ""),
        wrong(EXAMPLE, "SSL_PINNING_SIGNING_KEY_B64 =", "SSL_PINNING_KEY ="),
        wrong(BASE, "#include?", "#include"),
        wrong(".gitignore", "/" + SECRET, "/App/Other.xcconfig"),
        wrong("App/Sources/BuildSettings.swift", '"SSL_PINNING_ENDPOINT"', '"ENDPOINT"'),
        wrong(SWIFT, "import SwiftUI", "import SwiftUI\nimport SslPinningPlatform", r"SslPinningPlatform"),
    ],
    good=[GOOD])
