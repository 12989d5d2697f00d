# SPDX-License-Identifier: BSD-2-Clause
"""The cases of the truth suite: programs whose causal profile is arithmetic.

Every program has two kinds of work, a and b, of known length, and the time from one visit to the next is a function of the two.
That function is all that a case needs: the effect of line a being s faster is 1 - period((1 - s) a, b) / period(a, b)."""

import dataclasses
import math
import os
from dataclasses import dataclass
from typing import Callable, Optional, Tuple

SPEEDUPS = (25, 50, 75, 100)
KEEP_CPU = ("hold", "spin", "auto", "older")  # payers that do not lend a paused thread's CPU to others
TASK_WORK = ("hold", "auto")  # payers with which waits can be targets


def cpus():
    return len(os.sched_getaffinity(0))


# Periods: microseconds of work a and work b -> microseconds from visit to visit, of all threads together.


def alternating(a, b):
    """One after the other, nothing at the same time: each is its share."""
    return a + b


def slower(a, b):
    """Side by side, and the next round or item waits for the slower: helps up to the point where both are level, the knee."""
    return max(a, b)


def locked(a, b):
    """Two threads, a inside one lock and b outside. If a >= b, the other thread is back before the lock is free: it is always taken
    and each visit takes it for a. If a < b, the two fall into a rhythm in which nobody waits: two visits each a + b. At a = b both
    are a."""
    return max(a, (a + b) / 2)


def independent(threads):
    """Threads that do not wait for each other, on as many CPUs as there are: the CPUs are what limits them."""

    def period(a, b):
        return (a + b) / min(threads, cpus())

    return period


def locked_by(threads, more):
    """`locked` with any number of threads. Either the lock is always taken, a visit each a, or it is not what they wait for: then the
    CPUs are always busy, or, where there are enough of them, the threads."""

    def period(a, b):
        return max(a + more, independent(threads)(a + more, b))

    return period


def pooled(threads, permits, asleep):
    """The most asked for of three: the permits, each taken for a and the sleep, the CPUs, and the threads."""

    def period(a, b):
        return max((a + asleep) / permits, (a + b) / cpus(), (a + asleep + b) / threads)

    return period


@dataclass(frozen=True)
class Case:
    name: str  # "family-parameters/line"
    program: str
    line: str  # "a" or "b": the line with the marker /* LINE:a */
    args: Tuple[str, ...]
    a_us: float
    b_us: float
    period: Callable[[float, float], float]
    bar: float  # points; percent for the kinds "hits" and "stopped"
    worst: bool = False  # the bar is for each cell, else for the mean of the cells
    experiment_ms: int = 500
    cool_off_ms: int = 10
    cpus: int = 2
    payers: Optional[Tuple[str, ...]] = None  # where it is defined; None: with any
    short: bool = False  # rounds so short that a wake-up, which the arithmetic leaves out, is some points of them
    spins: bool = False  # threads wait by spinning: the report may be off if it says so
    foreign: bool = False  # an unrelated process keeps one CPU busy
    executes: str = ""  # where something sleeps, or waits for real time, beside it: which of the two kinds of work take CPU time
    waits: str = ""  # the kind of wait that work b is; how long it takes is measured natively
    real: bool = False  # the truth is what really shorter work does, natively: the arithmetic leaves too much out
    refused: bool = False  # effects that depend on the profiler's own pauses, which the report must not tell
    most: int = 100  # the largest speedup that is tried: the global delay may not grow by more than 80 % of the time
    options: Tuple[str, ...] = ()  # of the profiler
    kind: str = "effect"

    @property
    def speedups(self):
        return tuple(s for s in SPEEDUPS if s <= self.most)

    @property
    def source(self):
        return self.program + ".c"

    def works(self, slowness):
        """Works a and b where the machine takes so many times the calibrated length. What is asleep is not the machine's."""
        return tuple(us * (slowness if kind in (self.executes or "ab") else 1) for kind, us in (("a", self.a_us), ("b", self.b_us)))

    def truth(self, percent, between_us=0, slowness=1, wait_us=None):
        """The effect in percent when the line gets `percent` faster. `between_us` is what a visit takes beside all work, at any speedup. `slowness`: how
        many times its calibrated length the work takes. `wait_us`: in place of b."""
        a, b = self.works(slowness)
        rest = 1 - percent / 100
        b = b if wait_us is None else wait_us
        faster = self.period(a * rest, b) if self.line == "a" else self.period(a, b * rest)
        return 100 * (1 - (faster + between_us) / (self.period(a, b) + between_us))

    @property
    def threads(self):
        """How many, where that is a matter of the case; else None."""
        return int(self.args[self.args.index("--threads") + 1]) if "--threads" in self.args else None

    @property
    def group(self):
        """With whom it is summed up: its program's cases, or those of as many threads where there are more than CPUs."""
        if self.foreign:
            return f"{self.threads} threads beside another program"
        if self.threads and self.threads > self.cpus:
            return f"{self.threads} threads on {self.cpus} CPUs"
        return self.program

    @property
    def knee(self):
        """From which line speedup on, in percent, more of it helps less or no more; None where the curve has no bend, or goes down, or
        in steps, and where too few of the speedups that are drawn are on one side of it: it is nearer to 0 than to the first, or beyond the last but one."""
        if self.kind != "effect" or self.program == "contention":
            return None
        slopes = [self.truth(s + 1) - self.truth(s) for s in range(100)]
        if slopes[0] - slopes[-1] < 0.05:
            return None
        first = next(s for s in range(100) if slopes[0] - slopes[s] > 0.01 * slopes[0])
        # Within this percent the line before and the one after meet.
        share = (slopes[first] - slopes[-1]) / (slopes[0] - slopes[-1])
        knee = first + max(0.0, share)
        return knee if SPEEDUPS[0] / 2 < knee <= SPEEDUPS[-2] else None

    @property
    def flat(self):
        return all(abs(self.truth(s)) < 1e-9 for s in SPEEDUPS)


