# SPDX-License-Identifier: BSD-2-Clause
# Completion for fish. Commands and options are those that the program itself prints, so that they are always right.

function __cozbpf_command
    set -l words (commandline -opc)
    echo $words[2]
end

function __cozbpf_options
    cozbpf (__cozbpf_command) --help 2>/dev/null | string replace -rf '^ {2,6}(?:-[a-z], )?(--[a-z-]+)(?: [A-Z]\S*)? *(.*)' '$1\t$2'
end

function __cozbpf_has_command
    test (count (commandline -opc)) -ge 2
end

function __cozbpf_takes_kind
    test (count (commandline -opc)) -eq 2; and contains -- (__cozbpf_command) list db
end

function __cozbpf_kinds
    cozbpf (__cozbpf_command) --help 2>/dev/null | string replace -rf '^(?:Usage:| ) *cozbpf [a-z]+ ([a-z]+) .*' '$1' | sort -u
end

function __cozbpf_what
    cozbpf run --what '?' 2>&1 </dev/null | string replace -rf '.*allowed is a list of ([a-z, -]+)$' '$1' | string split ', '
end

complete -c cozbpf -n 'not __cozbpf_has_command' -f -a "(cozbpf --help | string replace -rf '^  cozbpf ([a-z]+) .*' '\$1')"
complete -c cozbpf -n 'not __cozbpf_has_command' -f -a help
complete -c cozbpf -n 'test "$(__cozbpf_command)" = help' -f -a "(cozbpf --help | string replace -rf '^  cozbpf ([a-z]+) .*' '\$1')"
complete -c cozbpf -n __cozbpf_has_command -a '(__cozbpf_options)'
complete -c cozbpf -n __cozbpf_takes_kind -f -a '(__cozbpf_kinds)'
complete -c cozbpf -n __cozbpf_has_command -l what -x -a '(__cozbpf_what)'
complete -c cozbpf -n 'test (__cozbpf_command) = attach' -a '(__fish_complete_pids)'
