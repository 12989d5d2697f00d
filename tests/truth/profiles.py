# SPDX-License-Identifier: BSD-2-Clause
"""Reads a profile (JSON lines) and pools its experiments by speedup."""

import copy
import json
import statistics

RATE_BOUND = 0.05


class Cell:
    """The experiments of one speedup, pooled."""

    def __init__(self):
        self.experiments = 0
        self.duration = self.delta = 0  # as Coz: effective time, visits
        self.effective = self.spans = 0  # timed: from the first timed visit to the last, visits after the first
        self.sums = {}

    def add(self, experiment, point):
        self.experiments += 1
        self.duration += experiment.get("duration", 0)
        self.delta += point.get("delta", 0)
        if point.get("effective_ns", 0) > 0 and point.get("delta", 0) >= 2:
            self.effective += point["effective_ns"]
            self.spans += point.get("timed_visits", point["delta"]) - 1
        for key, value in experiment.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                self.sums[key] = self.sums.get(key, 0) + value

    def period(self, timed):
        total, count = (self.effective, self.spans) if timed else (self.duration, self.delta)
        return total / count if count > 0 and total > 0 else None


class Profile:
    def __init__(self, path, point="progress"):
        self.startup = {}
        self.experiments = []
        self.reported = None  # what the report makes of it
        self.visits = []  # (experiment, record of the point)
        experiment = None
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                try:
                    record = json.loads(line)
                except ValueError:
                    break  # cut off: the run was killed while it wrote
                kind = record.get("type")
                if kind == "startup":
                    self.startup = record.get("cozbpf", {})
                elif kind == "experiment":
                    experiment = record
                    self.experiments.append(record)
                elif kind == "throughput-point" and experiment and record.get("name") == point:
                    self.visits.append((experiment, record))
        self.cells = self.pool("")

    def pool(self, line):
        """Experiments by speedup: at 0 % all, else those of the line FILE:LINE, or with "" of any."""
        cells = {}
        for experiment, record in self.visits:
            other = line and experiment["speedup"] > 0 and not f"/{experiment.get('selected')}".endswith(f"/{line}")
            if self.settled(experiment) and not other:
                cells.setdefault(round(100 * experiment["speedup"]), Cell()).add(experiment, record)
        return cells

    def of_line(self, line):
        """The same, but for the experiments with other lines."""
        ret = copy.copy(self)
        ret.cells = self.pool(line)
        return ret

    def settled(self, experiment):
        """Was it sampled at the rate of the run's end? Ticks cost time: at another rate visits are faster or slower by per cents."""
        last = self.experiments[-1].get("period_ns", 0)
        return not last or abs(experiment.get("period_ns", last) / last - 1) <= RATE_BOUND

    def effect(self, percent, timed):
        """In percent, or None if it cannot be told."""
        periods = [self.cells[p].period(timed) if p in self.cells else None for p in (0, percent)]
        return None if None in periods else 100 * (1 - periods[1] / periods[0])

    def total(self, key, percent=None):
        return sum(cell.sums.get(key, 0) for p, cell in self.cells.items() if percent in (None, p))

    def largest(self, key):
        return max((abs(x.get(key, 0)) for x in self.experiments), default=0)

    def mean_share(self, key):
        """The time-weighted mean over the experiments of a share, 0..1."""
        elapsed = sum(x.get("elapsed", 0) for x in self.experiments)
        return sum(x.get(key, 0) * x.get("elapsed", 0) for x in self.experiments) / elapsed if elapsed else 0.0

    def foreign(self):
        """The share of time behind foreign tasks."""
        return self.mean_share("foreign")

    def stolen(self):
        """What a hypervisor took, of the time that the program ran or waited for a CPU."""
        return self.mean_share("stolen")

    def late(self):
        """Hit to pause, nanoseconds: the median of the experiments' medians."""
        late = [x["late"] for x in self.experiments if x.get("late")]
        return statistics.median(late) if late else 0

    def fidelity(self):
        parts = [
            f"pay {self.startup.get('pay', '?')}",
            f"experiments {len(self.experiments)}",
            f"visits {sum(c.delta for c in self.cells.values())}",
            f"hits {self.total('hits')}",
            f"late {self.late() / 1000:.0f} us",
            f"imbalance {self.largest('imbalance')} ns",
            f"foreign {100 * self.foreign():.1f} %, stolen {100 * self.stolen():.1f} %",
        ]
        if self.total("held_asleep"):
            of = sum(x.get("elapsed", 0) for x in self.experiments if x["speedup"] > 0)
            parts.append(f"held asleep {100 * sum(x.get('held_asleep', 0) for x in self.experiments if x['speedup'] > 0) / of:.2f} %")
        if self.startup.get("fallback"):
            parts.append(f"fallback: {self.startup['fallback']}")
        return ", ".join(parts)
