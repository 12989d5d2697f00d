# SPDX-License-Identifier: BSD-2-Clause
"""report_forms.py COZBPF SOURCE DIRECTORY: the report's forms against each other, and the HTML one in a browser."""

import base64
import csv
import hashlib
import html.parser
import io
import json
import os
import re
import subprocess
import sys

cozbpf, source, where = sys.argv[1:]
sys.path.insert(0, os.path.join(source, "tools"))
import jsonschema  # noqa: E402

from browser import Browser, Failure  # noqa: E402

DATA = os.path.join(source, "tests", "data")
SPEEDUPS = (0.25, 0.5, 0.75, 1)
# Nothing of a profile may become one of these; there is one style and one script, and links go to places on the page.
ALLOWED = {"html", "meta", "title", "style", "header", "main", "section", "h1", "h2", "p", "br", "small", "span", "div", "b", "code", "a", "ul", "li", "table",
           "caption", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "svg", "path", "polyline", "text", "output", "details", "summary",
           "script", "pre"}  # fmt: skip


def verdict(name, why):
    print(f"not ok {name}: {why}" if why else f"ok {name}", flush=True)


def report(*arguments):
    return subprocess.run([cozbpf, "report", "--seed", "1", *arguments], check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout


class Page(html.parser.HTMLParser):
    """The rows of its tables of lines, and all that is not as it should be."""

    def __init__(self, text):
        super().__init__()
        self.wrong, self.rows, self.policy, self.inline, self.inside, self.answers = [], [], "", {}, None, []
        self.figures, self.charts, self.in_lines = 0, 0, False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.inside = tag
        if tag == "table":
            self.in_lines = attributes.get("class") == "lines"
        if tag not in ALLOWED:
            self.wrong.append(f"<{tag}>")
        for name, value in attrs:
            if name.startswith("on") or name in ("style", "src", "srcset", "action", "xlink:href"):
                self.wrong.append(f"{tag} {name}={value}")
            if name == "href" and not re.fullmatch(r"#[a-z0-9]+", value):
                self.wrong.append(f"href={value}")
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]
        if tag in ("style", "script"):
            self.inline[tag] = ""
        if tag == "tr" and "data-v" in attributes:
            self.rows.append([])
        if tag == "td" and self.in_lines:
            self.rows[-1].append("")
        if tag == "p" and attributes.get("class") == "answer":
            self.inside = "answer"
            self.answers.append("")
        self.figures += tag == "figure"
        self.charts += tag == "svg" and attributes.get("class") == "chart"

    def handle_data(self, data):
        if self.inside in self.inline:
            self.inline[self.inside] += data
        elif self.inside in ("td", "a") and self.in_lines:
            self.rows[-1][-1] += data.strip()
        elif self.inside == "answer":
            self.answers[-1] += data.strip()

    def handle_endtag(self, tag):
        if tag in ("style", "script"):
            self.inside = None
        if tag == "table":
            self.in_lines = False

    def complaints(self):
        for tag, text in self.inline.items():
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            if f"{tag}-src 'sha256-{digest}'" not in self.policy:
                self.wrong.append(f"the policy lacks the hash of the {tag}")
        if not self.policy.startswith("default-src 'none'"):
            self.wrong.append(f"policy {self.policy!r}")
        return "; ".join(self.wrong[:5])


def page_of(profile, name):
    path = os.path.join(where, name + ".html")
    report("--html", path, profile)
    with open(path, encoding="utf-8") as f:
        return path, Page(f.read())


def cell(change):
    """An effect as tables have it."""
    effect, low, high = (change[k] for k in ("effect", "low", "high"))
    return "-" if effect is None else f"{100 * effect:.1f}" if low is None else f"{100 * effect:.1f} \u00b1{50 * (high - low):.1f}"


def same_number(a, b):
    """As printed, where the last digit may have been rounded from the other side."""
    numbers = [[float(x) for x in re.findall(r"-?\d+(?:\.\d+)?", s)] for s in (a, b)]
    return len(numbers[0]) == len(numbers[1]) and all(abs(x - y) < 0.11 for x, y in zip(*numbers))


def shown(line):
    """What the tables show at the four speedups: the curve's, unless the experiments say otherwise."""
    return [cell(c) for c in line["curve"]["at"]]