def number(x):
    return f"{x:g}"


def both_lines(name, program, a_us, b_us, args, period, bar, flat_bar=None, **rest):
    """A case for each line; one without effect has a bar of its own."""
    for line in "ab":
        case = Case(f"{name}/{line}", program, line, tuple(args), a_us, b_us, period, bar, **rest)
        if flat_bar is not None and case.flat:
            case = Case(f"{name}/{line}", program, line, tuple(args), a_us, b_us, period, flat_bar, **rest)
        yield case


def timing(round_us, queued):
    """Enough visits in an experiment, and time between two for what the last one left behind: a queue of eight items that a 60:40
    pair of stages drains takes 8 / (1/0.4 - 1/0.6) = 9.6 rounds."""
    return {
        "short": round_us < 5000,
        "experiment_ms": max(500, int(20 * round_us / 1000)),
        "cool_off_ms": max(10, int((12 if queued else 2) * round_us / 1000)),
    }


def barrier_cases():
    # Work 67 : 64, a round is max(a, b): a helps by 3/67 = 4.48 % and no more, b not at all. That is so on CPUs that are equally fast; where one is 2 %
    # slower (it gets the machine's interrupts), a helps by half as much again.
    for ms, bar in ((2, 5), (20, 2), (100, 2)):
        r = ms * 1000
        yield from both_lines(
            f"barrier-{ms}ms", "barrier", r, r * 64 / 67, ["--round", number(r)], slower, bar, worst=True, real=True, **timing(r, False)
        )


def independent_cases():
    # Half of an iteration each: 12.5, 25, 37.5, 50, however many threads. Threads beyond the CPUs are not pinned.
    # Rounds of 1.7 ms: not in step with a tick of 1 ms.
    r = 1700
    for threads in (1, 2, 3, 4, 8, 16):
        args = ["--round", number(r), "--threads", str(threads)]
        if threads > 2:
            args.append("--no-pin")
        # Payers that sleep have no CPU edge: with more threads than CPUs a sleeper's time goes to others.
        payers = None if threads <= 2 else KEEP_CPU
        yield from both_lines(
            f"independent-{threads}", "independent", r / 2, r / 2, args, independent(threads), 3 if threads <= 4 else 6,
            cpus=1 if threads == 1 else 2, payers=payers,
        )
    for threads in (2, 4, 8, 16):
        yield from both_lines(
            f"foreign-{threads}", "independent", r / 2, r / 2, ["--round", number(r), "--threads", str(threads), "--no-pin"],
            independent(threads), 8, payers=KEEP_CPU, foreign=True,
        )


def pipeline_cases():
    # Slower stage 1, faster 0.6 of a round: the slower helps up to 40 %, the faster not at all. Once the producer is the slower
    # (the queue is empty), once the consumer (it is full).
    for r, bar in ((5000, 3), (1500, 5)):
        for name, a, b in (("pipeline", r, 0.6 * r), ("pipeline-full", 0.6 * r, r)):
            args = ["--round", number(r), "--share-a", number(100 * a / (a + b))]
            yield from both_lines(f"{name}-{number(r / 1000)}ms", "pipeline", a, b, args, slower, bar, 1, **timing(r, True))


