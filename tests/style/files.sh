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

# scripts NAME FIRST: those files on standard input that have such a name, or such a first line.
scripts() {
    LC_ALL=C awk -v name="$1" -v first="$2" '
        $0 ~ name { print; next }
        { file = $0; line = ""; getline line <file; close(file) }
        substr(line, 1, 32) ~ first { print file }'
}

# python_files [ROOT]: every Python script, by name or by its first line.
python_files() {
    (cd "${1:-.}" && for folder in $style_folders; do
        [ -d "$folder" ] && find "$folder" -type f ! -name '*.gz' ! -name '*.[ch]' ! -name '*.[ch]pp'
    done | scripts '[.]py$' '^#!.*/env python3$' | sort)
}

# script_files [ROOT]: every shell script, by name or by its first line.
script_files() {
    (cd "${1:-.}" && for folder in .ci $style_folders; do
        [ -d "$folder" ] && find "$folder" -type f ! -name '*.gz' ! -name '*.[ch]' ! -name '*.[ch]pp'
    done | scripts '[.]sh$' '^#!.*/(env )?(ba)?sh' | sort)
}
