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

complete -c cozbpf -n 'not __cozbpf_has_command' -f -a "(cozbpf --help | string replace -rf '^  cozbpf ([a-z]+) .*' '\$1')"
complete -c cozbpf -n __cozbpf_has_command -a '(__cozbpf_options)'
complete -c cozbpf -n 'test (__cozbpf_command) = attach' -a '(__fish_complete_pids)'
