#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The live view in a terminal, of several sizes, one after the other during a run; plain lines where the program has the terminal, or there is none.
# needs: root btf tmux
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

pipeline="$BUILD/tests/truth/pipeline --round 2000"
export LC_ALL=C.UTF-8
terminal() {
	tmux -S "$tmp/tmux" -f /dev/null "$@"
}
# What the terminal NAME shows.
screen() { # NAME [OPTION]
	terminal capture-pane -p ${2:+"$2"} -t "$1"
}
open() { # NAME COLUMNS ROWS COMMAND
	terminal new-session -d -s "$1" -x "$2" -y "$3" "$4; echo status \$?; exec sleep 1000"
}
await_screen() { # NAME PATTERN SECONDS
	local turn
	for ((turn = 0; turn < $3 * 5; turn++)); do
		! grep -qE -- "$2" <<<"$(screen "$1")" || return 0
		sleep 0.2
	done
	return 1
}

# One view, in full, and nothing of an earlier one, within a few seconds.
is_whole() { # NAME COLUMNS
	local turn heads rates
	for turn in {1..25}; do
		screen "$1" >shown
		heads=$(grep -cE '^cozbpf: [0-9]+/[0-9]+ s' shown)
		rates=$(grep -c 'visits/s  progress' shown)
		[ "$heads/$rates" != 1/1 ] || return
		sleep 0.2
	done
	printf ' %s heads and %s rates at %s columns;' "$heads" "$rates" "$2"
}

run="$COZBPF run --keep-root --no-report -p progress"
open view 80 24 "$run -o view.jsonl --output-to view.out -d 45 -- $pipeline --seconds 100"
open shared 80 24 "$run -o shared.jsonl -d 12 -- $pipeline --seconds 100"
NO_COLOR=1 open plain 80 24 "NO_COLOR=1 $run -o plain.jsonl --output-to plain.out -d 20 -- $pipeline --seconds 100"
profile=piped.jsonl
# shellcheck disable=SC2086 # words
timeout 60 $run -o piped.jsonl -p never=main -d 12 -- $pipeline --seconds 100 >piped.out 2>piped.err &
piped=$!

why=
await_screen view 'visits/s  progress' 20 || why+=' no view;'
why+=$(is_whole view 80)
screen view -e >colors
grep -q $'\033\\[1m' colors || why+=' nothing is bold;'
await_screen plain 'visits/s  progress' 20 || why+=' no view without colours;'
! grep -q $'\033\\[[0-9;]*m' <<<"$(screen plain -e)" || why+=' colours in spite of NO_COLOR;'
await_screen view '10 % faster is worth a tenth of' 15 || why+=' no lines;'
grep -qE 'pipeline\.c:[0-9]+ .* %  \[' <<<"$(screen view)" || why+=' no line;'
verdict 'a view at 80x24' "$why" shown

why=
for size in 120x40 40x10 80x24; do
	terminal resize-window -t view -x "${size%x*}" -y "${size#*x}"
	sleep 0.5 # until the view knows
	why+=$(is_whole view "${size%x*}")
done
verdict 'it is whole after the terminal has changed its size' "$why" shown

why=
await_screen view '^status 0' 60 || why+=' no end;'
screen view >shown
! grep -qE '^cozbpf: [0-9]+/' shown || why+=' the view stays;'
[ ! -s view.out ] || grep -q '^visits=' view.out || why+=' the output of the program is elsewhere;'
verdict 'it is gone at the end' "$why" shown

why=
await_screen shared '^status 0' 40 || why+=' no end;'
screen shared >shown
grep -qE '^cozbpf: 1[01]/12 s, [0-9]+ experiments' shown || why+=' no plain line;'
verdict 'plain lines where the program has the terminal' "$why" shown

why=
wait "$piped" || why+=" status $?;"
grep -qE '^cozbpf: 1[01]/12 s, [0-9]+ experiments' piped.err || why+=' no plain line;'
! grep -q $'\033' piped.err || why+=' control sequences;'
verdict 'plain lines into a pipe' "$why" piped.err

why=
$COZBPF run --status view -p progress -- true 2>complaint && why+=' accepted;'
grep -q 'no terminal' complaint || why+=' no reason;'
ln -s nowhere link
$COZBPF run --keep-root --output-to link -p main -o none.jsonl -- "$BUILD/tests/truth/pipeline" --seconds 1 2>>complaint && why+=' a link is followed;'
grep -q 'output-to link: is a symbolic link' complaint || why+=' no reason for the link;'
[ ! -e nowhere ] || why+=' written through the link;'
verdict 'what cannot be' "$why" complaint
terminal kill-server
