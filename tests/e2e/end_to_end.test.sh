#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# cozbpf run -n N: each run of a program that ends is one experiment.
# needs: root btf python3
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

repeats() {
	local why='' status
	rm -f -- "$profile"
	timeout -k 5 "$limit" "$COZBPF" run "${switched_off[@]}" --keep-root -q -n 5 --seed 3 -o "$profile" -- "$programs/visits" 3000 "$(lasting 0.8)" >out 2>err
	status=$?
	[ "$status" -eq 0 ] || why+=" exit status $status;"
	[ "$(grep -c '^request=' out)" -eq 5 ] || why+=" the program ran $(grep -c '^request=' out) times;"
	[ "$(grep -c "Progress point 'end-to-end': 5 visits" err)" -eq 1 ] || why+=' not one report on all runs;'
	holds 'len(runs) == 5 and len(experiments) == 5 and len(runtimes) == 5' || why+=" $(ask '(len(runs), len(experiments))') runs and experiments;"
	holds 'all(x["points"]["end-to-end"]["delta"] == 1 and len(x["points"]) == 1 for x in experiments)' || why+=' other points;'
	holds 'experiments[0]["speedup"] == 0 and any(x["speedup"] > 0 for x in experiments)' || why+=" speedups $(ask '[x["speedup"] for x in experiments]');"
	# All but the first tens of milliseconds of each run.
	holds 'all(r * 0.8 < x["elapsed"] <= r for r, x in zip(runtimes, experiments))' || why+=' an experiment is not as long as its run;'
	verdict 'a program that ends is measured from end to end' "$why" out err
}

# What fails is not repeated, and what did not come to its end is no experiment.
ends_early() {
	local why='' status pid
	rm -f -- "$profile"
	timeout -k 5 "$limit" "$COZBPF" run "${switched_off[@]}" --keep-root -q -n 5 -o "$profile" -- "$programs/library" 1 "$tmp/no-such-plugin" >out 2>err
	status=$?
	[ "$status" -eq 1 ] || why+=" exit status $status;"
	holds 'len(runs) == 1' || why+=" it ran $(ask 'len(runs)') times;"
	verdict 'a program that fails is not run again' "$why" out err

	why=''
	rm -f -- "$profile"
	timeout -k 5 "$limit" "$COZBPF" run "${switched_off[@]}" --keep-root -q -n 5 -o "$profile" -- "$programs/visits" 1000 3 >out 2>err &
	pid=$!
	await_line "$profile" '"startup"' 10 || why+=' it did not begin;'
	sleep 1.5
	# To cozbpf alone, which hands it on.
	kill -INT "$(pgrep -P "$pid" -x cozbpf || echo "$pid")"
	wait "$pid"
	none_left || why+=" left behind: $(left_behind);"
	holds 'len(runs) == 1 and len(experiments) == 0' || why+=" $(ask '(len(runs), len(experiments))') runs and experiments;"
	verdict 'an interrupted run is no experiment' "$why" out err
}

# What a run has attached is gone when the next one's program starts: it would take time of it. The program notes the ids of the links that
# its profiler holds, which the kernel does not use again, and looks for those of the run before.
one_after_the_other() {
	local why=''
	cat >links.sh <<'EOF'
#!/bin/bash
PATH=$PATH:/usr/sbin
for id in $(cat ids 2>/dev/null); do
	! bpftool link show id "$id" >/dev/null 2>&1 || echo "left $id" >>left
done
sed -n 's/^link_id:[[:space:]]*//p' /proc/$PPID/fdinfo/* >ids 2>/dev/null
wc -l <ids >>counts
for ((i = 0; i < 20000; i++)); do :; done
EOF
	chmod 755 links.sh
	rm -f -- "$profile"
	timeout -k 5 "$limit" "$COZBPF" run "${switched_off[@]}" --keep-root -q --no-report -n 4 -o "$profile" -- ./links.sh >out 2>err || why+=" exit status $?;"
	[ "$(awk '$1 > 3' counts | wc -l)" -eq 4 ] || why+=" the links of a run were not found ($(tr '\n' ' ' <counts));"
	[ ! -e left ] || why+=" $(wc -l <left) links of a run were there in the next one;"
	verdict 'a run begins when the one before it is over' "$why" err
}

# Others connect to the socket by which a run hands out its library, while the run is put away. Memory that is freed is overwritten here.
asked_at_its_end() {
	local why='' status asker
	cat >ask_all.py <<'EOF'
import socket, time
end = time.monotonic() + 30
while time.monotonic() < end:
    with open("/proc/net/unix") as f:
        names = {line.split()[7] for line in f if "@cozbpf-" in line}
    for name in names:
        for _ in range(500):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.setblocking(False)
            try:
                s.connect("\0" + name[1:])
            except OSError:
                pass
            s.close()
EOF
	python3 ask_all.py &
	asker=$!
	rm -f -- "$profile"
	MALLOC_PERTURB_=170 timeout -k 5 "$limit" "$COZBPF" run "${switched_off[@]}" --keep-root -q --no-report -n 8 -o "$profile" -- sleep 0.05 >out 2>err
	status=$?
	kill "$asker"
	wait "$asker" 2>/dev/null
	[ "$status" -eq 0 ] || why+=" exit status $status;"
	verdict 'a run that is put away while others ask for its library' "$why" err
}

refused() {
	local why=''
	for options in '-p main' '-d 5'; do
		# shellcheck disable=SC2086 # two words
		"$COZBPF" run -n 3 $options -o "$profile" -- "$programs/visits" 10 0 >out 2>err
		[ $? -eq 125 ] || why+=" $options: accepted;"
		[ "$(wc -l <err)" -eq 1 ] && grep -q 'leave out' err || why+=" $options: not one line;"
		[ ! -s out ] || why+=" $options: the program ran;"
	done
	verdict 'options that make no sense with -n' "$why" err
}

repeats
ends_early
one_after_the_other
asked_at_its_end
refused
