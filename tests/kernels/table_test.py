# SPDX-License-Identifier: BSD-2-Clause
"""The table of kernels and features: what guests said is in its cell, refusals have their reasons, only the marked part of a file changes, and columns
that were not tried again stay."""
import datetime
import os
import subprocess
import sys
import tempfile
import unittest

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "table.py")
BEGIN = "<!-- kernels: made by tests/run kernels --write-table -->\n"
END = "<!-- kernels: end -->\n"
OLD = "@@ begin run\n@@ ok run\n@@ begin attach\n@@ refused attach: no task work\n@@ begin system\n@@ refused system: no task work\n"
NEW = "@@ begin run\n@@ failed run: status 1;\n# @@ ok run\n@@ begin attach\n@@ ok attach\n@@ begin kernel log\n@@ ok kernel log\n"
NOW = f"{datetime.date.today():%Y-%m}"
WANTED = f"""|  | 6.1 | 7.3, real-time |
| --- | --- | --- |
| package's version | 6.1.0-50 | 7.3.4+deb13 |
| tried | {NOW} | {NOW} |
| run | ok | FAILED |
| attach | no (1) | ok |
| kernel log |  | ok |
| system | no (1) |  |

(1) no task work
"""


class Table(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        head, tail = NEW.split("@@ begin kernel log")
        self.lines = "".join([
            f"6.1|linux-image-6.1.0-50-cloud-amd64|{self.file('old', OLD)}\n",
            # Two guests of one kernel are one column.
            f"7.3, real-time|linux-binary-7.3.4+deb13-rt-amd64|{self.file('new', head)}\n",
            f"7.3, real-time|linux-binary-7.3.4+deb13-rt-amd64|{self.file('more', '@@ begin kernel log' + tail)}\n"])

    def file(self, name, text):
        path = os.path.join(self.directory.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run_it(self, *arguments):
        return subprocess.run([sys.executable, TABLE, *arguments], input=self.lines, capture_output=True, text=True, check=False)

    def test_prints(self):
        done = self.run_it()
        self.assertEqual((done.returncode, done.stdout), (0, WANTED))

    def test_writes_between_the_marks(self):
        path = self.file("README", f"before\n{BEGIN}what was there\n{END}after\n")
        self.assertEqual(self.run_it("--write", path).returncode, 0)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), f"before\n{BEGIN}{WANTED}{END}after\n")

    def test_keeps_other_columns(self):
        there = "|  | 6.1 | 6.12 | 7.3 |\n| --- | --- | --- | --- |\n" \
            "| package's version | 6.1.0-1 | 6.12.1 | 7.3.1 |\n| tried | 2026-01 | 2026-01 | 2026-02 |\n" \
            "| run | no (1) | no (2) | ok |\n| hold |  | ok |  |\n| attach | ok | no (3) | ok |\n\n(1) gone\n\n(2) no task work\n\n(3) too old\n"
        path = self.file("README", f"{BEGIN}{there}{END}")
        self.assertEqual(self.run_it("--write", path).returncode, 0)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), f"""{BEGIN}|  | 6.1 | 6.12 | 7.3 | 7.3, real-time |
| --- | --- | --- | --- | --- |
| package's version | 6.1.0-50 | 6.12.1 | 7.3.1 | 7.3.4+deb13 |
| tried | {NOW} | 2026-01 | 2026-02 | {NOW} |
| run | ok | no (1) | ok | FAILED |
| hold |  | ok |  |  |
| attach | no (1) | no (2) | ok | ok |
| kernel log |  |  |  | ok |
| system | no (1) |  |  |  |

(1) no task work

(2) too old
{END}""")

    def test_leaves_a_file_without_marks(self):
        path = self.file("README", f"before\n{BEGIN}after\n")
        done = self.run_it("--write", path)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("kernels: end", done.stderr)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), f"before\n{BEGIN}after\n")


if __name__ == "__main__":
    unittest.main()
