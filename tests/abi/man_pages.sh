#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: man_pages.sh SOURCE PREFIX
# Each installed program has a man page, the page names every option of --help, and no line
# of a page is lost: one that begins with a dot, but is no macro, is dropped without a word. Every
# page is installed with its program, and groff finds nothing wrong with it.
set -euo pipefail
. "$(dirname "$0")/common.sh"
source=$1 stage=$2

for program in "$stage"/bin/*; do
    name=${program##*/}
    page=$(find "$source/docs/man" -name "$name.[18]")
    [ -n "$page" ] || die "$name has no man page"
    plain=$(sed 's/\\-/-/g' "$page")
    "$program" --help >"$work/help"
    # the options that a line begins with: "  -f, --foreground   stay in ..."
    options=$(sed -nE 's/^  (-.*)/\1/p' "$work/help" | sed 's/   .*//' |
        grep -oE -- '--?[a-zA-Z][a-z-]*')
    [ -n "$options" ] || die "$name --help shows no options"
    for option in $options; do
        grep -qE -- "(^|[^a-z-])$option([^a-z-]|\$)" <<<"$plain" || die "${page##*/} does not name $option"
    done
done

command -v groff >/dev/null || { echo "skipped: no groff"; exit 77; }

# The program that a page comes with.
program_of() { # PAGE
    case $1 in
        rmm.5) echo rmmfs ;;
        *) echo "${1%.*}" ;;
    esac
}

for page in "$source"/docs/man/*; do
    name=${page##*/}
    if grep -nE '^\.[^A-Za-z\\]|^\.[a-z]' "$page" | grep -vE ':\.(nf|fi)$'; then
        die "$name: these lines begin with a dot and are no macro: write \\&. instead"
    fi
    warnings=$(groff -man -ww -z -Tascii "$page" 2>&1) || die "groff cannot read $name: $warnings"
    [ -z "$warnings" ] || die "groff warns of $name: $warnings"
    if [ -e "$stage/bin/$(program_of "$name")" ]; then
        installed=$(find "$stage" -path "*/man${name##*.}/$name")
        [ -n "$installed" ] || die "$name is not installed"
        cmp "$page" "$installed" || die "$name is installed, but not as it is here"
    fi
    echo "man page: $name"
done
