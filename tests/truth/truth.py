#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs programs whose causal profile is arithmetic under the profiler and compares, in percentage points. See README.md."""

import argparse
import contextlib
import fnmatch
import json
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import summary  # noqa: E402
from cases import CASES, SPEEDUPS, cpus  # noqa: E402
from peer import Coz, Missing  # noqa: E402
from profiles import Profile  # noqa: E402
from summary import mean_size, median_or_none, show_row, worst_size  # noqa: E402

BUILD = os.path.join(HERE, "..", "..", "build")
REAL_TURNS = 9  # of runs of work that is really shorter, where that is the truth
LOOSE_BAR = 10.0  # points, or percent
LOOSE_REPEATS = 2
LOOSE_EXPERIMENT = 0.6  # of the length that the bars are for: as many in a shorter run
STOLEN_BAR, STOLEN_REPEATS = 0.015, 2  # more that a hypervisor took, and a run is no measurement
FOREIGN_SEEN = 0.05  # with one CPU kept busy the profile must own to at least this share
NATIVE_BAR, NATIVE_BAR_SHORT = 3.0, 5.0
VALIDATE_BAR = 3.0
BETWEEN = "between.json"  # of --keep: what visits take beside their work


PAYERS = {p: ("--pay", p) for p in ("auto", "sleep", "hold", "spin")}
OLDER = ("--disable", "task_work,send_signal_task,uprobe_multi")
PAYERS["older"] = ("--pay", "auto", *OLDER)
PAYERS["older-sleep"] = ("--pay", "sleep", *OLDER)
# The program runs already, with a handler of a signal put into it or not.
ATTACHED = {"attach": "never", "attach-auto": "auto", "attach-always": "always"}


class Failure(Exception):
    """The case could not be measured."""


class Unmeasured(Failure):
    """No experiment got to some speedup, as in a short run on a busy machine."""


class Skip(Exception):
    """This machine cannot run the case."""


def line_of(source, marker):
    """The number of the line that says /* LINE:marker */; there is one."""
    with open(os.path.join(HERE, "programs", source), encoding="utf-8") as f:
        found = [n for n, text in enumerate(f, 1) if f"/* LINE:{marker} */" in text]
    if len(found) != 1:
        raise Failure(f"{source} has {len(found)} lines marked LINE:{marker}")
    return found[0]


def numbers_in(text):
    """key=value pairs of a program's output; the last one of a name wins."""
    return {k: float(v) for k, v in re.findall(r"(\w+)=(-?[0-9.]+(?:e[-+]?\d+)?)\b", text)}


