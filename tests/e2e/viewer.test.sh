#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Profiles of ours open in Debian's coz-profiler viewer: its profile.js runs under node, and what it makes of a profile is compared
# with the arithmetic that it stands for.
# needs: node python3 package:coz-profiler
# beside: others
set -uo pipefail
: "${SRC:=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)}"

viewer=$(dpkg -L coz-profiler 2>/dev/null | grep -m 1 '/profile\.js$')

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

cat >"$tmp/check.js" <<'EOF'
'use strict';
const fs = require('fs');
const vm = require('vm');
const [viewer, native, both, measured] = process.argv.slice(2);
let failed = false;

function report(name, problem) {
	failed = failed || Boolean(problem);
	console.log(problem ? `not ok ${name}: ${problem}` : `ok ${name}`);
}

// The viewer is written for a page. Parsing touches nothing of it; whatever the file touches while it loads takes any call.
const anything = new Proxy(function () {}, { get: (t, key) => (key === Symbol.toPrimitive ? () => 0 : anything),
	apply: () => anything, construct: () => anything });
const page = vm.createContext({ d3: anything, science: anything, document: anything, window: anything, $: anything, console });
vm.runInContext(fs.readFileSync(viewer, 'utf8') + '\n;globalThis.TheProfile = Profile;', page);

function open(path) {
	const warnings = [];
	const profile = new page.TheProfile(fs.readFileSync(path, 'utf8'), anything, anything, () => 0,
		(title, body) => warnings.push(title + ': ' + body));
	return { profile, warnings };
}

// The model of tests/data/make_profiles.py.
const models = { '/src/app/hot.c:10': (s) => Math.min(s, 0.6) / 2, '/src/app/lock.c:20': (s) => -s / 5, '/src/app/cold.c:30': () => 0 };

function check(path, points) {
	const { profile, warnings } = open(path);
	if (warnings.length)
		return 'warning: ' + warnings[0];
	if (String(profile.getProgressPoints()) !== String(points))
		return 'points: ' + profile.getProgressPoints();
	const lines = profile.getSpeedupData(5);
	if (String(lines.map((l) => l.name).sort()) !== String(Object.keys(models).sort()))
		return 'lines: ' + lines.map((l) => l.name);
	for (const line of lines)
		for (const point of line.progress_points) {
			// No visit, no period: the viewer leaves such points without a curve.
			const expected = point.name === 'never' ? [] : [0, 0.25, 0.5, 0.75, 1];
			if (String(point.measurements.map((m) => m.speedup)) !== String(expected))
				return `speedups of ${line.name}, ${point.name}: ${point.measurements.map((m) => m.speedup)}`;
			for (const m of point.measurements) {
				// For latency the viewer turns the sign.
				const truth = models[line.name](m.speedup) * (point.name === 'request' ? -1 : 1);
				if (!(Math.abs(m.progress_speedup - truth) < 1e-6))
					return `${line.name} at ${m.speedup}, ${point.name}: ${m.progress_speedup}, not ${truth}`;
			}
		}
	return '';
}

report('viewer reads JSON lines', check(native, ['frame', 'never', 'request']));
report('viewer reads two runs in one file', check(both, ['frame', 'never', 'request']));
report('viewer reads latency points that measured', check(measured, ['frame', 'never', 'request']));

// Debian's viewer is not the only one: the rules that every one relies on, key by key.
const rules = {
	startup: { time: 'number' }, experiment: { selected: 'string', speedup: 'number', duration: 'number', selected_samples: 'number' },
	'throughput-point': { name: 'string', delta: 'number' },
	'latency-point': { name: 'string', arrivals: 'number', departures: 'number', difference: 'number' },
	runtime: { time: 'number' }, samples: { location: 'string', count: 'number' },
};
let broken = '';
let inExperiment = false;
for (const line of fs.readFileSync(native, 'utf8').trimEnd().split('\n')) {
	const record = JSON.parse(line);
	const rule = rules[record.type];
	if (!rule)
		broken = 'unknown type ' + record.type;
	else
		for (const [key, type] of Object.entries(rule))
			if (typeof record[key] !== type)
				broken = `${record.type}.${key} is ${typeof record[key]}`;
	if (record.type === 'experiment')
		inExperiment = true;
	else if (record.type.endsWith('-point')) {
		if (!inExperiment)
			broken = 'a point without an experiment';
	} else
		inExperiment = false;
}
report('JSON records have the keys of the format', broken);
process.exit(failed ? 1 : 0);
EOF

# All but the recording are, byte for byte, what our writer makes of their content (profile_writer_test), and their numbers follow
# from a model, so that they stand for what a run writes.
mkdir "$tmp/data" || exit 1
cp -- "$SRC/tests/data/make_profiles.py" "$tmp/data/" || exit 1
python3 "$tmp/data/make_profiles.py" || exit 1
if diff -r -q -x '*.py' -x record -x barrier.jsonl "$tmp/data" "$SRC/tests/data" >"$tmp/diff"; then
	printf 'ok sample profiles are what their generator writes\n'
	status=0
else
	printf 'not ok sample profiles are what their generator writes: %s\n' "$(head -n 1 "$tmp/diff")"
	status=1
fi
cat "$tmp/data/exact.jsonl" "$tmp/data/exact.jsonl" >"$tmp/both.jsonl"
sed '/"latency-point"/s/}$/,"sum_ns":1000,"unmatched":0,"unended":0,"crossed":1,"lost":0,"in_flight_begin":2,"in_flight_end":2,"histogram":{"70":3,"489":97}}/' \
	"$tmp/data/exact.jsonl" >"$tmp/measured.jsonl"
grep -q histogram "$tmp/measured.jsonl" || status=1
node "$tmp/check.js" "$viewer" "$tmp/data/exact.jsonl" "$tmp/both.jsonl" "$tmp/measured.jsonl" ||
	status=1
exit "$status"
