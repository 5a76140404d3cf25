# What is built from what, as SPDX 2.3: rmm-c.spdx.json, which installs with the documentation. Its time is
# that of SOURCE_DATE_EPOCH where that is set. Versions are those that this configuration found.
set(RMM_SBOM_PACKAGES "")
set(RMM_SBOM_RELATIONS "")

# rmm_sbom_add(NAME VERSION LICENCE STATIC_LINK|DYNAMIC_LINK)
macro(rmm_sbom_add name version licence link)
    string(APPEND RMM_SBOM_PACKAGES ",
    {\"name\": \"${name}\", \"SPDXID\": \"SPDXRef-${name}\", \"versionInfo\": \"${version}\",
     \"supplier\": \"NOASSERTION\", \"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false,
     \"licenseConcluded\": \"NOASSERTION\", \"licenseDeclared\": \"${licence}\", \"copyrightText\": \"NOASSERTION\"}")
    string(APPEND RMM_SBOM_RELATIONS ",
    {\"spdxElementId\": \"SPDXRef-rmm-c\", \"relationshipType\": \"${link}\", \"relatedSpdxElement\": \"SPDXRef-${name}\"}")
endmacro()

# rmm_sbom_version(RESULT HEADERS MACRO...): the numbers of these macros in the headers that are there,
# joined by dots.
function(rmm_sbom_version result headers)
    set(numbers "")
    set(lines "")
    foreach(macro ${ARGN})
        foreach(header ${headers})
            if(NOT lines AND EXISTS ${header})
                file(STRINGS ${header} lines REGEX "^#[ \t]*define[ \t]+${macro}[ \t]")
            endif()
        endforeach()
        string(REGEX REPLACE ".*${macro}[ \t]+\"?([0-9.]+).*" "\\1" number "${lines}")
        list(APPEND numbers ${number})
        set(lines "")
    endforeach()
    list(JOIN numbers . version)
    if(NOT version MATCHES "^[0-9]")
        message(FATAL_ERROR "${headers}: no version in ${ARGN}")
    endif()
    set(${result} ${version} PARENT_SCOPE)
endfunction()

if(RMM_HAVE_CUDA)
    set(link DYNAMIC_LINK)
    if(RMM_CUDART STREQUAL "CUDA::cudart_static")
        set(link STATIC_LINK)
    endif()
    string(REGEX REPLACE "CUDA::(.*)" "\\1" runtime ${RMM_CUDART})
    string(REPLACE _ - runtime ${runtime}) # no identifier of SPDX has a _
    rmm_sbom_add(${runtime} ${CUDAToolkit_VERSION} NOASSERTION ${link})
endif()
if(RMM_BUILD_TOOLS)
    rmm_sbom_version(version ${RMM_JANSSON_INCLUDE_DIR}/jansson.h JANSSON_VERSION)
    rmm_sbom_add(jansson ${version} MIT DYNAMIC_LINK)
    rmm_sbom_version(version ${RMM_ZLIB_INCLUDE_DIR}/zlib.h ZLIB_VERSION)
    rmm_sbom_add(zlib ${version} Zlib DYNAMIC_LINK)
endif()
if(TARGET rmm-top)
    rmm_sbom_version(version ${RMM_CURSES_INCLUDE_DIR}/curses.h NCURSES_VERSION)
    rmm_sbom_add(ncurses ${version} X11-distribute-modifications-variant DYNAMIC_LINK)
endif()
if(TARGET rmm_curl)
    rmm_sbom_add(libcurl ${RMM_CURL_VERSION} curl DYNAMIC_LINK)
endif()
if(TARGET rmm-exporter)
    # MHD_VERSION is a hexadecimal number; pkg-config's file has the text, and the header names it in a comment
    file(STRINGS ${RMM_MICROHTTPD_INCLUDE_DIR}/microhttpd.h lines REGEX "^#define MHD_VERSION 0x")
    string(REGEX REPLACE ".*0x(..)(..)(..).*" "\\1;\\2;\\3" digits "${lines}")
    list(TRANSFORM digits REPLACE "^0" "")
    list(JOIN digits . version)
    rmm_sbom_add(libmicrohttpd ${version} LGPL-2.1-or-later DYNAMIC_LINK)
endif()
if(TARGET rmmfs)
    # libfuse 3.17 moved its version to a header of its own
    rmm_sbom_version(version "${RMM_FUSE_INCLUDE_DIR}/fuse_common.h;${RMM_FUSE_INCLUDE_DIR}/libfuse_config.h"
        FUSE_MAJOR_VERSION FUSE_MINOR_VERSION)
    rmm_sbom_add(libfuse ${version} LGPL-2.1-only DYNAMIC_LINK)
endif()

string(TIMESTAMP RMM_SBOM_CREATED "%Y-%m-%dT%H:%M:%SZ" UTC)
string(SHA256 RMM_SBOM_ID "${RMM_SBOM_CREATED}${RMM_SBOM_PACKAGES}")
configure_file(packaging/sbom.spdx.json.in rmm-c.spdx.json @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rmm-c.spdx.json DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documentation)
