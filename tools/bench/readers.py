# SPDX-License-Identifier: BSD-2-Clause
"""Our readers of debug information beside those of elfutils (libdw): opening, the first question in each unit, memory. No bar: it says why we
have our own.

The program is that of bench `debuginfo`, 100 MB in 253 units, in the forms in which distributions and users have it. Both readers are asked for one
line in each unit; each runs in a process of its own."""

import concurrent.futures
import os
import tempfile

import common
import debuginfo
import variants

# Flags of the compiler, and what is done to the program.
FORMS = {
    "plain": ([], None),
    "-gz": (["-gz=zlib"], None),
    "-gsplit-dwarf": (["-gsplit-dwarf"], None),
    "-gsplit-dwarf, dwp": (["-gsplit-dwarf"], variants.dwp),
    "dwz": ([], variants.dwz),
}


def generate(where, flags, finish):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda n: debuginfo.compile_unit(where, n, flags), range(debuginfo.UNITS)))
    main, path = os.path.join(where, "main.c"), os.path.join(where, "program")
    with open(main, "w", encoding="ascii") as f:
        f.write(debuginfo.main_text())
    variants.call(["gcc", "-g", "-O1", *flags, main, *objects, "-o", path], where)
    if finish:
        finish(path, where)
    return path


def measure(name, bench, path, libdw, rows):
    readers = {"ours": bench.program("e2e", "first_touch"), "libdw": libdw}

    def ask(program):
        return common.numbers_in(common.execute([program, path, "first_in_"], 300)[0])

    seen = common.interleaved(9 if bench.full else 3, {reader: lambda p=program: ask(p) for reader, program in readers.items()})
    for reader, all_of in seen.items():
        if any(x["units"] != debuginfo.UNITS for x in all_of):
            raise common.Failure(f"{name}: {reader} found other functions")
        of = {key: common.median([x[key] for x in all_of]) for key in ("open_ms", "median_us", "most_us", "peak_mb")}
        rows.append([f"{name}, {reader}", f"{of['open_ms']:.1f}", f"{of['median_us']:.0f}", f"{of['most_us']:.0f}", f"{of['peak_mb']:.0f}"])


def run(bench):
    rows = []
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        libdw = os.path.join(where, "libdw_touch")
        try:
            variants.call(["gcc", "-O2", os.path.join(variants.HERE, "programs", "libdw_touch.c"), "-o", libdw, "-ldw"], where)
        except variants.NotBuilt as e:
            raise common.Failure(f"{e} (the package libdw-dev)") from None
        for number, (name, (flags, finish)) in enumerate(FORMS.items()):
            folder = os.path.join(where, str(number))
            os.mkdir(folder)
            try:
                path = generate(folder, flags, finish)
            except variants.NotBuilt as e:
                print(f"    {name}: left out: {e}", flush=True)
                continue
            measure(name, bench, path, libdw, rows)
    common.table(["form, reader", "open, ms", "a unit's first question, us", "most, us", "peak, MB"], rows)
