# SPDX-License-Identifier: Apache-2.0
# Reports // comments in C: a small scanner of strings, characters and /* */ comments.
# usage: awk -f comments.awk FILE...
FNR == 1 { in_comment = 0 }
{
    rest = $0
    while (rest != "") {
        if (in_comment) {
            end = index(rest, "*/")
            if (end == 0) next
            rest = substr(rest, end + 2)
            in_comment = 0
        } else if (match(rest, /"|'|\/\*|\/\//) == 0) {
            next
        } else {
            token = substr(rest, RSTART, RLENGTH)
            rest = substr(rest, RSTART + RLENGTH)
            if (token == "//") {
                printf "%s:%d: // comment; use /* */\n", FILENAME, FNR
                next
            } else if (token == "/*") {
                in_comment = 1
            } else {
                # to the end of the literal, over escaped characters
                while (rest != "") {
                    first = substr(rest, 1, 1)
                    rest = substr(rest, first == "\\" ? 3 : 2)
                    if (first == token) break
                }
            }
        }
    }
}