class Runner:
    def __init__(self, options):
        self.options = options
        self.per_us = options.per_us
        self.seed = options.seed
        self.between = {}  # what between_us() measured
        if options.again:
            with open(os.path.join(options.again, BETWEEN), encoding="utf-8") as f:
                self.between = json.load(f)
        self.coz = None  # or a Coz
        self.peers = []  # (name, mean error of ours, of Coz's) of each case that both measured
        self.intervals = []  # (covers the truth, half-width in points, what of it is the method's) of each reported cell
        self.shared = {}  # profiles of runs whose lines are judged apart
        self.flat = []  # of each run of a line without effect: was it called one that helps or hurts?
        self.spinning = set()  # cases whose report says that threads spin
        self.knees = []  # (name, distance in points of line speedup or None) of each run of a line with a knee
        self.errors = {}  # of each group (see Case.group): {cell's name: error in points}

    def program(self, name):
        path = os.path.join(self.options.programs, name)
        if not os.path.exists(path):
            raise Failure(f"{path} is not there: build it first, or say --programs")
        return path

    def execute(self, command, limit, statuses=(0,)):
        """stdout of a command that must end within `limit` seconds, with one of these statuses."""
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            out, err = process.communicate(timeout=limit)
        except BaseException as e:
            process.terminate()  # a profiler ends the program as well
            try:
                process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
            if not isinstance(e, subprocess.TimeoutExpired):
                raise
            raise Failure(f"no end after {limit:.0f} s: {' '.join(command)}") from None
        if process.returncode not in statuses:
            last = (err.strip().splitlines() or ["nothing on stderr"])[-1]
            raise Failure(f"status {process.returncode}: {last}")
        return out

    def calibration(self):
        """Once for all runs: iterations in a microsecond. Only ratios of work matter, but they matter across runs."""
        if self.per_us is None:
            self.per_us = numbers_in(self.execute([self.program("busy"), "--calibrate"], 30))["per_us"]
        return f"{self.per_us:.3f}"

    def command(self, case, seconds):
        return [self.program(case.program), *case.args, "--per-us", self.calibration(), "--seconds", f"{seconds:g}"]

    @contextlib.contextmanager
    def load(self, case):
        if not case.foreign:
            yield
            return
        busy = subprocess.Popen([self.program("busy"), "--per-us", self.calibration()])
        try:
            yield
        finally:
            busy.kill()
            busy.wait()

    def shared_profile(self, case, pay, turn):
        """The profile of a run in which all lines of the case's program were drawn; of these cases the first one runs it."""
        key = (case.program, case.args, case.foreign, pay, turn)
        if key not in self.shared:
            lines = sum((c.program, c.args, c.foreign) == key[:3] for c in CASES)
            self.shared[key] = self.profile(case, pay, lines * self.options.seconds, (0, *SPEEDUPS), together=True)[0]
        own = self.shared[key].of_line(place_of(case))
        if self.options.estimate != "reported" and any(s not in own.cells for s in case.speedups) or any(s not in reported(own, case) for s in case.speedups):
            print("    drawn too rarely among all lines of its program: a run of its own")
            return self.profile(case, pay, self.options.seconds, (0, *case.speedups))[0]
        return own

    def profile(self, case, pay, seconds, speedups, together=False):
        """One profiled run, of the case's line or of all of its program's; (the profile, what the program printed). The bars are for a quiet machine: one
        that is not is tried again."""
        for attempt in range(1 + (STOLEN_REPEATS if self.options.bar == "strict" else 0)):
            profile, out = self.profile_once(case, pay, seconds, speedups, together)
            if profile.stolen() <= STOLEN_BAR:
                break
            print(f"    a hypervisor took {100 * profile.stolen():.1f} % of the time in run {attempt + 1}", flush=True)
        return profile, out

    def profile_once(self, case, pay, seconds, speedups, together):
        self.seed += 1
        where = self.options.keep or self.options.again or tempfile.mkdtemp(prefix="cozbpf-truth-")
        path = os.path.join(where, f"{case.name.replace('/', '-')}-{pay}-{self.seed}.jsonl")
        if self.options.again:
            return self.read(path, speedups), ""
        line = [*case.options] if together else ["--fixed-line", place_of(case), *case.options]
        command = ["-q", "--no-report", "-o", path, "-p", "progress", *line, "--seed", str(self.seed)]
        if len(speedups) == 1:
            command += ["--fixed-speedup", str(speedups[0])]
        elif not self.options.default:
            command += ["--speedups", ",".join(str(s) for s in speedups)]
        if not self.options.default:
            short = LOOSE_EXPERIMENT if self.options.bar == "loose" else 1
            command += ["--experiment", str(int(short * case.experiment_ms)), "--cool-off", str(case.cool_off_ms)]
        try:
            with self.load(case):
                if pay in ATTACHED:
                    out = self.attached([*command, "--inject", ATTACHED[pay]], case, seconds)
                else:
                    command = [self.options.cozbpf, "run", "--keep-root", *command, *PAYERS[pay], *self.options.sync]
                    out = self.execute([*command, "--", *self.command(case, seconds)], seconds + 60)
            return self.read(path, speedups), out
        finally:
            if not self.options.keep:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
                os.rmdir(where)

    def read(self, path, speedups):
        try:
            profile = Profile(path)
        except FileNotFoundError as e:
            raise Failure(f"no profile was written: {e.filename}") from None
        if len(speedups) > 1:
            profile.reported = json.loads(self.execute([self.options.cozbpf, "report", "--json", path], 60))
        return profile

    def attached(self, options, case, seconds):
        """What the program says that the profiler is attached to for its last @seconds."""
        with subprocess.Popen(self.command(case, seconds + 2), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as program:
            try:
                time.sleep(1)
                self.execute([self.options.cozbpf, "attach", str(program.pid), "-d", f"{seconds:g}", *options], seconds + 60)
                return program.communicate(timeout=60)[0]
            finally:
                program.kill()

    # The three kinds of cases: each prints what it measured and returns (distance to the bar's subject, other complaint or None).

    def natively(self, case):
        """Without a profiler: how many times its calibrated length the work takes, how long a wait is where that is the target, and what a visit takes
        beside both, in microseconds: waking who waits for it, above all. The same run says all. But not of threads that outnumber the CPUs: they wait for these
        meanwhile."""
        if case.waits == "cpu" or not case.waits and (case.flat or case.foreign or (case.threads or 0) > case.cpus):
            return 1.0, None, 0.0
        key = " ".join((case.program, *case.args))
        if key not in self.between:
            runs = [numbers_in(self.execute(self.command(case, 0.7), 30)) for _ in range(5)]
            slowness = [float(self.calibration()) / run["steps_per_us"] for run in runs]
            # What is asleep the program measures.
            works = [(case.works(slow)[0], run.get("asleep_us", case.works(slow)[1])) for run, slow in zip(runs, slowness)]
            rests = [run["period_ns"] / 1000 - case.period(*work) for run, work in zip(runs, works)]
            wait_us = statistics.median(b for _, b in works) if "asleep_us" in runs[0] else None
            self.between[key] = statistics.median(slowness), wait_us, max(0.0, statistics.median(rests))
        slowness, wait_us, rest = self.between[key]
        return slowness, wait_us, rest

    def wanted(self, case, printed):
        """The truth at each speedup, and what was added to the arithmetic for it, in words. @printed: by the program in the profiled run. A disk is as fast as
        it happens to be then."""
        if case.real:
            return self.really(case, max(1.0, self.options.seconds / 30), REAL_TURNS)[0], "really shorter work"
        slowness, wait_us, rest = self.natively(case) if self.options.wakes or case.executes or case.waits else (1.0, None, 0.0)
        if case.waits == "disk":
            wait_us = printed.get("asleep_us", wait_us)
        words = f"natively work takes {slowness:.3f} times its calibrated length, {f'a wait {wait_us:.0f} us, ' if wait_us else ''}the rest of a visit {rest:.0f} us"
        return {s: case.truth(s, rest, slowness, wait_us) for s in case.speedups}, words if rest or wait_us or slowness != 1 else ""

    def effect(self, case, pay):
        runs, printed = [], {}
        for turn in range(self.options.repeat):
            if self.options.together:
                runs.append(self.shared_profile(case, pay, turn))
            else:
                profile, out = self.profile(case, pay, self.options.seconds, (0, *case.speedups))
                runs.append(profile)
                printed = numbers_in(out)
        if case.refused:
            return self.refused(case, runs)
        wanted, added = self.wanted(case, printed)
        table = {
            how: {s: median_or_none(p.effect(s, timed) for p in runs) for s in case.speedups}
            for how, timed in (("as Coz", False), ("timed", True))
        }
        table["reported"] = {s: median_or_none(reported(p, case).get(s, (None,))[0] for p in runs) for s in case.speedups}
        by = {"coz": "as Coz"}.get(self.options.estimate, self.options.estimate)
        if None in table[by].values():
            by = "as Coz"
        if added:
            show_row("arithmetic", {s: case.truth(s) for s in case.speedups}, f"and {added}:")
        show_row("truth", wanted)
        for how, values in table.items():
            show_row(how, values)
        self.spinning.discard(case.name)  # what an earlier round said of it
        for profile in runs:
            self.compare_report(case, profile, wanted)
            print(f"    {profile.fidelity()}")
        missing = [s for s in case.speedups if table[by][s] is None]
        if missing:
            raise Unmeasured(f"nothing measured at {', '.join(f'{s} %' for s in missing)}")
        error = {s: table[by][s] - wanted[s] for s in case.speedups}
        show_row("error", error, f"of {by}, mean {mean_size(error.values()):.2f}, worst {worst_size(error.values()):.2f}")
        group = self.errors.setdefault(case.group, {})
        group.update({f"{case.name} {pay} at {s} %": error[s] for s in case.speedups})
        if self.options.real and not case.foreign and not case.real:
            got, _ = self.really(case, max(1.0, self.options.seconds / 30), self.options.repeat)
            show_row("real run", got, f"really shorter: off by {mean_size(got[s] - wanted[s] for s in case.speedups):.2f} on average")
        if self.coz and not case.foreign:
            self.compare_coz(case, wanted, mean_size(error.values()))
        complaint = None
        if case.foreign and min(p.foreign() for p in runs) < FOREIGN_SEEN:
            complaint = f"foreign load not owned to ({100 * min(p.foreign() for p in runs):.1f} %)"
        if case.name in self.spinning and case.spins:
            print("    its report says that threads spin: whatever it is off by")
            return 0.0, complaint
        if case.name in self.spinning:
            complaint = "its report says that threads spin, and they do not"
        size = worst_size if case.worst and self.options.bar == "strict" else mean_size
        return size(error.values()), complaint

    def refused(self, case, runs):
        """The report must say that it cannot know."""
        why = [reported_line(p, case).get("undecided_why") or "" for p in runs]
        print(f"    its report says: {'; '.join(why) or 'nothing'}")
        return 0.0, None if all("depend" in w for w in why) else "effects are told that hang on the pauses"

    def compare_coz(self, case, wanted, ours):
        """What Coz makes of the same program in the same time."""
        share = self.options.seconds / (1 + len(SPEEDUPS))
        began = time.monotonic()
        arguments = [*case.args, "--per-us", self.calibration(), "--seconds", f"{share:g}"]
        try:
            got = self.coz.measure(case, line_of(case.source, case.line), arguments, SPEEDUPS, lambda c: self.execute(c, share + 60))
        except (Missing, Failure) as e:
            print(f"    coz: {e}")
            return
        show_row("Coz", got, f"{time.monotonic() - began:.0f} s")
        if None in got.values():
            return
        error = {s: got[s] - wanted[s] for s in SPEEDUPS}
        theirs = mean_size(error.values())
        self.peers.append((case.name, ours, theirs))
        show_row("its error", error, f"mean {theirs:.2f}, worst {worst_size(error.values()):.2f}; ours {ours:.2f}")

    def compare_report(self, case, profile, wanted):
        """What the report says, with its 95 % intervals, its verdict and its knee, beside the truth."""
        said, cells = reported_line(profile, case), {}
        for s, (effect, low, high, method) in reported(profile, case).items():
            if s not in wanted:
                continue
            half = (high - low) / 2
            cells[s] = f"{effect:.1f}+-{half:.1f}"
            self.intervals.append((low - 1e-9 <= wanted[s] <= high + 1e-9, half, method))
        note = said.get("verdict") or "no verdict"
        if case.flat:
            self.flat.append(note in ("helps", "hurts"))
        if any(point.get("spins") for point in profile.reported["points"]):
            self.spinning.add(case.name)
            note += ", threads spin"
        share = said.get("presence", 1)
        if share != 1:
            note += f", runs {100 * share:.0f} % of the time"
        knee, found = case.knee, said["curve"].get("knee")
        if knee is not None:
            self.knees.append((case.name, None if found is None else 100 * found - knee))
            note += f", knee {'none' if found is None else f'{100 * found:.0f}'} for {knee:.0f}"
        print("    intervals " + "".join(f"{cells.get(s, '-'):>8}" if s == min(wanted) else f"{cells.get(s, '-'):>11}" for s in wanted) + f"   {note}")

    def hits(self, case, pay):
        """Sampling against CPU time. The time of an iteration, with sampling but no pauses, is that of the 0 % run; iterations in
        the experiments are visits times the iterations of a batch."""
        seconds = 0.4 * self.options.seconds
        ratios, samples, per_iteration = {}, {}, None
        for s in (0, *SPEEDUPS):
            profile, out = self.profile(case, pay, seconds, (s,))
            said = numbers_in(out)
            if s == 0:
                per_iteration = said["ns_per_iteration"]
            if s not in profile.cells or profile.cells[s].delta == 0:
                raise Failure(f"no visits at {s} %")
            line_ns = profile.cells[s].delta * said["batch_iterations"] * per_iteration
            samples[s] = profile.total("selected_samples", s)
            ratios[s] = profile.total("selected_ns", s) / line_ns
            print(f"    {s:3} %: {profile.fidelity()}")
        show_row("samples", samples, "at 0, 25, 50, 75, 100 %", "8.0f")
        show_row("ratio", ratios, "what they stand for / CPU time in the line", "8.4f")
        few = min(samples.values())
        complaint = f"only {few} samples in a cell; 20000 are asked for" if self.options.bar == "strict" and few < 20000 else None
        return 100 * max(abs(r - 1) for r in ratios.values()), complaint

    def stopped(self, case, pay):
        """Payments against the books, and against what the program noticed. Ticks stop the program too: their share is taken from a
        run at 0 %."""
        _, out = self.profile(case, pay, max(self.options.seconds / 4, 2), (0,))
        ticks = stopped_and_lived(out)
        profile, out = self.profile(case, pay, self.options.seconds, (5,))
        noticed = 0.0
        for thread, (stopped, lived) in stopped_and_lived(out).items():
            noticed += stopped - lived * ticks[thread][0] / ticks[thread][1]
        total = {k: profile.total(k) for k in ("paid", "growth", "hit_ns", "credited", "rq_credited", "forgiven", "owed")}
        due = sum(x.get("threads", 2) * x.get("growth", 0) for x in profile.experiments)
        due -= sum(total[k] for k in ("hit_ns", "credited", "rq_credited", "forgiven", "owed"))
        if due <= 0 or total["paid"] <= 0:
            raise Failure("nothing was owed or nothing paid")
        print("    " + ", ".join(f"{k} {v / 1e6:.3f} ms" for k, v in total.items()))
        print(f"    paid / due {total['paid'] / due:.4f}   noticed by the program / paid {noticed / total['paid']:.4f}")
        print(f"    {profile.fidelity()}")
        late = profile.late()
        complaint = f"{late / 1000:.0f} us from hit to pause" if self.options.bar == "strict" and late >= 100000 else None
        return 100 * max(abs(total["paid"] / due - 1), abs(noticed / total["paid"] - 1)), complaint

    def native_period(self, case, percent, seconds):
        command = [*self.command(case, seconds), f"--speedup-{case.line}", str(percent)]
        period = numbers_in(self.execute(command, seconds + 30))["period_ns"]
        if period <= 0:
            raise Failure("no visits")
        return period

    def really(self, case, seconds, turns):
        """The effects of work that really gets shorter, without a profiler, and the shortest period; by runs in turn, since a machine is not equally fast
        for long."""
        periods = [{s: self.native_period(case, s, seconds) for s in (0, *case.speedups)} for _ in range(turns)]
        return {s: 100 * (1 - statistics.median(p[s] / p[0] for p in periods)) for s in case.speedups}, min(p[0] for p in periods)

    def native(self, case):
        """No profiler at all: is the arithmetic right?"""
        wanted = {s: case.truth(s) for s in case.speedups}
        got, period = self.really(case, self.options.seconds, self.options.repeat)
        error = {s: got[s] - wanted[s] for s in case.speedups}
        arithmetic = 1000 * case.period(case.a_us, case.b_us)
        show_row("truth", wanted)
        show_row("native", got)
        show_row("error", error, f"mean {mean_size(error.values()):.2f}")
        print(f"    period {period / 1000:.1f} us, by arithmetic {arithmetic / 1000:.1f} us")
        # Handing over wakes a thread, which the arithmetic leaves out: some tens of microseconds a time.
        off = abs(period - arithmetic) > (0.03 if self.options.bar == "strict" else 0.1) * arithmetic + 100e3
        return mean_size(error.values()), "the period is not what the arithmetic says" if off else None

    def validate(self, case, pay):
        """What `cozbpf validate` says of the line: the largest gap. The truth is in it: the line is slowed for real."""
        self.seed += 1
        seconds = self.options.seconds
        command = [
            self.options.cozbpf, "validate", "--keep-root", "-q", "--report", "-", "-p", "progress", "-l", place_of(case),
            "--cool-off", str(case.cool_off_ms), "--seed", str(self.seed), *PAYERS[pay],
        ]  # fmt: skip
        with self.load(case):
            out = self.execute([*command, "--", *self.command(case, seconds)], seconds + 60, (0, 1, 2))
        out = re.sub(r"\n {4,}", " ", out)  # lines that go on
        table = {row: re.findall(r"(-?[\d.]+) \+- +([\d.]+)", rest) for row, rest in re.findall(r"^  (\w+)  (.*)$", out, re.MULTILINE)}
        verdict = out.strip().splitlines()[-1]
        slowed = {s: case.truth(-s) for s in (25, 50)}
        print(f"    truth      {slowed[25]:9.1f}          {slowed[50]:9.1f}")
        for row in ("measured", "predicted", "gap"):
            print(f"    {row:10}" + "".join(f"{float(v):9.1f} +- {float(h):5.1f}" for v, h in table.get(row, [])))
        print(f"    {verdict}")
        if not table.get("gap"):
            raise Failure(verdict)
        agrees = verdict.startswith("agrees")
        return max(abs(float(v)) for v, _ in table["gap"]), None if agrees else verdict.split(":", maxsplit=1)[0]

    def measure(self, case, pay):
        if cpus() < case.cpus:
            raise Skip(f"needs {case.cpus} CPUs")
        if pay == "native":
            return self.native(case)
        if self.options.validate:
            return self.validate(case, pay)
        return getattr(self, case.kind)(case, pay)

    def judge(self, case, pay):
        """True: passed, False: failed, None: skipped."""
        where = f"{case.source}:{line_of(case.source, case.line)}"
        print(f"{case.name}  ({', '.join([where, *self.options.sync[1:], f'pay {pay}'])})", flush=True)
        bar = (NATIVE_BAR_SHORT if case.short else NATIVE_BAR) if pay == "native" else case.bar
        if self.options.validate:
            bar = VALIDATE_BAR
        loose = self.options.bar == "loose"
        if loose:
            bar = max(bar, LOOSE_BAR)
        for attempt in range(1 + (LOOSE_REPEATS if loose else 0)):
            try:
                distance, complaint = self.measure(case, pay)
            except Skip as e:
                print(f"    SKIP: {e}")
                return None
            except (Unmeasured, KeyError) as e:
                distance, complaint = math.inf, f"{e}" if isinstance(e, Unmeasured) else f"{e} is missing"
            except (Failure, OSError) as e:
                print(f"    FAIL: {e}")
                return False
            if distance <= bar and not complaint:
                print(f"    PASS: {distance:.2f}, at most {bar:g}", flush=True)
                return True
            why = complaint or f"{distance:.2f}, at most {bar:g}"
            if loose and attempt < LOOSE_REPEATS:
                print(f"    noisy round ({why}): repeated, {attempt + 1} of {LOOSE_REPEATS}", flush=True)
                self.shared.clear()
        print(f"    FAIL: {why}", flush=True)
        return False


def place_of(case):
    if case.waits == "cpu":
        return "[cpu]"
    return f"{case.source}:{line_of(case.source, case.line)}" + (f" [{case.waits}]" if case.waits and case.line == "b" else "")


def reported_line(profile, case):
    """What the report says of the case's line."""
    lines = [line for point in profile.reported["points"] for line in point["lines"]]
    return next((line for line in lines if f"/{line.get('selected')}".endswith(f"/{place_of(case)}")), {"curve": {"at": ()}})


def reported(profile, case):
    """Its effects and their 95 % intervals, and which half-width of these is the method's own, in percent: {speedup: (effect, low, high, method)}."""
    at = reported_line(profile, case)["curve"]["at"]
    cells = {round(100 * c["speedup"]): (c["effect"], c["low"], c["high"], c.get("method", 0)) for c in at}
    return {s: tuple(100 * v for v in cell) for s, cell in cells.items() if s in SPEEDUPS and None not in cell}


def stopped_and_lived(out):
    """Of each thread that the program `stopped` reports: nanoseconds."""
    found = {t: (float(s), float(n)) for t, s, n in re.findall(r"thread=(\w) .*?stopped_ns=(\d+) lived_ns=(\d+)", out)}
    if len(found) != 2 or not all(lived > 0 for _, lived in found.values()):
        raise Failure("the program's account is incomplete")
    return found


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--case", metavar="GLOB", action="append", help="only cases whose name matches, e.g. 'barrier-*/a'; repeatable")
    p.add_argument("--list", action="store_true", help="print the cases with their arithmetic and leave")
    p.add_argument("--native", action="store_true", help="no profiler: check the arithmetic by really making the work shorter")
    p.add_argument("--validate", action="store_true", help="what `cozbpf validate` says of each case's line, which is really slowed")
    p.add_argument("--real", action="store_true", help="beside it: the work really made shorter, without a profiler")
    p.add_argument("--coz", action="store_true", help="beside it: what Coz makes of it in the same time (COZ=TREE: of a newer build)")
    p.add_argument(
        "--pay", default="auto", help=f"payers, comma between (default: auto), of {', '.join((*PAYERS, *ATTACHED))}; older: the default of a kernel without task work",
    )  # fmt: skip
    p.add_argument("--sync", choices=("sched", "pthread"), help="how waits are followed (default: the profiler's)")
    p.add_argument("--seconds", type=float, help="length of a run (default: 60; native: 1)")
    p.add_argument("--repeat", type=int, default=1, metavar="N", help="each cell is the median of N runs")
    p.add_argument("--bar", choices=("strict", "loose"), default="strict")
    p.add_argument("--estimate", choices=("timed", "reported", "coz"), help="what is compared (all are printed; default: timed, or reported with --together)")
    p.add_argument("--wakes", action="store_true", help="count what a visit takes beside its work, measured without a profiler, as a piece that nothing shortens")
    p.add_argument("--together", action="store_true", help="all lines of a program in one run, drawn as they are by default; --seconds is for each")
    p.add_argument("--default", action="store_true", help="with --together: no options but the point, as users do, which draws from many more speedups")
    p.add_argument("--cozbpf", default=os.path.normpath(os.path.join(BUILD, "user", "cmd", "cozbpf")), metavar="PATH")
    p.add_argument("--programs", default=os.path.normpath(os.path.join(BUILD, "tests", "truth")), metavar="DIR")
    p.add_argument("--per-us", type=float, help="iterations in a microsecond, of an earlier calibration")
    p.add_argument("--seed", type=int, default=1, help="of the first run; each further one has the next")
    p.add_argument("--keep", metavar="DIR", help="leave the profiles there")
    p.add_argument("--again", metavar="DIR", help="run nothing: judge the profiles that --keep left there, with otherwise the same options")
    options = p.parse_args(argv)
    if options.seconds is None:
        options.seconds = 1.0 if options.native else 60.0
    if options.default and not options.together or options.keep and options.again:
        p.error("--default goes with --together, --keep not with --again")
    if options.estimate is None:
        options.estimate = "reported" if options.together else "timed"
    options.sync = ("--sync", options.sync) if options.sync else ()
    if options.repeat < 1 or options.seconds <= 0:
        p.error("--repeat and --seconds must be positive")
    unknown = set(options.pay.split(",")) - set(PAYERS) - set(ATTACHED)
    if unknown:
        p.error(f"no such payer: {', '.join(sorted(unknown))}")
    if not options.native and not options.list and not os.access(options.cozbpf, os.X_OK):
        p.error(f"{options.cozbpf} is not there: build it first, or say --cozbpf")
    return options


def main(argv):
    options = parse(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # leave through the clean-up: nothing stays behind
    chosen = [c for c in CASES if any(fnmatch.fnmatch(c.name, g) for g in options.case or ["*"])]
    if options.native or options.validate:
        chosen = [c for c in chosen if c.kind == "effect" and not c.foreign]
    if not chosen:
        print("no case matches", file=sys.stderr)
        return 2
    if options.list:
        for c in chosen:
            curve = " ".join(f"{c.truth(s):6.2f}" for s in SPEEDUPS) if c.kind == "effect" else f"{c.kind:27}"
            print(f"{c.name:30} {curve}   bar {c.bar:g}{' %' if c.kind != 'effect' else ''} {'each' if c.worst else ''}".rstrip())
        return 0
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    runner = Runner(options)
    with tempfile.TemporaryDirectory(prefix="cozbpf-truth-") as folder:
        if options.coz:
            try:
                runner.coz = Coz(os.environ.get("COZ", ""), folder)
            except Missing as e:
                print(f"--coz: {e}", file=sys.stderr)
                return 2
        return judge_all(options, runner, chosen)


def judge_all(options, runner, chosen):
    """Runs the chosen cases, sums up, returns the exit status."""
    results, beside = [], 0
    for pay in ["native"] if options.native else options.pay.split(","):
        for case in chosen:
            if pay != "native" and case.payers and pay not in case.payers:
                beside += 1
                continue
            results.append((runner.judge(case, pay), f"{case.name} {pay}"))
    if runner.options.keep:
        with open(os.path.join(runner.options.keep, BETWEEN), "w", encoding="utf-8") as f:
            json.dump(runner.between, f)
    if beside:
        print(f"{beside} not defined for their payer: more threads than CPUs, or load from outside, with one that sleeps")
    summary.show(runner)
    for verdict, name in results:
        if verdict is not True:
            print(f"{'skipped' if verdict is None else 'failed'}: {name}")
    count = [sum(v is w for v, _ in results) for w in (True, False, None)]
    print("{} passed, {} failed, {} skipped".format(*count))
    return 1 if count[1] else 0


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main(sys.argv[1:]))