def lock_cases():
    # Inside 0.7, outside 0.3 of a round: a visit each 0.7. a: 25 and 50 in full, then the knee at a = 0.3 (57 %); 66.1, 78.6.
    # b: nothing.
    # Inside 0.3, outside 0.7: two visits a round. a: s * 30 %. b: 17.5, 35, then the knee where b = 0.3 (57 %): 40, 40.
    # While the lock is always taken, each visit also takes a wake-up (some 70 us in a virtual machine) that the arithmetic leaves
    # out: hence no round below 2 ms.
    for r, bar in ((5000, 3), (2000, 5)):
        for kind in ("ticket", "mutex"):
            for name, share in (("inside", 0.7), ("outside", 0.3)):
                args = ["--round", number(r), "--kind", kind, "--share-a", number(100 * share)]
                yield from both_lines(
                    f"lock-{name}-{kind}-{number(r / 1000)}ms", "lock", share * r, (1 - share) * r, args, locked, bar, 1,
                    **timing(r, False),
                )




def crowd_cases(name, program, a, b, args, period, busy, **rest):
    """More threads than CPUs. `busy`: more of them have work than there are CPUs, too, where a payer that sleeps lends its CPU to others."""
    args = ["--round", number(a + b), "--share-a", f"{100 * a / (a + b):.6f}", *args, "--no-pin"]
    return both_lines(name, program, a, b, args, period, 3, 1, payers=KEEP_CPU if busy else None, **rest)


def spinning_cases():
    """Threads that wait without blocking. Inside 0.75, outside 0.25 of a round. a: 25 and 50 in full, half as much beyond the knee at 2/3. b: nothing. The barrier with 1 : 0.6:
    a helps up to 40 %."""
    for r, bar in ((5000, 2), (1500, 5)):
        for kind in ("spin", "trylock", "adaptive"):
            args = ["--round", number(r), "--kind", kind, "--share-a", "75"]
            yield from both_lines(f"spins-{kind}-{number(r / 1000)}ms", "lock", 0.75 * r, 0.25 * r, args, locked, bar, spins=kind != "adaptive", **timing(r, False))
        args = ["--round", number(r), "--kind", "spin", "--share-a", "62.5"]
        yield from both_lines(f"spins-barrier-{number(r / 1000)}ms", "barrier", r, 0.6 * r, args, slower, bar, spins=True, **timing(r, False))


def many_lock_cases():
    # Taken: 8 ms inside, 5 of them a, and 0.5 outside. The lock is always taken, by one after the other, whatever the threads: a visit each
    # 8 ms. a: s * 62.5 %. b: nothing. A CPU is busy for 0.56 of the time beside, so whoever got the lock has one.
    # Free: 0.5 ms inside, 4.5 outside. The CPUs are short: with two, a visit each 2.5 ms, a fifth of which the lock is taken. a: s * 10 %.
    # b: s * 90 %, up to 80 %: then the lock is always taken.
    for threads in (4, 8, 16):
        for name, a, b, more, kind in (("taken", 5000, 500, 3000, "ticket"), ("free", 500, 4500, 0, "mutex")):
            args = ["--kind", kind, "--threads", str(threads), "--more", str(more)]
            yield from crowd_cases(f"lock-{name}-{threads}", "lock", a, b, args, locked_by(threads, more), name == "free",
                                   **timing(a + b + more, False))


def pool_cases():
    # Permits: two, each taken for 3 ms and a sleep of 9 ms; 0.3 ms after it. A visit each 6 ms, however many threads, and 0.55 CPUs busy.
    # a: s * 25 %. b: nothing.
    # CPUs: work alone, 3.5 : 1.5 ms, permits for half of the threads. No CPU is idle before all threads that are left to it wait: with two
    # a visit each 2.5 ms. a: s * 70 %. b: s * 30 %.
    # Outside: three permits, each taken for 0.5 ms and a sleep of 1 ms, 4.5 ms after it. The CPUs are short: with two a visit each 2.5 ms.
    # a: s * 10 %. b: s * 90 %, up to 80 %: then the permits are short, a visit each 0.5 ms.
    # Asleep: a permit for everybody, 8 ms of sleep, which at 100 % takes 75 ms really. b: s * 90 %, up to 79 %: then all are asleep most of the time.
    for name, threads, permits, a, b, asleep in (
        ("permits", 4, 2, 3000, 300, 9000), ("permits", 16, 2, 3000, 300, 9000),
        ("cpus", 8, 4, 3500, 1500, 0), ("cpus", 16, 8, 3500, 1500, 0),
        ("outside", 8, 3, 500, 4500, 1000), ("asleep", 16, 16, 500, 4500, 8000),
    ):  # fmt: skip
        args = ["--threads", str(threads), "--window", str(permits), "--asleep", str(asleep)]
        yield from crowd_cases(f"pool-{name}-{threads}", "pool", a, b, args, pooled(threads, permits, asleep), name != "permits",
                               executes="ab" if asleep else "", **timing(a + asleep + b, False))


