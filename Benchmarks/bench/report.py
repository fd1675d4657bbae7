"""Writes docs/performance.md of Benchmarks/performance.md and the results.

- `<!-- machine -->`, `<!-- table: SUITE -->` and `<!-- plot: NAME -->` stand for what was measured.
- `{case.measure}` is our median with its unit, `{case.measure.theirs}` the peer's, `{case.measure.ratio}` how many times
  as good ours is."""

import json
import re

import plots
import tools

TEMPLATE = tools.ROOT / "Benchmarks/performance.md"
DOCS = tools.ROOT / "docs"
NONE = "(not measured)"
VERSIONS = ("swift", "libcurl", "openssl", "nginx", "wrk", "go", "orjson", "jcs-admit", "rfc8785")


def number(value):
    """Three digits that count."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:_.0f}".replace("_", " ")
    return f"{value:.{2 if abs(value) < 10 else 1}f}" if abs(value) >= 1 else f"{value:.2g}"


def cell(found):
    if found["count"] == 1 or found["low"] == found["high"]:
        return number(found["median"])
    return f"{number(found['median'])} ({number(found['low'])} to {number(found['high'])})"


def table(suite):
    if suite is None:
        return NONE
    if "count" in suite["lines"][0]:
        rows = [f"| {line['case'].replace('_', ', ')} | {line['count']:_} |".replace("_", " ") for line in suite["lines"]]
        return "\n".join(["| One call | Instructions, or allocations |", "|---|---|", *rows])
    rows = ["| What | Figure | Ours | Peer | Times as good | Reach |", "|---|---|---|---|---|---|"]
    for line in suite["lines"]:
        name = re.sub(r"_(per_s|ms|us|ns|mb|kb)\b", "", line["measure"]).replace("_", " ")
        name = {"mb": "speed"}.get(name, name)
        peer = f"{line['peer']}: {cell(line['theirs'])}" if "peer" in line else ""
        ratio = cell(line["ratio"]) if "ratio" in line else ""
        reach = f"{line['reach']}: {'yes' if line['met'] else '**no**'}" if "reach" in line else ""
        rows.append(f"| {line['what']} | {name}{', ' + line['unit'] if line['unit'] else ''} | {cell(line['ours'])} "
                    f"| {peer} | {ratio} | {reach} |")
    ranges = {line["ratio"]["interval"] for line in suite["lines"] if "ratio" in line}
    said = ("In parentheses: the range." if ranges <= {"range"} else "In parentheses: the 95 % interval of the median.")
    return "\n".join([*rows, "", f"Measured {suite['machine']['date']}, {max(l['ours']['count'] for l in suite['lines'])} "
                      f"times, load {suite['machine']['load']} before and {suite['machine']['load_after']} after. {said}"])


def machine(suites):
    facts = next(iter(suites.values()))["machine"]
    rows = [("Processor", f"{facts['processor']}, {facts['processors']} of them"), ("Memory", f"{facts['memory_gb']} GB"),
            ("System", facts["system"]), ("Commit", facts["commit"]),
            ("Versions", ", ".join(f"{name} {facts[name]}" for name in VERSIONS))]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def value(lines, case, measure, which):
    line = lines.get((case, measure))
    if line is None or (which and which not in line):
        return NONE
    if which == "ratio":
        return number(line["ratio"]["median"])
    return f"{number(line[which or 'ours']['median'])} {line['unit']}".strip()


def write(results):
    suites = {file.stem: json.loads(file.read_text()) for file in sorted(results.glob("*.json"))}
    every = [line for suite in suites.values() for line in suite["lines"] if "measure" in line]
    lines = {(line["case"], line["measure"]): line for line in every}
    (DOCS / "performance").mkdir(exist_ok=True)

    def plot(name):
        drawn = plots.svg(name, every)
        if drawn is None:
            return NONE
        (DOCS / f"performance/{name}.svg").write_text(drawn)
        return f"![{plots.PLOTS[name][0]}](performance/{name}.svg)"

    text = TEMPLATE.read_text().replace("<!-- machine -->", machine(suites))
    text = re.sub(r"<!-- table: (\w+) -->", lambda match: table(suites.get(match[1])), text)
    text = re.sub(r"<!-- plot: ([\w-]+) -->", lambda match: plot(match[1]), text)
    text = re.sub(r"\{([\w-]+)\.(\w+)(?:\.(ratio|theirs))?\}", lambda match: value(lines, *match.groups()), text)
    (DOCS / "performance.md").write_text(text)
