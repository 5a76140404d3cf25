#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: completion.sh SOURCE PREFIX
# What installs completes in bash: each option that --help shows, the words that an option takes, files and
# commands where the program takes them, also behind "=", in the middle and for a program of another
# folder. zsh and fish, where they are, read theirs without a complaint; fish answers, too.
set -euo pipefail
. "$(dirname "$0")/common.sh"
stage=$2

# complete_bash WORD...: what bash offers for the last one, a line each.
complete_bash() {
    bash --norc --noprofile -c '
        file=$1 name=$2
        shift
        . "$file"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
        compopt() { :; }
        "$(complete -p "$name" | sed "s/.*-F \([^ ]*\) .*/\1/")"
        printf "%s\n" "${COMPREPLY[@]}"' bash "$stage/share/bash-completion/completions/$1" "$@"
}
expect() { # ANSWER WORD...: in any order
    local answer=$1
    shift
    [ "$(complete_bash "$@" | sort | xargs)" = "$answer" ] || die "\"$*\" gives: $(complete_bash "$@" | sort | xargs), not $answer"
}

count=0
for program in "$stage"/bin/*; do
    name=${program##*/}
    want=$("$program" --help | sed -n '1,/^Mount options/s/^  \(-[a-zA-Z], \)\{0,1\}\(--[a-z-]*\).*/\2/p' | sort)
    [ "$(wc -l <<<"$want")" -ge 3 ] || die "$name --help shows few options"
    [ "$(complete_bash "$name" -- | sort)" = "$want" ] || die "$name: options differ: $(complete_bash "$name" --)"
    for file in "$stage"/share/zsh/*/_"$name" "$stage/share/fish/vendor_completions.d/$name.fish"; do
        [ -s "$file" ] || die "not installed: $file"
    done
    while read -r option; do
        grep -qF -- "'$option" "$stage"/share/zsh/*/_"$name" || die "zsh: no $option of $name"
        grep -qE -- " -l ${option#--}( |\$)" "$stage/share/fish/vendor_completions.d/$name.fish" || die "fish: no $option of $name"
    done <<<"$want"
    count=$((count + 1))
done
[ "$count" -gt 0 ] || die "no program is installed"

mkdir "$work/files" "$work/files/folder"
touch "$work/files/a b.csv" "$work/files/log.csv"
cd "$work/files"
expect "--repetitions" rmm-bench --rep
if [ -e "$stage/bin/rmm-top" ]; then
    expect "command current node peak pid rate reserved user" rmm-top --sort ''
    expect "peak pid" rmm-top --sort p
    expect "peak pid" rmm-top --sort = p
    expect "command current node peak pid rate reserved user" rmm-top --once --sort =
    expect "" rmm-top ''
fi
expect "max" rmm-replay --speed ''
expect "log.csv" rmm-replay l
expect "--strict" rmm-replay log.csv --st
expect "folder" rmm-run --report fol
complete_bash rmm-run --diag '' | grep -x bounds >/dev/null || die "rmm-run --diag does not offer bounds"
complete_bash rmm-run --summary -- ec | grep -x echo >/dev/null || die "rmm-run does not offer commands"
expect "log.csv" rmm-run -- echo l
if [ -e "$stage/bin/rmmfs" ]; then
    expect "folder" rmmfs ''
    complete_bash rmmfs -o '' | grep -x 'hidepid=' >/dev/null || die "rmmfs -o does not offer hidepid"
fi

others=
if command -v zsh >/dev/null; then
    for file in "$stage"/share/zsh/*/_*; do
        zsh -n "$file" 2>"$work/complaint" || die "zsh: $(cat "$work/complaint")"
    done
    others+=" zsh"
fi
if command -v fish >/dev/null; then
    export HOME=$work XDG_CONFIG_HOME=$work/config XDG_DATA_HOME=$work/data
    for file in "$stage"/share/fish/vendor_completions.d/*; do
        fish -n "$file" 2>"$work/complaint" || die "fish: $(cat "$work/complaint")"
    done
    fish -c "source $stage/share/fish/vendor_completions.d/rmm-replay.fish; complete -C 'rmm-replay --sp'" | grep -- --speed >/dev/null ||
        die "fish offers nothing for rmm-replay --sp"
    others+=" fish"
fi
echo "$count programs: bash$others"
