#!/usr/bin/env python3
"""Type-checks the listings of the documentation against the modules of the last build.

A listing is a block of Swift in an article. What it is stands in a comment on the line before it:

    (nothing)                        statements, with the names of GIVEN at hand
    <!-- listing: file -->           a file of its own
    <!-- listing: apple -->          a file for Apple's systems: scripts/apple/check.py has it
    <!-- listing: unchecked: why --> nothing that could be compiled here

    listings.py              check every listing
    listings.py --self-test  plant an error in every listing and expect each to be found
"""

import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import symbolgraphs  # noqa: E402

ROOT = symbolgraphs.ROOT
ARTICLES = ["Sources/SslPinning/SslPinning.docc", "docs"]
# Declarations without bodies.
GENERATED = "api.md"

BLOCK = re.compile(
    r"^(?:<!-- listing: (?P<kind>[a-z]+)(?:: (?P<why>[^\n]*))? -->\n\n?)?"
    r"```swift\n(?P<text>.*?)^```$", re.M | re.S)
KINDS = {None, "file", "apple", "unchecked"}

IMPORTS = "import Foundation\nimport SslPinning\n"
NETWORKING = "#if canImport(FoundationNetworking)\nimport FoundationNetworking\n#endif\n"
# What a listing of statements may name without saying where it is from.
GIVEN = """url: URL, received: Data, config: SslPinningConfig, client: SslPinningClient, session: URLSession,
    pins: FixedPins, error: any Error, hosts: [String]"""
PLANTED = 'let planted: Int = "a text"\n'


class Listing:
    def __init__(self, path, text, match):
        self.path, self.kind, self.why = path, match["kind"], match["why"]
        self.line = text.count("\n", 0, match.start("text")) + 1
        self.text = match["text"]

    def source(self, number, extra=""):
        """A file of Swift whose errors are told at the listing's place in its article."""
        begin = f'#sourceLocation(file: "{self.path}", line: {self.line})\n'
        end = "#sourceLocation()\n"
        if self.kind:
            return NETWORKING + begin + self.text + end + extra
        lines = self.text.split("\n")
        imports = "".join(line + "\n" for line in lines if line.startswith("import "))
        body = "\n".join("" if line.startswith("import ") else line for line in lines)
        return (f"{IMPORTS}{imports}{NETWORKING}"
                f"func listing{number}({GIVEN}) async throws {{\n{begin}{body}{extra}}}\n{end}")


def listings(root=ROOT):
    found = []
    for folder in ARTICLES:
        for path in sorted((root / folder).rglob("*.md")):
            if path.name == GENERATED:
                continue
            text = path.read_text()
            found += [Listing(path, text, match) for match in BLOCK.finditer(text)]
    return found


def faults(found):
    """What is wrong with the marks themselves."""
    for listing in found:
        if listing.kind not in KINDS or (listing.kind == "unchecked") != bool(listing.why):
            yield f"{listing.path}:{listing.line}: error: no such kind of listing"


def type_check(found, extra=""):
    """What the compiler says of these listings; nothing where all is well."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, listing in enumerate(found):
            files.append(Path(folder) / f"listing{number}.swift")
            files[-1].write_text(listing.source(number, extra))
        resources = Path(symbolgraphs.target_info()["paths"]["runtimeResourcePath"])
        command = [symbolgraphs.programs() / "swiftc", "-typecheck", "-wmo", "-parse-as-library",
                   "-swift-version", "6", "-suppress-warnings", "-module-name", "Listings",
                   "-module-cache-path", ROOT / ".build" / "docs" / "module-cache",
                   "-plugin-path", resources / "host" / "plugins" / "testing",
                   *symbolgraphs.imports(), *files]
        try:
            symbolgraphs.run(*command)
        except symbolgraphs.Failed as failure:
            return str(failure)
    return ""


def checked():
    return [listing for listing in listings() if listing.kind in (None, "file")]


def write_apple(folder):
    """Writes the listings for Apple's systems as files of Swift, each line where it stands in its
    article."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.swift"):
        path.unlink()
    counts = {}
    for listing in (listing for listing in listings() if listing.kind == "apple"):
        name = listing.path.stem
        counts[name] = counts.get(name, 0) + 1
        path = folder / f"{name}-{counts[name]}.swift"
        path.write_text("\n" * (listing.line - 1) + listing.text)


def self_test():
    found = checked()
    said = type_check(found, PLANTED)
    missed = []
    for number, listing in enumerate(found):
        end = listing.line + listing.text.count("\n")
        place = f"listing{number}.swift:" if listing.kind else f"{listing.path}:{end}:"
        if not re.search(re.escape(place) + r".*: error: cannot convert value of type", said):
            missed.append(f"{listing.path}:{listing.line}")
    bad = [Listing(Path("a.md"), text, BLOCK.search(text)) for text in (
        "<!-- listing: unchecked -->\n\n```swift\n```\n",
        "<!-- listing: fil -->\n\n```swift\n```\n")]
    missed += [listing.kind for listing in bad if not list(faults([listing]))]
    for listing in missed:
        print(f"listings: self-test: the fault planted in {listing} was not found")
    return 1 if missed or not found else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    problems = "\n".join(faults(listings())) or type_check(checked())
    if problems:
        print(problems)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
