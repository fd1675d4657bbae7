"""What the checks share: the tracked files, Swift text without comments and
strings, the report, and the self-test that proves that a check can fail.

A check is a function from {path: text} to a list of (path, line, message).
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def tracked_text_files():
    """Every text file git tracks or would track (so that a new file is checked
    before its first commit), without the test data of other projects."""
    names = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True).stdout.decode().split("\0")
    files = {}
    for name in sorted(set(names)):
        path = ROOT / name
        if not name or name.startswith("Vectors/") or not path.is_file():
            continue
        try:
            files[name] = path.read_bytes().decode()
        except UnicodeDecodeError:
            continue
    return files


SOURCES = ("Sources/", "Server/Sources/", "Server/Lab/")
TESTS = ("Tests/", "Server/Tests/")


def target_of(path):
    """The target that a Swift file belongs to; None outside the halves."""
    for folder in SOURCES + TESTS:
        if path.startswith(folder) and path.count("/") > folder.count("/"):
            return path[len(folder):].split("/")[0]
    return None


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


class _Swift:
    """Blanks comments and the text of string literals, keeps every line break
    and the code inside interpolations. Regex literals are not known to it: a
    quote in one blanks the rest of its line at most."""

    def __init__(self, text):
        self.text, self.at, self.out = text, 0, []

    def blank(self, count):
        part = self.text[self.at:self.at + count]
        self.out.append("".join(c if c == "\n" else " " for c in part))
        self.at += count

    def keep(self, count):
        self.out.append(self.text[self.at:self.at + count])
        self.at += count

    def code(self, inside_parentheses=False):
        depth = 0
        while self.at < len(self.text):
            rest = self.text
            if rest.startswith("//", self.at):
                end = rest.find("\n", self.at)
                self.blank((len(rest) if end < 0 else end) - self.at)
            elif rest.startswith("/*", self.at):
                self.comment()
            elif match := re.compile(r'(#*)("""|")').match(rest, self.at):
                self.string(match.group(1), match.group(2))
            else:
                character = rest[self.at]
                if inside_parentheses:
                    depth += {"(": 1, ")": -1}.get(character, 0)
                self.keep(1)
                if inside_parentheses and depth == 0:
                    return

    def comment(self):
        depth = 0
        while self.at < len(self.text):
            if self.text.startswith("/*", self.at):
                depth += 1
                self.blank(2)
            elif self.text.startswith("*/", self.at):
                depth -= 1
                self.blank(2)
                if depth == 0:
                    return
            else:
                self.blank(1)

    def string(self, hashes, quote):
        self.blank(len(hashes) + len(quote))
        close, escape = quote + hashes, "\\" + hashes
        while self.at < len(self.text):
            if self.text.startswith(close, self.at):
                self.blank(len(close))
                return
            if self.text.startswith(escape + "(", self.at):
                self.blank(len(escape))
                self.code(inside_parentheses=True)
            elif self.text.startswith(escape, self.at):
                self.blank(len(escape) + 1)
            elif quote == '"' and self.text[self.at] == "\n":
                return
            else:
                self.blank(1)


def code_only(text):
    """Swift source with comments and strings blanked, line for line."""
    swift = _Swift(text)
    swift.code()
    return "".join(swift.out)


def main(check, bad, good):
    """Runs `check` over the project or, with --self-test, over samples: each of
    `bad` is ({path: text}, [lines that must be reported]), each of `good` {path: text}."""
    if sys.argv[1:] == ["--self-test"]:
        problems = []
        for files, lines in bad:
            found = sorted({line for _, line, _ in check(files)})
            if found != sorted(set(lines)):
                problems.append(f"reported lines {found} instead of {lines} of {files}")
        for files in good:
            if found := check(files):
                problems.append(f"reported {found} in the good sample {files}")
        if not bad or not good:
            problems.append("a self-test needs bad and good samples")
        for problem in problems:
            print(f"{Path(sys.argv[0]).name}: self-test: {problem}")
        sys.exit(1 if problems else 0)
    if sys.argv[1:]:
        print(f"usage: {Path(sys.argv[0]).name} [--self-test]", file=sys.stderr)
        sys.exit(2)
    offences = sorted(check(tracked_text_files()))
    for path, line, message in offences:
        print(f"{path}:{line}: {message}")
    sys.exit(1 if offences else 0)
