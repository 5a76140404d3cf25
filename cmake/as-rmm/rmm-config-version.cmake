# Answers find_package(rmm VERSION) for each version of RMM whose interface is served: the version that is
# asked for is the one that is found. Without one it is the newest of the interface that RMM_COMPAT_ERA
# names, or that another find_package(rmm) of the project has taken.
set(first 0.15)
set(last_classic 26.04.00)
set(last 26.10.00)
set(end 26.11) # versions before it: 26.10 and its patches

set(era "${RMM_COMPAT_ERA}")
if(NOT era)
    get_property(era GLOBAL PROPERTY RMM_COMPAT_ERA)
endif()
set(PACKAGE_VERSION ${last})
if(era STREQUAL "classic")
    set(PACKAGE_VERSION ${last_classic})
elseif(NOT era AND (CMAKE_HIP_COMPILER OR TARGET hip::host OR CMAKE_CXX_COMPILER MATCHES "hipcc"))
    set(PACKAGE_VERSION 23.12.00) # hipMM's
endif()

if(PACKAGE_FIND_VERSION_RANGE) # the newest of the range that is served
    foreach(version ${last_classic} ${last})
        if(version VERSION_GREATER_EQUAL PACKAGE_FIND_VERSION_MIN AND (version VERSION_LESS PACKAGE_FIND_VERSION_MAX
            OR (version VERSION_EQUAL PACKAGE_FIND_VERSION_MAX AND PACKAGE_FIND_VERSION_RANGE_MAX STREQUAL "INCLUDE")))
            set(PACKAGE_VERSION_COMPATIBLE TRUE)
            set(PACKAGE_VERSION ${version})
        endif()
    endforeach()
    if(NOT PACKAGE_VERSION_COMPATIBLE AND PACKAGE_FIND_VERSION_MIN VERSION_GREATER_EQUAL first
       AND PACKAGE_FIND_VERSION_MIN VERSION_LESS end)
        set(PACKAGE_VERSION_COMPATIBLE TRUE)
        set(PACKAGE_VERSION ${PACKAGE_FIND_VERSION_MIN})
    endif()
elseif(PACKAGE_FIND_VERSION)
    if(PACKAGE_FIND_VERSION VERSION_LESS first OR PACKAGE_FIND_VERSION VERSION_GREATER_EQUAL end)
        set(PACKAGE_VERSION_UNSUITABLE TRUE)
    else()
        set(PACKAGE_VERSION_COMPATIBLE TRUE)
        set(PACKAGE_VERSION_EXACT TRUE)
        set(PACKAGE_VERSION ${PACKAGE_FIND_VERSION})
    endif()
endif()
