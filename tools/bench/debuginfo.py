# SPDX-License-Identifier: BSD-2-Clause
"""A program with 100 MB of debug information: start-up at most 150 ms over perf record's, less than 100 MB of memory (bar 3).

The program is generated: some hundreds of units, each with structures that no other has, and functions that use them. Start-up is from
the start of cozbpf, or of perf record, to the program's main, natively as well, in turn. The program visits code of all units, so that
all line tables are asked for while the profiler's memory is looked at. What the first question in a unit costs is measured with the same
reader apart (first_touch). The first run after boot also calibrates, 0.2 s: not judged, but shown."""

import concurrent.futures
import os
import re
import subprocess
import tempfile
import time

import common
import variants

BAR_MS, BAR_MB = 150, 100
UNITS, STRUCTURES, MEMBERS, FUNCTIONS = 252, 280, 60, 60
WANTED = 100 << 20
TYPES = ("int", "unsigned long", "double", "char", "short")

MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
typedef long function(long);
%(declarations)s
static function *const all[] = {%(names)s};
static double now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
int main(int argc, char **argv)
{
	double begin = now(CLOCK_MONOTONIC), end = begin + (argc > 1 ? atof(argv[1]) : 0) * 1e9;
	long x = 1;
	while (now(CLOCK_MONOTONIC) < end)
		for (unsigned int i = 0; i < sizeof(all) / sizeof(*all); i++)
			x += all[i](x);
	fprintf(stderr, "main_ns=%%.0f x=%%ld\\n", begin, x);
	return 0;
}
"""


def unit(number):
    """The text of a unit: names that are its own, so that no linker folds them."""
    lines = []
    for s in range(STRUCTURES):
        members = " ".join(f"{TYPES[(s + m) % len(TYPES)]} m{number}_{s}_{m};" for m in range(MEMBERS))
        previous = f"struct s_{number}_{s - 1} *before;" if s else ""
        lines.append(f"struct s_{number}_{s} {{ {members} {previous} }};")
    for f in range(FUNCTIONS):
        lines += [
            f"static __attribute__((noinline)) long work_{number}_{f}(struct s_{number}_{f} *p, long n)",
            "{",
            "\tlong sum = 0;",
            "\tfor (long i = 0; i < n; i++) {",
            f"\t\tsum += (long)p->m{number}_{f}_{f % MEMBERS} * i;",
            "\t\t__asm__ volatile(\"\" : \"+r\"(sum));",
            "\t}",
            "\treturn sum;",
            "}",
        ]
    lines += [f"long first_in_{number}(long x);", f"long first_in_{number}(long x)", "{", "\tlong sum = 0;"]
    for f in range(FUNCTIONS):
        lines.append(f"\t{{ static struct s_{number}_{f} s; sum += work_{number}_{f}(&s, 50 + (x & 1)); }}")
    return "\n".join([*lines, "\treturn sum;", "}", ""])


def main_text():
    names = [f"first_in_{n}" for n in range(UNITS)]
    return MAIN % {"declarations": "\n".join(f"function {n};" for n in names), "names": ", ".join(names)}


def compile_unit(where, number, flags):
    source, target = os.path.join(where, f"u{number}.c"), os.path.join(where, f"u{number}.o")
    with open(source, "w", encoding="ascii") as f:
        f.write(unit(number))
    variants.call(["gcc", "-g", "-O1", "-fno-eliminate-unused-debug-types", *flags, "-c", source, "-o", target], where)
    return target


def generate(where):
    """{"plain": path, "-gz": path} of two programs with the same code."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda n: compile_unit(where, n, []), range(UNITS)))
    main = os.path.join(where, "main.c")
    with open(main, "w", encoding="ascii") as f:
        f.write(main_text())
    paths = {}
    for name, flags in (("plain", []), ("-gz", ["-gz=zlib"])):
        paths[name] = os.path.join(where, f"program{len(paths)}")
        variants.call(["gcc", "-g", "-O1", *flags, main, *objects, "-o", paths[name]], where)
    return paths


