# Writes a C file with the bytes of the files of a page, each ended by a NUL, as <PREFIX>_<kind>[],
# and the SHA-256 of each as a Content-Security-Policy names it, as <PREFIX>_<kind>_hash[].
# cmake -D SOURCE=<folder> -D OUTPUT=<file> -D HEADER=<include> -D PREFIX=page -D KINDS="css js" -P embed.cmake

# "0123ab..." -> its bytes in base64
function(base64_of hex result)
    set(letters "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    string(LENGTH "${hex}" digits)
    math(EXPR missing "(6 - ${digits} % 6) % 6") # digits; two stand for one '=' at the end
    string(REPEAT "0" ${missing} zeros)
    string(REGEX MATCHALL "......" groups "${hex}${zeros}")
    set(text "")
    foreach(group ${groups})
        foreach(shift 18 12 6 0)
            math(EXPR at "(0x${group} >> ${shift}) & 63")
            string(SUBSTRING "${letters}" ${at} 1 letter)
            string(APPEND text "${letter}")
        endforeach()
    endforeach()
    string(LENGTH "${text}" length)
    math(EXPR padding "${missing} / 2")
    math(EXPR kept "${length} - ${padding}")
    string(SUBSTRING "${text}" 0 ${kept} text)
    string(REPEAT "=" ${padding} equals)
    set(${result} "${text}${equals}" PARENT_SCOPE)
endfunction()

set(text "/* made by embed.cmake */\n#include \"${HEADER}\"\n")
string(REPLACE " " ";" KINDS "${KINDS}")
foreach(kind ${KINDS})
    file(SHA256 ${SOURCE}/page.${kind} hash)
    base64_of(${hash} hash)
    file(READ ${SOURCE}/page.${kind} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND text "const unsigned char ${PREFIX}_${kind}[] = {${bytes}0};\n")
    string(APPEND text "const char ${PREFIX}_${kind}_hash[] = \"sha256-${hash}\";\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
