# SPDX-License-Identifier: Apache-2.0
# Which files the style checks look at. Sourced; works without git, so that a tarball or
# a clone owned by somebody else can be checked as well. Each list succeeds, whatever its last file
# is: with pipefail a check would otherwise not look at what it found.

style_folders="lib include fusefs tools tests examples python compat"

# c_files [ROOT]: every C, C++ and CUDA file of ours, relative to the root.
c_files() {
    (cd "${1:-.}" && for folder in $style_folders; do
        [ -d "$folder" ] && find "$folder" -type f \
            \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cpp' -o -name '*.hpp' \)
    done | sort)
}

# python_files [ROOT]: every Python script, by name or by its first line.
python_files() {
    (cd "${1:-.}" && for folder in $style_folders; do
        [ -d "$folder" ] && find "$folder" -type f ! -name '*.gz' ! -name '*.[ch]' ! -name '*.[ch]pp'
    done | while read -r file; do
        case "$file" in
        *.py) echo "$file" ;;
        *) ! head -c 32 "$file" | head -n 1 | grep -aqE '^#!.*/env python3$' || echo "$file" ;;
        esac
    done | sort)
}

# script_files [ROOT]: every shell script, by name or by its first line.
script_files() {
    (cd "${1:-.}" && for folder in .ci $style_folders; do
        [ -d "$folder" ] && find "$folder" -type f ! -name '*.gz' ! -name '*.[ch]' ! -name '*.[ch]pp'
    done | while read -r file; do
        case "$file" in
        *.sh) echo "$file" ;;
        *) ! head -c 32 "$file" | head -n 1 | grep -aqE '^#!.*/(env )?(ba)?sh' || echo "$file" ;;
        esac
    done | sort)
}
