"""What is measured, and how: ours and the peer in turn, in pairs. A ratio is of one pair, and above 1 where ours is
better: what else the machine does hits both."""

import math
import os
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Measure:
    """A figure that a program prints. `reach` is what it should be: `ratio`: at least so many times as good as the
    peer; `most`: at most so much."""
    key: str
    unit: str
    less: bool = True
    ratio: float | None = None
    most: float | None = None


@dataclass
class Case:
    """Programs that do the same. Of a `series` each case has another `size`: they are plotted."""
    name: str
    what: str
    measures: list[Measure]
    ours: Callable[[], dict]
    peer: Callable[[], dict] | None = None
    peer_name: str = ""
    series: str = ""
    size: int = 0
    # Pairs in each round; 0: once in all, for what does not vary.
    pairs: int = 1
    ours_seen: list[dict] = field(default_factory=list)
    peer_seen: list[dict] = field(default_factory=list)

    def pair(self, number):
        """Who begins has the warmer or the colder machine: they take turns at that, too."""
        both = [(self.ours, self.ours_seen)] + ([(self.peer, self.peer_seen)] if self.peer else [])
        for run, seen in reversed(both) if number % 2 else both:
            seen.append(run())


def in_turns(cases, rounds):
    for number in range(rounds):
        for case in cases:
            for pair in range(case.pairs or (number == 0)):
                case.pair(number + pair)
        print(f"  round {number + 1} of {rounds}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)


def spread(values):
    """Median, and the 95 % interval of the median by order statistics; with fewer than six values the range."""
    values, count = sorted(values), len(values)
    rank, below = 0, 0.0
    while (below := below + math.comb(count, rank) / 2**count) <= 0.025:
        rank += 1
    low = max(rank - 1, 0)
    return {"median": statistics.median(values), "low": values[low], "high": values[count - 1 - low],
            "interval": "95 %" if rank else "range", "count": count}


def result(case, measure):
    """One line of the results."""
    ours = [one[measure.key] for one in case.ours_seen]
    line = {"case": case.name, "what": case.what, "measure": measure.key, "unit": measure.unit,
            "series": case.series, "size": case.size, "ours": spread(ours)}
    if case.peer:
        theirs = [one[measure.key] for one in case.peer_seen]
        pairs = [(peer / our if measure.less else our / peer) if our and peer else 1.0
                 for our, peer in zip(ours, theirs)]
        line |= {"peer": case.peer_name, "theirs": spread(theirs), "ratio": spread(pairs)}
    if measure.ratio is not None:
        line |= {"reach": f"{measure.ratio:g} times", "met": line["ratio"]["median"] >= measure.ratio}
    if measure.most is not None:
        line |= {"reach": f"{measure.most:g} {measure.unit}".strip(), "met": line["ours"]["median"] <= measure.most}
    return line
