# find_package(rmm) of a program that was written for RAPIDS RMM: its targets, over this library.
# Point rmm_DIR, rmm_ROOT or CMAKE_PREFIX_PATH at this folder; nothing finds it by itself, so that an RMM beside it
# is not hidden.
#
# A version before 26.06 is the interface with device_memory_resource (rmm-c::compat-classic), a newer
# one or none is that of 26.06 to 26.10 (rmm-c::compat); RMM_COMPAT_ERA=classic or new decides otherwise.
set(RMM_VERSION "${${CMAKE_FIND_PACKAGE_NAME}_VERSION}")
if(RMM_VERSION MATCHES "^([0-9]+)[.]([0-9]+)")
    set(RMM_VERSION_MAJOR "${CMAKE_MATCH_1}")
    set(RMM_VERSION_MINOR "${CMAKE_MATCH_2}")
endif()

if(NOT TARGET rmm-c::compat)
    set(rmm_c_targets_are_global "${CMAKE_FIND_PACKAGE_TARGETS_GLOBAL}")
    set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL TRUE) # for all folders of the project, as RMM's are
    include(CMakeFindDependencyMacro)
    find_dependency(rmm-c CONFIG PATHS "${CMAKE_CURRENT_LIST_DIR}/.." NO_DEFAULT_PATH)
    set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL "${rmm_c_targets_are_global}")
    unset(rmm_c_targets_are_global)
endif()
include("${CMAKE_CURRENT_LIST_DIR}/rmm-targets.cmake")
