"""What the runner of the mutants and the check on them share: the rules, and how a
patch in scripts/mutants/ is read.

A patch is a plain unified diff. Before it stand header lines, which `git apply` skips:

    Rule: Evaluation 5: leaf pins match the leaf, CA pins a certificate above it
    Disables: what of the rule is switched off, and who would want that
    Tests: a regular expression over test ids, as `swift test --filter` takes it
    Hang: why a test that never ends is this mutant's red as well       (optional)

A header goes on in the next line where that one begins with white space.
"""

import re
from dataclasses import dataclass

FOLDER = "scripts/mutants/"

# The rules that are never broken, each in the words that a mutant's header begins with.
RULES = {
    "Evaluation 1": "host names",
    "Evaluation 2": "patterns",
    "Evaluation 3": "all patterns contribute, the stricter setting counts",
    "Evaluation 4": "the chain is judged first, the validated path is matched",
    "Evaluation 5": "leaf pins match the leaf, CA pins a certificate above it",
    "Evaluation 6": "a denied key refuses",
    "Evaluation 7": "expired pins do not count",
    "Evaluation 8": "a host with no entry is refused",
    "Evaluation 9": "report-only forgives a missing pin and nothing else",
    "Evaluation 10": "every connection counts",
    "Evaluation 11": "a mismatch refreshes the registry once",
    "Evaluation 12": "denied is a value that says why",
    "Registry 1": "strict parsing, the signature is over what was received",
    "Registry 2": "pins hash the key's bytes as they stand",
    "Registry 3": "one bad entry never drops the rest, nor opens its host",
    "Registry 4": "never back to an older or another document",
    "Registry 5": "root keys sign key sets, online keys sign statements",
    "Registry 6": "a host that vanishes keeps its pins",
    "Registry 7": "never locked out by an outage or a wrong clock",
    "Registry 8": "the registry's URL",
    "Server 1": "which keys are published",
    "Server 2": "signed once per change",
    "Server 3": "what was acknowledged survives",
    "Server 4": "endpoints are watched on time",
    "Server 5": "nobody stops the server who only reads",
    "Tools 1": "formats: a list says the same in each, and what one cannot say is told",
    "Tools 2": "checks: what clients will refuse is told before, and nothing else",
    "Tools 3": "own CA: keys are private, nothing is overwritten, no pin changes unannounced",
    "Tools 4": "lab: who is locked out and who lets an attacker in is said as it was",
}

HEADERS = ("Rule", "Disables", "Tests")
OPTIONAL = ("Hang",)


@dataclass
class Hunk:
    """What one hunk finds and what it leaves behind."""
    line: int
    counts: tuple  # of the lines before and after, as the hunk says
    before: str
    after: str


@dataclass
class Mutant:
    path: str
    text: str
    headers: dict  # name: (line, text)
    hunks: dict    # file: [Hunk]

    @property
    def name(self):
        return self.path.rsplit("/", 1)[-1].removesuffix(".patch")

    @property
    def rule(self):
        return next((rule for rule in RULES if self.header("Rule").startswith(rule + ": ")), None)

    def header(self, name):
        return self.headers.get(name, (1, ""))[1]


def parse(path, text):
    """Reads a patch. Hunks of files that are not there before or after are not kept."""
    mutant, header, hunk, file = Mutant(path, text, {}, {}), None, None, None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("diff --git ") or line.startswith("--- "):
            header = hunk = None
        elif line.startswith("+++ b/"):
            file = line[len("+++ b/"):].split("\t")[0]
        elif line.startswith("@@ ") and file:
            said = re.match(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", line)
            counts = tuple(int(part or 1) for part in said.groups()) if said else (0, 0)
            hunk = Hunk(number, counts, "", "")
            mutant.hunks.setdefault(file, []).append(hunk)
        elif hunk is not None:
            mark, rest = line[:1] or " ", line[1:] + "\n"
            hunk.before += rest if mark in " -" else ""
            hunk.after += rest if mark in " +" else ""
        elif file is None:
            if match := re.match(r"([A-Z][a-z]+): (.*)", line):
                header = match.group(1)
                mutant.headers[header] = (number, match.group(2).strip())
            elif header and line[:1].isspace() and line.strip():
                at, known = mutant.headers[header]
                mutant.headers[header] = (at, f"{known} {line.strip()}")
            else:
                header = None
    return mutant
