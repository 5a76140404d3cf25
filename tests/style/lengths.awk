# SPDX-License-Identifier: Apache-2.0
# Lengths of files, functions and lines, as clang-format leaves them: a function begins with
# a "{" and ends with a "}" in the first column. Tables that clang-format leaves alone, and
# strings that cannot be split, may be wider.
# usage: awk -v function_max=60 -v file_max=800 -v width_max=100 -f lengths.awk FILE...
# Prints what is longer, then a summary line that begins with "summary".
function end_of_file() {
    if (lines > file_max) printf "%s: %d lines, at most %d\n", name, lines, file_max
    if (lines > longest_file) longest_file = lines
    total += lines
}
FNR == 1 {
    if (NR > 1) end_of_file()
    name = FILENAME
    opened = 0
    is_table = 0
    head = 1
}
{ lines = FNR }
/clang-format off/ { is_table = 1 }
/clang-format on/ { is_table = 0; next }
length($0) > width_max && !is_table && !/^ *"[^"]*"[,;)]*$/ {
    printf "%s:%d: line of %d columns, at most %d\n", name, FNR, length($0), width_max
}
/^[A-Za-z_]/ && !opened { if (!in_head) head = FNR; in_head = 1 }
/^$/ { in_head = 0 }
/^\{$/ { opened = in_head ? head : FNR }
/^}$/ && opened {
    n = FNR - opened + 1
    count++
    if (n > 40) above_usual++
    if (n > function_max) printf "%s:%d: function of %d lines, at most %d\n", name, opened, n, function_max
    if (n > longest) longest = n
    opened = 0
    in_head = 0
}
END {
    end_of_file()
    printf "summary: %d lines, longest file %d, %d functions, longest %d, %d above 40\n", total, longest_file, count, longest, above_usual
}