def same_in_all_forms(profile):
    said = json.loads(report("--json", profile))
    points = [p for p in said["points"] if p["visits"] and p["lines"]]
    lines = [(p, line) for p in points for line in p["lines"]]
    rows = {
        "CSV": list(csv.DictReader(io.StringIO(report("--csv", profile)))),
        "Markdown": [re.split(r" (?<!\\)\| ", row[2:-2]) for row in report("--markdown", profile).splitlines() if re.match(r"\| (?!line )", row)],
        "HTML": page_of(profile, "forms")[1].rows,
        "text": [re.split(r"  +", row.strip()) for row in report("--width", "400", "--no-curves", "--all", profile).splitlines() if re.search(r"\.c:\d+  .* (helps|hurts|no effect|undecided)", row)],
    }
    for form, found in rows.items():
        if len(found) != len(lines):
            return f"{form} has {len(found)} rows for {len(lines)} lines"
    for i, (point, line) in enumerate(lines):
        effects, share = shown(line), f"{100 * line['share']:.1f} %"
        own = rows["CSV"][i]
        for k, s in enumerate((25, 50, 75, 100)):
            change = line["curve"]["at"][k]
            for key in ("effect", "low", "high"):
                if abs(float(own[f"{key}_{s}"]) - 100 * change[key]) > 0.051:
                    return f"CSV: {key}_{s} {own[f'{key}_{s}']} for {change[key]}"
        if (own["point"], own["line"], own["verdict"], own["experiments"]) != (point["name"], line["selected"], line["verdict_text"], str(line["experiments"])):
            return f"CSV: {own}"
        html_row, text_row, markdown_row = rows["HTML"][i][1:], rows["text"][i], rows["Markdown"][i]
        for form, row in (("HTML", html_row), ("text", text_row), ("Markdown", [c.replace("\\", "") for c in markdown_row])):
            if not line["selected"].endswith("/" + row[0]) or row[1] != line["function"] or row[2] != share:
                return f"{form}: {row[:3]} for {line['selected']} {line['function']} {share}"
            if not all(same_number(a, b) for a, b in zip(row[3:7], effects)):
                return f"{form}: {row[3:7]} for {effects}"
            if row[7:9] != [line["verdict_text"], str(line["experiments"])]:
                return f"{form}: {row[7:9]}"
    for form, text in (("text", report("--width", "1000", profile)), ("Markdown", report("--markdown", profile).replace("\\", ""))):
        missing = [p["answer"] for p in points if p["answer"] not in text]
        if missing:
            return f"{form} lacks the answer {missing[0]!r}"
    whole = report("--width", "1000", "--verbose", "--all", profile)
    for note in said["notes"] + sum((p["notes"] for p in points), []):
        if note["text"] not in whole:
            return f"the text lacks the note {note['text']!r}"
    return ""


EVIL = "<script>window.hacked=1</script>"
FORMULA = "=cmd|' /C calc'!A0"
IMAGE = "\"><img src=x onerror='window.hacked=1'>"


def hostile(path):
    with open(os.path.join(DATA, "noisy.jsonl"), encoding="utf-8") as f:
        text = f.read()
    for old, new in (("hot.c", EVIL + ".c"), ("lock.c", IMAGE + ".c"), ("encode", "</td></table>" + IMAGE), ("frame", "</h2>" + EVIL), ("./app --work", "</title></style>" + EVIL + IMAGE),
                     ("cold.c", "`<b>x</b>`|@all"), ("log_line", FORMULA)):  # fmt: skip
        text = text.replace(old, json.dumps(new)[1:-1])
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def large(path, points, lines):
    with open(path, "w", encoding="utf-8") as f:
        f.write('{"type":"startup","time":1}\n')
        for i in range(lines):
            for s in (0, 0.25, 0.5, 0.75, 1):
                for turn in range(2):
                    f.write(json.dumps({"type": "experiment", "selected": f"/src/app/some/where/file{i}.c:{i}", "speedup": s, "duration": int(1e9 * (1 - s * i / 2 / lines)) + turn}) + "\n")
                    f.writelines(json.dumps({"type": "throughput-point", "name": f"point{p}", "delta": 100}) + "\n" for p in range(points))
    return path


def bucket(ns):
    """Of shared/histogram.h."""
    e = ns.bit_length() - 8
    return ns if e < 1 else (e << 7) + (ns >> e)