def debug_bytes(path):
    """Of all debug sections, unpacked."""
    shown = subprocess.run(["readelf", "-tW", path], capture_output=True, text=True, check=True).stdout
    plain = re.findall(r"\] \.debug_\w+\n\s+\w+\s+\w+\s+\w+\s+([0-9a-f]+)[^\n]*\n\s+\[([^\n]*)\][^\n]*\n(?:\s+ZLIB, ([0-9a-f]+))?", shown)
    return sum(int(unpacked or size, 16) for size, _, unpacked in plain)


def until_main(command, limit=120):
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    _, err = common.execute(command, limit)
    return (common.numbers_in(err)["main_ns"] - begin) / 1e6


def resident(pid):
    """The most that it has had resident so far, MB; 0: it has gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
            found = re.search(r"^VmHWM:\s*(\d+) kB", f.read(), re.M)
    except OSError:
        return 0
    return int(found.group(1)) / 1024 if found else 0


def relatives(first, executable):
    """Processes of the executable that came after the first one and have a session of their own: what decodes for it."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(name) > first and os.getsid(int(name)) != os.getsid(0) and os.path.samefile(f"/proc/{name}/exe", executable):
                found.append(int(name))
        except OSError:
            continue
    return found


def most_memory(command):
    """The most that the processes of a command's executable have had resident, MB: (the first one, all together)."""
    most, turn = {}, 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            if turn % 25 == 0:
                others = relatives(process.pid, command[0])
            for pid in (process.pid, *others):
                most[pid] = max(most.get(pid, 0), resident(pid))
            turn += 1
            time.sleep(0.01)
    if process.returncode != 0 or not most.get(process.pid):
        raise common.Failure(f"status {process.returncode}: {' '.join(command)}")
    return most[process.pid], sum(most.values())


def measure(bench, name, path, where):
    profile = os.path.join(where, "profile.jsonl")

    def cozbpf(*options):
        if os.path.exists(profile):
            os.unlink(profile)
        return bench.profiler(profile, ["-p", "first_in_0", *options], [path, "0.05"])

    cells = {
        "native": lambda: until_main([path, "0.05"]),
        "perf record": lambda: until_main(["perf", "record", "-q", "-g", "-e", "cpu-clock", "-o", os.devnull, "--", path, "0.05"]),
        "cozbpf": lambda: until_main(cozbpf()),
        "cozbpf, first after boot": lambda: until_main(cozbpf("--calibrate")),
    }
    values = common.interleaved(15 if bench.full else 5, cells)
    common.spread_table(f"{name}: ms until main", values, "{:.1f}")
    added = common.median(values["cozbpf"]) - common.median(values["perf record"])
    bench.verdict(added <= BAR_MS, f"{name}: {added:.1f} ms more than perf record, at most {BAR_MS}")
    if os.path.exists(profile):
        os.unlink(profile)
    memory, together = most_memory(bench.profiler(profile, ["-p", "first_in_0"], [path, "6"]))
    with open(profile, encoding="utf-8") as f:
        seen = len(set(re.findall(r'"location":"[^"]*/(u\d+)\.c:', f.read())))
    if seen < UNITS * 0.9:
        raise common.Failure(f"only {seen} of {UNITS} units were asked for")
    bench.verdict(together < BAR_MB, f"{name}: {together:.1f} MB resident with {seen} units in use ({memory:.1f} without what decodes for it), "
                  f"less than {BAR_MB}")  # fmt: skip
    out, _ = common.execute([bench.program("e2e", "first_touch"), path, "first_in_"], 60)
    found = common.numbers_in(out)
    print(f"    {name}: opened in {found['open_ms']:.1f} ms; the first question in a unit takes {found['median_us']:.0f} us "
          f"(median of {found['units']:.0f}, most {found['most_us']:.0f} us)")  # fmt: skip


def run(bench):
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        start = time.monotonic()
        try:
            paths = generate(where)
        except variants.NotBuilt as e:
            raise common.Failure(str(e)) from None
        for name, path in paths.items():
            size = debug_bytes(path)
            print(f"    {name}: {size / (1 << 20):.0f} MB of debug information in {UNITS + 1} units")
            if size < WANTED:
                raise common.Failure(f"only {size} bytes of debug information were generated")
        print(f"    generated in {time.monotonic() - start:.0f} s", flush=True)
        for name, path in paths.items():
            measure(bench, name, path, where)
