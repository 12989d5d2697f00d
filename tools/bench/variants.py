# SPDX-License-Identifier: BSD-2-Clause
"""One program built in every way in which programs are really built: what bench `attribution`, and a test, profile."""

import glob
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = [os.path.join(HERE, "programs", name) for name in ("attributed.c", "attributed_more.cc")]
ONLY_DEBUG = ("-gz", "-gsplit-dwarf")  # flags that change the debug information but no instruction
DWZ_OTHER = "other"


class NotBuilt(Exception):
    """A compiler or a tool failed."""


def call(command, where):
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotBuilt(f"{' '.join(command)}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return done.stdout


class Variant:
    """How to build it: compilers, flags for both compiling and linking, flags for linking only, and what is done to the result."""

    def __init__(self, compiler, flags, link="", finish=None):
        self.compilers = {"gcc": ("gcc", "g++"), "clang": ("clang", "clang++")}[compiler]
        self.flags, self.link, self.finish = flags.split(), link.split(), finish

    def plain(self):
        """The same code with ordinary debug information in the file, for other tools to read; None: it is that already."""
        flags = [f for f in self.flags if not f.startswith(ONLY_DEBUG)]
        if flags == self.flags and not self.finish:
            return None
        twin = Variant("gcc", "")
        twin.compilers, twin.flags, twin.link = self.compilers, flags, self.link
        return twin


class Built:
    """path: of the program; plain: of a program with the same code and ordinary debug information; options: what cozbpf must be told."""

    def __init__(self, path, plain, options):
        self.path, self.plain, self.options = path, plain, options


def dwp(program, where):
    call(["llvm-dwp", "-e", program, "-o", program + ".dwp"], where)
    for name in glob.glob(os.path.join(where, "*.dwo")):
        os.unlink(name)
    return []


def strip(program, debug, where):
    call(["objcopy", "--only-keep-debug", program, debug], where)
    call(["objcopy", "--strip-all", program], where)


def debuglink(program, where):
    strip(program, program + ".debug", where)
    call(["objcopy", "--remove-section=.note.gnu.build-id", f"--add-gnu-debuglink={program}.debug", program], where)
    return []


def build_id(program, where):
    found = [x.split()[-1] for x in call(["readelf", "-n", program], where).splitlines() if "Build ID" in x]
    if not found:
        raise NotBuilt(f"{program} has no build id")
    directory = os.path.join(where, "debug", ".build-id", found[0][:2])
    os.makedirs(directory)
    strip(program, os.path.join(directory, found[0][2:] + ".debug"), where)
    return ["--debug-dir", os.path.join(where, "debug")]


def dwz(program, where):
    call(["dwz", program], where)
    return []


def dwz_alternate(program, where):
    other = os.path.join(where, DWZ_OTHER)
    shutil.copy(program, other)
    call(["dwz", "-m", os.path.join(where, "common.debug"), program, other], where)
    if ".gnu_debugaltlink" not in call(["readelf", "-SW", program], where):
        raise NotBuilt("dwz moved nothing into the common file")
    return []


VARIANTS = {
    f"{cc} {level}{name}": Variant(cc, f"{level} {flags}")
    for cc in ("gcc", "clang")
    for name, flags in (("", "-fomit-frame-pointer"), (", frame pointers", "-fno-omit-frame-pointer"))
    for level in ("-O0", "-O2", "-O3")
}
for _cc in ("gcc", "clang"):
    VARIANTS[f"{_cc} -O2 -flto"] = Variant(_cc, "-O2 -flto")
    # perf can unwind by the table of .eh_frame_hdr only, which compilers leave out here; cozbpf needs none.
    VARIANTS[f"{_cc} -O2 -static"] = Variant(_cc, "-O2", "-static -Wl,--eh-frame-hdr")
    VARIANTS[f"{_cc} -O2 -static-pie"] = Variant(_cc, "-O2 -fPIE", "-static-pie")
    VARIANTS[f"{_cc} -O2 -gz"] = Variant(_cc, "-O2 -gz=zlib")
    VARIANTS[f"{_cc} -O2 -gsplit-dwarf, dwo"] = Variant(_cc, "-O2 -gsplit-dwarf")
    VARIANTS[f"{_cc} -O2 -gsplit-dwarf, dwp"] = Variant(_cc, "-O2 -gsplit-dwarf", finish=dwp)
    VARIANTS[f"{_cc} -O2, stripped, debuglink"] = Variant(_cc, "-O2 -Wl,--build-id", finish=debuglink)
    VARIANTS[f"{_cc} -O2, stripped, build-id directory"] = Variant(_cc, "-O2 -Wl,--build-id", finish=build_id)
for _cc, _flags in (("gcc", "-O2"), ("clang", "-O2 -gdwarf-4")):  # dwz 0.15 knows no .debug_addr, which clang's DWARF 5 has
    VARIANTS[f"{_cc} {_flags}, dwz"] = Variant(_cc, _flags, finish=dwz)
    VARIANTS[f"{_cc} {_flags}, dwz, alternate file"] = Variant(_cc, _flags, finish=dwz_alternate)


def compile_and_link(variant, where):
    """The program's path, in the new directory `where`."""
    os.makedirs(where)
    objects = []
    for source in SOURCES:
        compiler = variant.compilers[source.endswith(".cc")]
        objects.append(os.path.basename(source) + ".o")
        call([compiler, "-g", *variant.flags, "-c", source, "-o", objects[-1]], where)
    program = os.path.join(where, "attributed")
    call([variant.compilers[1], "-g", *variant.flags, *variant.link, *objects, "-o", program, "-lm"], where)
    return program


def code_of(program, where):
    """Its instructions and where they are."""
    call(["objcopy", "-O", "binary", "--only-section=.text", program, "text"], where)
    sections = call(["readelf", "-SW", program], where)
    place = [x.split("]")[1].split()[2] for x in sections.splitlines() if "] .text " in x]
    with open(os.path.join(where, "text"), "rb") as f:
        return place, f.read()


def build(name, where, twin_too=True):
    """Builds VARIANTS[name] in the new directory `where`, and for other tools its twin."""
    variant = VARIANTS[name]
    program = compile_and_link(variant, os.path.join(where, "program"))
    options = variant.finish(program, os.path.dirname(program)) if variant.finish else []
    twin = variant.plain() if twin_too else None
    if not twin:
        return Built(program, program, options)
    plain = compile_and_link(twin, os.path.join(where, "plain"))
    if code_of(program, where) != code_of(plain, where):
        raise NotBuilt(f"{name}: the code is not that of the program with ordinary debug information")
    return Built(program, plain, options)