def handover_cases():
    # a : b = 60 : 40. Ping-pong (one credit): a and b in turn, 0.6 s and 0.4 s. Window (eight credits): max(a, b), a helps up to
    # 1/3, b not at all.
    # A kernel worker (pty, aio), a worker of io_uring or its polling thread gives on the producer's behalf.
    for kind in ("mutex", "semaphore", "futex", "pipe", "eventfd", "socketpair", "pty", "aio", "aio-poll", "uring", "sqpoll", "sqpoll-asleep"):
        for r, bar in ((5000, 3), (1500, 5)):
            for name, window, period in (("pingpong", 1, alternating), ("window", 8, slower)):
                args = ["--round", number(r), "--kind", kind, "--window", str(window)]
                yield from both_lines(
                    f"{name}-{kind}-{number(r / 1000)}ms", "handover", 0.6 * r, 0.4 * r, args, period, bar, 1,
                    **timing(r, window > 1),
                )


def waiting_cases():
    """Further ways to wait: together, for a lock of readers and writers, outside of the program, without saying so."""
    for r, bar in ((5000, 3), (2000, 5)):
        for name, program, share in (("broadcast", "broadcast", 40), ("readers", "readers", 60), ("shortlived", "shortlived", 60)):
            a = share / 100 * r
            args = ["--round", number(r), "--share-a", number(share)]
            yield from both_lines(f"{name}-{number(r / 1000)}ms", program, a, r - a, args, alternating, bar, **timing(r, False))
    # A process for each piece of work, which is waited for.
    r = 10000
    args = ["--round", number(r), "--share-a", "60", "--kind", "fork"]
    yield from both_lines("children-10ms", "shortlived", 0.6 * r, 0.4 * r, args, alternating, 5, **timing(r, False))
    # What the other thread takes of the CPU, a hundredth, it takes at any speedup.
    r = 5000
    yield from both_lines("bystander-5ms", "bystander", 0.6 * r, 0.4 * r, ["--round", number(r), "--share-a", "60"], alternating, 3, **timing(r, False))
    # No blocking call says that a thread waits: what it is made to pay after the last hit of the other's work comes on top of its wait.
    for r, bar in ((20000, 3),):
        args = ["--round", number(r), "--share-a", "60"]
        yield from both_lines(f"spinwait-{number(r / 1000)}ms", "spinwait", 0.6 * r, 0.4 * r, args, alternating, bar, spins=True, **timing(r, False))
    # Next to a sleep of 0.8 ms, and a queue between: the 0.4 ms of work that the same thread does, for a consumer's 0.96; or a consumer's 1.6 ms.
    for name, a, kind, more, period in (("own", 400, "own", 960, lambda a, b: max(a + b, 960)), ("next", 1600, "timer", 400, lambda a, b: max(a, b + 400))):
        args = ("--round", number(a + 800), "--share-a", f"{100 * a / (a + 800):.6f}", "--kind", kind, "--window", "8", "--more", number(more))
        yield Case(f"sleep-{name}-1ms/a", "remote", "a", args, a, 800, period, 3, executes="a", real=True, options=("--follow", "none"), **timing(2000, True))
    # a, asleep for b meanwhile: 7 ms and 5 ms, the knee at 2/7 or a little before, since a sleep of 5 ms takes 5.2; 4 ms and 8 ms, nothing helps.
    for name, share in (("overlap", 700 / 12), ("overlap-outside", 400 / 12)):
        r = 12000
        a = share / 100 * r
        args = ["--round", number(r), "--share-a", f"{share:.6f}"]
        case = Case(f"{name}/a", "overlap", "a", tuple(args), a, r - a, slower, 3, executes="a", **timing(r, False))
        yield case if not case.flat else dataclasses.replace(case, bar=1)


