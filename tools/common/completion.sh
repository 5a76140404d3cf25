#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: completion.sh PROGRAM bash|zsh|fish FILE
# Writes into FILE the completion of a program's command line, made of its table of options: what
# --help prints of it, and the words that the program names when it refuses a value. An argument
# named FILE or LOG is a file, MOUNTPOINT a folder, PROGRAM a command; of "max|FACTOR" the part in small
# letters is a word.
set -eu
program=$1 shell=$2 output=$3
name=${program##*/}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$program" --help >"$work/help"

# One line for each option: long name, letter or -, argument or -, first line of its text.
awk '
    /^Mount options:/ { mount = 1 }
    /^  -/ && !mount {
        line = $0; letter = "-"; argument = "-"
        sub(/^  /, "", line)
        if (match(line, /^-[a-zA-Z], /)) { letter = substr(line, 2, 1); line = substr(line, 5) }
        match(line, /^--[a-z][a-z-]*/)
        long = substr(line, 3, RLENGTH - 2)
        line = substr(line, RLENGTH + 1)
        if (match(line, /^ [^ ]+/)) { argument = substr(line, 2, RLENGTH - 1); line = substr(line, RLENGTH + 1) }
        sub(/^ +/, "", line)
        if (line == "") { getline line; sub(/^ +/, "", line) }
        gsub(/[^-A-Za-z0-9 .,%]/, "", line)
        print long, letter, argument, line
    }' "$work/help" >"$work/options"
[ -s "$work/options" ] || { echo "completion.sh: $name --help shows no options" >&2; exit 1; }

# The words that an option takes, or nothing.
words_of() { # LONG ARGUMENT
    case $2 in
    -) ;;
    *'|'*) echo "$2" | tr '|' '\n' | grep -xE '[a-z0-9-]+' | xargs ;;
    OPTS) sed -n '/^Mount options:/,/^$/s/^  \([a-z_]*=\{0,1\}\)\([A-Z]* .*\)/\1/p' "$work/help" | grep . | xargs ;;
    *) "$program" "--$1" '?' --no-such-option </dev/null 2>&1 | sed -nE 's/.* (is not one of|they are) ([a-z0-9_, ]*)$/\2/p' | tr ',' ' ' | xargs ;;
    esac
}
while read -r long letter argument text; do
    printf '%s\t%s\t%s\t%s\t%s\n' "$long" "$letter" "$argument" "$(words_of "$long" "$argument")" "$text"
done <"$work/options" >"$work/table"

operand=none
case $(sed -n 's/^Usage: //p' "$work/help") in
*PROGRAM*) operand=command ;;
*LOG*) operand=files ;;
*MOUNTPOINT*) operand=folders ;;
esac

# The tab is no white space for read: an empty field stays one.
each_option() { # COMMAND, with LONG LETTER ARGUMENT WORDS TEXT
    tr '\t' '\037' <"$work/table" | while IFS=$(printf '\037') read -r long letter argument words text; do
        "$1" "$long" "$letter" "$argument" "$words" "$text"
    done
}

bash_option() {
    [ "$3" != - ] || return 0
    case $3:$4 in
    *:?*) answer="COMPREPLY=(\$(compgen -W '$4' -- \"\$word\"))" ;;
    FILE:*) answer='compopt -o filenames; COMPREPLY=($(compgen -f -- "$word"))' ;;
    *) answer='COMPREPLY=()' ;;
    esac
    [ "$2" = - ] && pattern="--$1" || pattern="--$1 | -$2"
    printf '    %s) %s; return ;;\n' "$pattern" "$answer"
}

bash_completion() {
    options=$(cut -f 1 "$work/table" | sed 's/^/--/' | xargs)
    function=_$(echo "$name" | tr - _)
    cat <<END
# Completion of $name for bash, made of its --help.
$function()
{
    local IFS=\$' \t\n' word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} i
    # bash parts --name=value
    if [ "\$word" = = ]; then word=; elif [ "\$before" = = ] && [ "\$COMP_CWORD" -ge 2 ]; then before=\${COMP_WORDS[COMP_CWORD - 2]}; fi
END
    if [ $operand = command ]; then
        cat <<END
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [ "\${COMP_WORDS[i]}" = -- ]; then
            if [ \$((i + 1)) = "\$COMP_CWORD" ]; then COMPREPLY=(\$(compgen -c -- "\$word"))
            else compopt -o filenames; COMPREPLY=(\$(compgen -f -- "\$word")); fi
            return
        fi
    done
END
    fi
    echo "    case \$before in"
    each_option bash_option
    echo "    esac"
    echo "    case \$word in -*) COMPREPLY=(\$(compgen -W '$options' -- \"\$word\")); return ;; esac"
    case $operand in
    command) echo '    COMPREPLY=($(compgen -W -- -- "$word"))' ;;
    files) echo '    compopt -o filenames; COMPREPLY=($(compgen -f -- "$word"))' ;;
    folders) echo '    compopt -o filenames; COMPREPLY=($(compgen -d -- "$word"))' ;;
    none) echo '    COMPREPLY=()' ;;
    esac
    printf '}\ncomplete -F %s %s\n' "$function" "$name"
}

zsh_option() {
    case $3:$4 in
    -:*) action= ;;
    *:?*) action=":$3:($4)" ;;
    FILE:*) action=":$3:_files" ;;
    *) action=":$3: " ;;
    esac
    [ "$3" = - ] && equals= || equals='='
    printf "    '--%s%s[%s]%s' \\\\\n" "$1" "$equals" "$5" "$action"
    [ "$2" = - ] || printf "    '-%s[%s]%s' \\\\\n" "$2" "$5" "$action"
}

zsh_completion() {
    printf '#compdef %s\n# Completion of %s for zsh, made of its --help.\n_arguments -S \\\n' "$name" "$name"
    each_option zsh_option
    case $operand in
    command) echo "    '(-)1:program:_command_names -e' '*::argument:_normal'" ;;
    files) echo "    '1:log:_files'" ;;
    folders) echo "    '1:mount point:_files -/'" ;;
    none) echo "    && return" ;;
    esac
}

fish_option() {
    [ "$2" = - ] && letter= || letter=" -s $2"
    case $3:$4 in
    -:*) value= ;;
    *:?*) value=" -x -a '$4'" ;;
    FILE:*) value=" -r -F" ;;
    *) value=" -x" ;;
    esac
    printf "complete -c %s%s -l %s%s -d '%s'\n" "$name" "$letter" "$1" "$value" "$5"
}

fish_completion() {
    echo "# Completion of $name for fish, made of its --help."
    case $operand in
    command) echo "complete -c $name -f -a '(__fish_complete_subcommand)'" ;;
    folders) echo "complete -c $name -f -a '(__fish_complete_directories)'" ;;
    none) echo "complete -c $name -f" ;;
    esac
    each_option fish_option
}

case $shell in
bash | zsh | fish) "${shell}_completion" >"$work/output" ;;
*) echo "completion.sh: bash, zsh or fish, not $shell" >&2; exit 2 ;;
esac
mkdir -p "${output%/*}"
mv "$work/output" "$output"
chmod 644 "$output"
