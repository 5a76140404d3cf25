# Writes a C file with the bytes of the page's files, each ended by a NUL.
# cmake -D SOURCE=<folder> -D OUTPUT=<file> -P embed.cmake
set(text "/* made by embed.cmake */\n#include \"timeline/page_files.h\"\n")
foreach(kind html css js)
    file(READ ${SOURCE}/page.${kind} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND text "const unsigned char page_${kind}[] = {${bytes}0};\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