def remote_cases():
    """Waits as targets (line b), for what is outside of the program: other processes are, since it is profiled without its children."""
    outside = {"options": ("--follow", "none")}
    # A fetcher waits 0.5 of a round and works 0.25, then hands over; the consumer works 0.6: the wait helps up to 30 %, by 20 % of a round. Or it works
    # for 1.2 rounds: nothing helps but its work.
    kinds = (("timer", "timer"), ("pipe", "process"), ("socketpair", "process"), ("tcp", "network"), ("fault", "process"))
    for r, bar in ((6000, 2), (1500, 5)):
        for kind, waits in kinds:
            for name, consumed in (("fetch", 0.6), ("fetch-flat", 1.2)):
                if name == "fetch-flat" and (r < 5000 or kind in ("socketpair", "fault")):
                    continue
                a, b, more = consumed * r, 0.5 * r, 0.25 * r
                args = ["--round", number(a + b), "--share-a", f"{100 * a / (a + b):.6f}", "--kind", kind, "--window", "8", "--more", number(more)]
                case = Case(f"{name}-{kind}-{number(r / 1000)}ms/b", "remote", "b", tuple(args), a, b, lambda a, b, more=more: max(a, b + more), bar,
                            executes="a", waits=waits, **outside, **timing(r, True))
                yield case if name == "fetch" else dataclasses.replace(case, bar=1.5)
    # A thread that waits 0.7 of a round and works 0.3; half of the gain is the line's and half the wait's where both take 0.5. A disk's part is measured.
    r = 5000
    for kind, waits in (*kinds, ("disk", "disk")):
        args = ["--round", number(r), "--share-a", "30", "--kind", kind]
        yield Case(f"alone-{kind}/b", "remote", "b", tuple(args), 0.3 * r, 0.7 * r, alternating, 2, executes="a", waits=waits, **outside, **timing(r, False))
    args = ("--round", number(r), "--share-a", "50", "--kind", "pipe")
    yield from both_lines("mixture", "remote", 0.5 * r, 0.5 * r, args, alternating, 2, executes="a", waits="process", **outside, **timing(r, False))
    # Eight threads, each 1/20 at work: at 80 % of the speedup the CPUs are what limits them.
    args = ("--round", number(r), "--share-a", "5", "--kind", "pipe", "--threads", "8", "--no-pin")
    yield Case("remote-8/b", "remote", "b", args, 0.05 * r, 0.95 * r, lambda a, b: (a + b) / 8, 3, executes="a", waits="process", most=75,
               real=True, **outside, **timing(r, False))
    # The sleep of `overlap`: 7 ms of work and 5 of sleep, where it is worth nothing, and 4 and 8, where it helps up to 50 %.
    for name, share in (("overlap", 700 / 12), ("overlap-outside", 400 / 12)):
        r = 12000
        a = share / 100 * r
        args = ["--round", number(r), "--share-a", f"{share:.6f}"]
        case = Case(f"{name}-sleep/b", "overlap", "b", tuple(args), a, r - a, slower, 2, executes="a", waits="timer", most=100 if a > r / 2 else 75,
                    **timing(r, False))
        yield case if not case.flat else dataclasses.replace(case, bar=1.5)
    # One CPU: 8 ms of sleep and 2 of work, which preempts a thread that always works. By the visits of the one and of the other.
    for kind in ("own", "other"):
        args = ("--round", "10000", "--share-a", "20", "--kind", kind)
        yield Case(f"preempt-{kind}/b", "preempt", "b", args, 2000, 8000, alternating, 5, waits="timer", real=True, most=75, **timing(10000, False))
    # 5 ms of sleep and 2.5 of work: on another CPU, behind a process that began to run there meanwhile; or the sleep with a lock, which a housekeeper takes
    # every 100 ms for a moment.
    for kind in ("moves", "keeper"):
        args = ("--round", "7500", "--share-a", f"{100 / 3:.6f}", "--kind", kind)
        yield Case(f"backend-{kind}/b", "backend", "b", args, 2500, 5000, alternating, 3, executes="a", waits="timer", real=True, **outside, **timing(7500, False))
    # A thousand idle threads beside it.
    r = 5000
    args = ("--round", number(r), "--share-a", "50", "--threads", "1000")
    yield Case("crowd/b", "crowd", "b", args, r / 2, r / 2, alternating, 2, waits="timer", real=True, **timing(r, False))
    args = ("--round", number(r), "--share-a", "60")
    yield Case("proxy/b", "proxy", "b", args, 0.6 * r, 0.4 * r, alternating, 2, waits="process", refused=True, options=("--follow", "none"), **timing(r, False))