def rich(path, places=("/src/a.c:7",), source_too=True):
    """What the sample profiles lack: times, latencies, inlined copies, source."""
    with open(path, "w", encoding="utf-8") as f:
        f.write('{"type":"startup","time":1700000000000000000,"cozbpf":{"version":"0.1.0","command":"./app","period_ns":1000000}}\n')
        for i in range(120):
            s = (0, 0.25, 0.5, 0.75, 1)[i % 5]
            length = int(1e9 * (1 - 0.4 * s) * (1 + 0.001 * (i % 7)))
            f.write(json.dumps({"type": "experiment", "selected": places[i // 5 % len(places)], "function": "f", "speedup": s, "duration": length, "elapsed": length + 10**8, "growth": 10**8, "began": 1 + i * 10**9}) + "\n")
            f.write(json.dumps({"type": "throughput-point", "name": "done", "delta": 100}) + "\n")
            each = length // 100
            f.write(json.dumps({"type": "latency-point", "name": "request", "arrivals": 100, "departures": 100, "difference": 1, "sum_ns": 100 * each, "unmatched": 0, "unended": 0, "crossed": 0,
                                "lost": 0, "in_flight_begin": 1, "in_flight_end": 1, "histogram128": {str(bucket(each)): 90, str(bucket(each) + 9): 10}}) + "\n")  # fmt: skip
        f.write('{"type":"runtime","time":120000000000,"samples":100,"unattributed":0}\n')
        for place in places:
            samples = {"type": "samples", "location": place, "count": 100, "inlined": "60\t/src/b.h:3\t/src/a.c:7"}
            if source_too:
                samples["source"] = '6\tif (x < 0 && "y")\n7\t\treturn 1;\n8\t}\n'
            f.write(json.dumps(samples) + "\n")
    return path


COLUMN = "[...document.querySelectorAll('table.lines tbody tr')].filter(r => !r.hidden).map(r => r.cells[%d].textContent)"


def works(browser, path):
    browser.open(path)
    if browser.complaints or any(not r.startswith("file://") for r in browser.requests) or len(browser.requests) != 1:
        return f"complaints {browser.complaints}, requests {browser.requests}"
    names = browser.value(COLUMN % 1)
    per_point = browser.value("document.querySelector('table.lines tbody').rows.length")
    browser.value("document.querySelectorAll('table.lines th button')[1].click()")
    if browser.value(COLUMN % 1)[:per_point] != sorted(names[:per_point]):
        return f"sorted by name: {browser.value(COLUMN % 1)}"
    browser.value("document.querySelectorAll('table.lines th button')[6].click()")
    effects = [float(e.split()[0]) for e in browser.value(COLUMN % 6)[:per_point]]
    if effects != sorted(effects, reverse=True):
        return f"sorted by effect: {effects}"
    first = names[0]
    browser.value(f"(i => {{ i.value = {json.dumps(first)}; i.dispatchEvent(new Event('input')); }})(document.querySelector('.filter input'))")
    left = browser.value(COLUMN % 1)[: len(names) - per_point + 1]
    if left[0] != first or browser.value("[...document.querySelectorAll('section')][0].querySelectorAll('figure:not([hidden])').length") != 1:
        return f"filtered by {first}: {left}"
    browser.value("(s => { s.focus(); s.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true})); })(document.querySelector('figure:not([hidden]) svg.plot'))")
    told = browser.value("document.querySelector('figure:not([hidden]) output').textContent")
    return "" if re.match(r"\d+ % faster: -?[\d.]+ % \[", told) else f"the value at the key says {told!r}"


def there_without_scripts(browser, path, page):
    browser.open(path, scripts=False)
    rows, curves = (browser.value(f"document.querySelectorAll('{s}').length") for s in ("table.lines tbody tr", "figure svg.plot path.curve"))
    return "" if (rows, curves) == (len(page.rows), page.figures) and rows else f"{rows} rows and {curves} curves for {len(page.rows)} and {page.figures}"


def inert(browser, path, page):
    why = page.complaints()
    browser.open(path)
    if browser.value("window.hacked") is not None or browser.value("document.images.length"):
        why += " the profile's markup came to life;"
    if EVIL not in "".join(sum(page.rows, [])):
        why += " the names are not told as they are;"
    if browser.complaints:
        why += f" {browser.complaints};"
    table = report("--csv", os.path.join(where, "hostile.jsonl"))
    if re.search(r'(^|,)"[=+@-]', table, re.M) or "\"'" + FORMULA not in table:
        why += " a formula in the CSV;"
    if re.search(r"(?<!\\)<(?!!-- -->)|@(?!<)", report("--markdown", os.path.join(where, "hostile.jsonl"))):
        why += " markup in the Markdown;"
    return why


def source_of(browser):
    """The source that --with-source shows of lines in a file that is there, one that is not, and files that are none."""
    source_file, page = os.path.join(where, "real.c"), os.path.join(where, "places.html")
    with open(source_file, "w", encoding="utf-8") as f:
        f.write("".join(f"line {n}; </pre><script>window.hacked=1</script>\r\n" for n in range(1, 30)))
    os.mkfifo(os.path.join(where, "pipe.c"))
    places = (f"{source_file}:7", "/proc/self/environ:1", "/dev/zero:1", f"{where}/pipe.c:1", "/nowhere.c:1", "relative.c:1")
    report("--with-source", "--html", page, rich(os.path.join(where, "places.jsonl"), places, False))
    browser.open(page)
    texts = browser.value("[...document.querySelectorAll('pre')].map(p => p.textContent)")
    wanted = "".join(f"{n:5}  line {n}; </pre><script>window.hacked=1</script>\n" for n in range(2, 13))
    return "" if set(texts) == {wanted} and browser.value("window.hacked") is None else f"{texts}"


def diff_in_browser(browser):
    page = os.path.join(where, "diff.html")
    subprocess.run([cozbpf, "diff", "--html", page, os.path.join(where, "hostile.jsonl"), os.path.join(where, "hostile.jsonl")], check=True, stdout=subprocess.DEVNULL)
    with open(page, encoding="utf-8") as f:
        why = Page(f.read()).complaints()
    browser.open(page)
    if browser.complaints or browser.value("window.hacked") is not None or browser.value("document.querySelectorAll('table.lines tbody tr').length") < 3:
        why += f" complaints {browser.complaints}, {browser.value('document.body.textContent')[:200]}"
    return why


def in_browser():
    with Browser() as browser:
        for name in ("exact", "noisy", "empty"):
            path, page = page_of(os.path.join(DATA, name + ".jsonl"), name)
            why = page.complaints()
            if name == "empty":
                browser.open(path)
                why += "; ".join(browser.complaints) or "" if "empty" in " ".join(page.answers) else " it does not say that it is empty"
            else:
                why = why or works(browser, path) or there_without_scripts(browser, path, page)
            verdict(f"HTML of {name} in a browser", why)
        for name in ("barrier", "pipeline"):
            path, page = page_of(os.path.join(where, name + ".jsonl"), name)
            browser.open(path)
            why = page.complaints() or "; ".join(browser.complaints) or ("" if page.figures else " no curve;")
            if f"{name}.c:" not in browser.value("document.querySelector('table.lines').textContent"):
                why += " no line of it;"
            verdict(f"HTML of a run of {name} in a browser", why)
        path, page = page_of(rich(os.path.join(where, "rich.jsonl")), "rich")
        browser.open(path)
        source_text = browser.value("document.querySelector('pre').textContent")
        why = page.complaints() or "; ".join(browser.complaints)
        # Visits of both points over time, and one of the two points has latencies.
        if page.charts != 3:
            why += f" {page.charts} charts;"
        if 'if (x < 0 && "y")' not in source_text or "return 1" not in browser.value("document.querySelector('pre .here').textContent"):
            why += f" the source reads {source_text!r};"
        if "/src/b.h:3 in /src/a.c:7" not in browser.value("document.querySelector('details ul').textContent"):
            why += " no inlined code;"
        verdict("charts, source and inlined code", why)
        path, page = page_of(hostile(os.path.join(where, "hostile.jsonl")), "hostile")
        verdict("a hostile profile is text", inert(browser, path, page))
        verdict("source is read of regular files alone", source_of(browser))
        verdict("two hostile profiles compared", diff_in_browser(browser))
        path, page = page_of(large(os.path.join(where, "large.jsonl"), 5, 500), "large")
        size, took = os.path.getsize(path), browser.open(path)
        print(f"# 500 lines and 5 points: {size / 1e6:.2f} MB, loaded in {took:.2f} s")
        verdict("500 lines and 5 points", page.complaints() or ("" if size < 5e6 and page.figures == 2500 else f"{size} bytes, {page.figures} figures"))


def as_schema_says(kind, what, text):
    with open(os.path.join(source, "user", "report", f"{kind}.schema.json"), encoding="utf-8") as f:
        wrong = next(jsonschema.Draft7Validator(json.load(f)).iter_errors(json.loads(text)), None)
    verdict(f"JSON of {what} is as its schema says", wrong and f"{'/'.join(map(str, wrong.absolute_path))}: {wrong.message}")


for name in ("exact.jsonl", "noisy.jsonl", "empty.jsonl", "hostile.jsonl", "old.coz"):
    as_schema_says("report", name, report("--json", os.path.join(DATA, name)))
old, new = os.path.join(DATA, "exact.jsonl"), os.path.join(DATA, "noisy.jsonl")
compared = subprocess.run([cozbpf, "diff", "--json", old, new], stdout=subprocess.PIPE, check=True, text=True).stdout
as_schema_says("diff", "a comparison", compared)
for profile in (os.path.join(DATA, "exact.jsonl"), os.path.join(DATA, "noisy.jsonl"), rich(os.path.join(where, "rich.jsonl"))):
    verdict(f"the same numbers in all forms of {os.path.basename(profile)}", same_in_all_forms(profile))
try:
    in_browser()
except Failure as e:
    verdict("a browser", str(e))
