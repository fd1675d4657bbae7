"""Plots of growth as plain SVG, with logarithmic axes: a straight line of slope one is proportional."""

import math
from html import escape

WIDTH, HEIGHT = 520, 320
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 50
COLOURS = {"ours": "#0b62a4", "peer": "#c8541b"}

# Name: title, series, measure, axes, and whether the figure is a rate of which the time of all is wanted.
PLOTS = {
    "hosts-time": ("A list, bytes to policy", "list", "list_ms", "hosts", "ms", False),
    "hosts-memory": ("Memory of reading a list, at its peak", "list", "peak_mb", "hosts", "MB", False),
    "hosts-verdict": ("A verdict that matches", "verdict", "verdict_ns", "hosts", "ns", False),
    "endpoints-time": ("A round of probes", "probes", "handshakes_per_s", "endpoints", "s", True),
    "endpoints-memory": ("Memory of a round of probes", "probes", "peak_rss_mb", "endpoints", "MB", False),
    "in-flight-rate": ("Pinned requests over HTTP/1.1", "in-flight-h1", "requests_per_s", "in flight", "per s", False),
    "in-flight-time": ("99 % of pinned requests within", "in-flight-h1", "p99_us", "in flight", "µs", False),
    "in-flight-memory": ("Memory of a client over HTTP/1.1", "in-flight-h1", "peak_rss_mb", "in flight", "MB", False),
}


class Axis:
    """Maps what lies between two powers of ten, or a half of one, to pixels."""

    def __init__(self, values, start, end):
        self.low = math.floor(math.log10(min(values)) * 2 - 1e-9) / 2
        self.high = max(math.ceil(math.log10(max(values)) * 2 + 1e-9) / 2, self.low + 0.5)
        self.start, self.end = start, end

    def __call__(self, value):
        return self.start + (math.log10(value) - self.low) / (self.high - self.low) * (self.end - self.start)

    @property
    def ticks(self):
        steps = [base * 10.0**power for power in range(math.floor(self.low), math.ceil(self.high) + 1)
                 for base in ((1, 3) if self.high - self.low < 3 else (1,))]
        return [step for step in steps if self.low - 1e-6 <= math.log10(step) <= self.high + 1e-6]


def text(x, y, words, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(words)}</text>'


def number(value):
    return f"{value:,.0f}".replace(",", " ") if value >= 1 else f"{value:g}"


def svg(name, lines):
    """The plot of these results; `None` if there are fewer than two points."""
    title, series, measure, across, unit, is_time = PLOTS[name]
    lines = sorted((line for line in lines if line.get("series") == series and line["measure"] == measure),
                   key=lambda line: line["size"])
    curves = {}
    for who, key in (("ours", "ours"), ("peer", "theirs")):
        points = [(line["size"], *((line["size"] / line[key][part] if is_time else line[key][part])
                                   for part in ("median", "low", "high"))) for line in lines if key in line]
        points = [point for point in points if min(point) > 0]
        if len(points) > 1:
            curves[who] = points
    if not curves:
        return None
    x = Axis([point[0] for points in curves.values() for point in points], LEFT, WIDTH - RIGHT)
    y = Axis([value for points in curves.values() for point in points for value in point[1:]], HEIGHT - BOTTOM, TOP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
           ' font-family="sans-serif" font-size="12" fill="#222">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
           text(LEFT, 20, title, "start", 'font-size="14" font-weight="bold"'),
           text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, across), text(LEFT - 8, TOP - 8, unit, "end")]
    for tick in x.ticks:
        out += [f'<path d="M{x(tick):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>',
                text(x(tick), HEIGHT - BOTTOM + 18, number(tick))]
    for tick in y.ticks:
        out += [f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>',
                text(LEFT - 8, y(tick) + 4, number(tick), "end")]
    names = {"ours": "ours", "peer": lines[0].get("peer", "")}
    for index, (who, points) in enumerate(curves.items()):
        colour, right = COLOURS[who], WIDTH - RIGHT
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="'
                   + " ".join(f"{x(size):.1f},{y(median):.1f}" for size, median, *_ in points) + '"/>')
        for size, median, low, high in points:
            out.append(f'<path d="M{x(size):.1f} {y(low):.1f}V{y(high):.1f}" stroke="{colour}"/>'
                       f'<circle cx="{x(size):.1f}" cy="{y(median):.1f}" r="3" fill="{colour}"/>')
        out.append(text(right, 14 + 15 * index, names[who], "end", f'style="fill:{colour}"'))
    return "\n".join([*out, "</svg>"]) + "\n"