def cpu_cases():
    """Waiting for a CPU as the target, as work b: of T threads on two CPUs that always work each waits 1 - 2/T of the time. With a lock inside for 0.3 of the
    work, nothing is gained beyond 40 %."""
    r = 5000
    for threads in (3, 4, 8):
        args = ("--round", number(r), "--threads", str(threads), "--no-pin")
        work = 2 * r / threads
        yield Case(f"cpus-{threads}/b", "independent", "b", args, work, r - work, alternating, 5, payers=("auto", "hold"), waits="cpu")
    args = ("--round", number(r), "--share-a", "30", "--threads", "4", "--no-pin")
    yield Case("cpus-lock/b", "lock", "b", args, r / 2, r / 2, lambda a, b: max(a + b, 0.6 * r), 5, payers=("auto", "hold"), waits="cpu", **timing(r, False))


def process_cases():
    """Several processes: forked workers that hand over, and three programs that a shell joins."""
    for kind in ("pipe", "mutex", "tcp"):
        for name, window, period in (("pingpong", 1, alternating), ("window", 8, slower)):
            r = 5000
            args = ["--round", number(r), "--kind", kind, "--window", str(window)]
            yield from both_lines(f"workers-{name}-{kind}", "workers", 0.6 * r, 0.4 * r, args, period, 3, 1, **timing(r, window > 1))
    # The filter has a CPU for itself; producer 0.5 and consumer 0.3 share the other: a helps up to 20 %, b not at all. Where a pause
    # leaves the CPU, one of the two runs in the other's: with payers that sleep the knee is at 50 %.
    r = 5000
    args = ["--round", number(r), "--share-a", f"{100 / 1.5:.6f}"]
    yield from both_lines("programs", "stage", r, 0.5 * r, args, lambda a, b: max(a, b + 0.3 * 5000), 3, 3,
                          payers=KEEP_CPU, **timing(r, True))


def shape_cases():
    """Tasks stolen, phases, and a line that hurts."""
    yield from both_lines("stealing", "stealing", 7500, 2500, ("--round", "10000", "--share-a", "75"), lambda a, b: b + a / 2, 3,
                          **timing(10000, False))
    yield from both_lines("phases", "phases", 2000, 1000, ("--round", "3000", "--share-a", f"{200 / 3:.6f}"), lambda a, b: (a + b) / 2, 3,
                          cpus=1, **timing(5000, False))
    # The same with phases of seconds, so that a line's experiments fall into its own. Halves; a tenth and the rest, with a ninth of the visits in a second;
    # a fifth that comes once in 30 s.
    for name, a, b, visits in (("2s", 2000, 2000, 1000), ("5s", 2000, 2000, 2500), ("tenth", 1000, 9000, 1000), ("once", 2000, 8000, 3000)):
        args = ("--round", number(a + b), "--share-a", number(100 * a / (a + b)), "--window", str(visits))
        yield from both_lines(f"phases-{name}", "phases", a, b, args, lambda a, b: (a + b) / 2, 3, cpus=1)
    # The full length of c is that of b: 8 ms. ceil is taken a little early: at a = k b the other is back just when the lock is given.
    # a is 3.2 b, 2.4, 1.6 and 0.8 b at 75 %: nowhere nearer to another answer than 0.2 b, 1.6 ms, which is more than a few pauses.
    yield from both_lines("contention", "contention", 25600, 8000, ("--round", "33600", "--share-a", f"{1600 / 21:.6f}"),
                          lambda a, b: b + 8000 / max(1, math.ceil(a / max(b, 1) - 1e-9)), 3, **timing(33600, False))


def other_cases():
    # What the samples in the line stand for, over the CPU time in the line: 1 at every speedup.
    yield Case("hits/a", "hits", "a", ("--round", "1000", "--share-a", "80"), 800, 200, alternating, 2, kind="hits",
               experiment_ms=2000)
    # Time in which the threads were stopped, by the program's account and by the profiler's, over what they owed: 1.
    yield Case("stopped/a", "stopped", "a", (), 1, 1, alternating, 1, kind="stopped", experiment_ms=2000)


CASES = [
    case if not case.waits else dataclasses.replace(case, payers=TASK_WORK)
    for family in (barrier_cases, independent_cases, pipeline_cases, lock_cases, spinning_cases, many_lock_cases, pool_cases, handover_cases, waiting_cases, remote_cases, cpu_cases, process_cases,
                   shape_cases, other_cases)
    for case in family()
]
