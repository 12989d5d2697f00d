# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Completion for bash. Commands, options and their values are those that the program itself prints, so that they are always right.

# Where the words of the profiled program begin; the number of words if they do not.
_cozbpf_program() {
	local i takes=" $1 "
	for ((i = 2; i < ${#COMP_WORDS[@]}; i++)); do
		case ${COMP_WORDS[i]} in
		--) ((i++)) && break ;;
		-*) [[ $takes != *" ${COMP_WORDS[i]} "* ]] || ((i++)) ;;
		*) break ;;
		esac
	done
	printf '%s' "$i"
}

# The words that an option takes, which the program names where it gets another one. Without a command or a process it does nothing else.
_cozbpf_values() {
	"$1" "$2" "$3" '?' 2>&1 </dev/null | sed -nE "s/.*'\?': allowed (are|is one of|is a list of) ([a-z, -]+)$/\2/p" | tr -d ','
}

# The commands, and what a command has kinds of (list, db), by its usage.
_cozbpf_commands() {
	"$1" --help 2>/dev/null | sed -n 's/^  cozbpf \([a-z]*\) .*/\1/p'
}
_cozbpf_kinds() {
	sed -nE 's/^(Usage:| ) *cozbpf [a-z]+ ([a-z]+) .*/\2/p'
}

_cozbpf() {
	local cozbpf=${COMP_WORDS[0]} command=${COMP_WORDS[1]} cur=$2 prev=$3 help options with_value at target before=''
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "$(_cozbpf_commands "$cozbpf") help --help --version" -- "$cur")
		return
	fi
	if [[ $command == help ]]; then
		((COMP_CWORD > 2)) || mapfile -t COMPREPLY < <(compgen -W "$(_cozbpf_commands "$cozbpf")" -- "$cur")
		return
	fi
	help=$("$cozbpf" "$command" --help 2>/dev/null) || return
	if [[ $command == list || $command == db ]] && ((COMP_CWORD == 2)) && [[ $cur != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_cozbpf_kinds <<<"$help")" -- "$cur")
		return
	fi
	[[ $command != db ]] || help=$("$cozbpf" db "${COMP_WORDS[2]}" --help 2>/dev/null) || return
	options=$(sed -nE 's/^ {2,6}((-[a-z]), )?(--[a-z-]+).*/\2 \3/p' <<<"$help")
	with_value=$(sed -nE 's/^ {2,6}((-[a-z]), )?(--[a-z-]+) [A-Z].*/\2 \3/p' <<<"$help" | tr -s ' \n' ' ')
	at=$(_cozbpf_program "$with_value")
	if [[ $command == run || $command == validate ]] && ((COMP_CWORD >= at)) && [[ $cur != -* || ${COMP_WORDS[at - 1]} == -- ]]; then
		# Another program and its own arguments.
		if declare -F _command_offset >/dev/null; then _command_offset "$at"; else mapfile -t COMPREPLY < <(compgen -c -f -- "$cur"); fi
		return
	fi
	case $prev in
	-p | --progress)
		# Of the program that follows, or of the process.
		target=${COMP_WORDS[at]:-}
		[[ $command != attach ]] || target=$(printf '%s\n' "${COMP_WORDS[@]:2}" | grep -m 1 -xE '[0-9]+')
		[[ -z $target ]] || mapfile -t COMPREPLY < <("$cozbpf" list functions "$target" "$cur*" 2>/dev/null | grep -v '^#' | head -n 200)
		return
		;;
	-*)
		if [[ " $with_value " == *" $prev "* ]]; then
			# Of a list, the last item.
			[[ $cur != *,* ]] || before=${cur%,*},
			mapfile -t COMPREPLY < <(compgen -P "$before" -W "$(_cozbpf_values "$cozbpf" "$command" "$prev")" -- "${cur##*,}")
			((${#COMPREPLY[@]})) || mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			return
		fi
		;;
	esac
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
	elif [[ $command == attach ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(ps -eo pid= 2>/dev/null)" -- "$cur")
	elif [[ $command == list ]]; then
		mapfile -t COMPREPLY < <(compgen -c -f -W "$(ps -eo pid= 2>/dev/null)" -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
}
complete -o filenames -o bashdefault -F _cozbpf cozbpf
