# Looks for what is optional and decides RMM_HAVE_CUDA, RMM_HAVE_CUPTI and RMM_HAVE_FUSE.
# No pkg-config: CMAKE_PREFIX_PATH alone can point at carried copies.

find_package(Threads REQUIRED)

# The library is C; its headers for C++ are tested. Here, because CMake wants a language enabled
# above everything that uses it.
if(RMM_BUILD_TESTS)
    include(CheckLanguage)
    check_language(CXX)
    if(NOT CMAKE_CXX_COMPILER)
        message(FATAL_ERROR "The tests need a C++ compiler: install g++, or set RMM_BUILD_TESTS=OFF.")
    endif()
    enable_language(CXX)
endif()

# rmm_decide(RESULT REQUEST FOUND WHAT HINT): AUTO takes what is there and says so.
function(rmm_decide result request found what hint)
    if(request STREQUAL "OFF")
        set(have FALSE)
        message(STATUS "${what}: switched off")
    elseif(found)
        set(have TRUE)
        message(STATUS "${what}: yes")
    elseif(request STREQUAL "ON")
        message(FATAL_ERROR "${what}: asked for, but not found. ${hint}")
    else()
        set(have FALSE)
        message(STATUS "${what}: no. ${hint}")
    endif()
    set(${result} ${have} PARENT_SCOPE)
endfunction()

if(NOT RMM_CUDA STREQUAL "OFF")
    include(cmake/RmmCuda.cmake)
endif()
rmm_decide(RMM_HAVE_CUDA "${RMM_CUDA}" "${CUDAToolkit_FOUND}" "Real GPUs"
    "Without a CUDA toolkit (12.0 or newer) only the simulated GPU is built; set CUDAToolkit_ROOT if it is somewhere else.")

find_path(RMM_CUPTI_INCLUDE_DIR cupti.h
    HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include)
set(cupti_found FALSE)
if(RMM_HAVE_CUDA AND RMM_CUPTI_INCLUDE_DIR)
    set(cupti_found TRUE)
endif()
rmm_decide(RMM_HAVE_CUPTI "${RMM_BUILD_INJECT}" "${cupti_found}" "CUPTI in librmm-inject"
    "Without CUPTI headers librmm-inject diagnoses the simulated GPU only.")

find_path(RMM_NVTX_INCLUDE_DIR nvtx3/nvToolsExt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
if(RMM_NVTX AND NOT RMM_NVTX_INCLUDE_DIR)
    message(FATAL_ERROR "RMM_NVTX: asked for, but nvtx3/nvToolsExt.h was not found. It comes with the CUDA toolkit; set RMM_NVTX_INCLUDE_DIR to the folder above nvtx3 if it is somewhere else.")
endif()

find_path(RMM_FUSE_INCLUDE_DIR fuse_lowlevel.h PATH_SUFFIXES fuse3)
find_library(RMM_FUSE_LIBRARY NAMES fuse3 libfuse3.so.3)
set(fuse_found FALSE)
if(RMM_FUSE_INCLUDE_DIR AND RMM_FUSE_LIBRARY)
    set(fuse_found TRUE)
endif()
rmm_decide(RMM_HAVE_FUSE "${RMM_BUILD_FUSEFS}" "${fuse_found}" "rmmfs (libfuse 3)"
    "Install libfuse3-dev (Debian, Ubuntu).")
if(RMM_HAVE_FUSE)
    add_library(rmm_fuse3 INTERFACE)
    target_include_directories(rmm_fuse3 SYSTEM INTERFACE ${RMM_FUSE_INCLUDE_DIR})
    target_link_libraries(rmm_fuse3 INTERFACE ${RMM_FUSE_LIBRARY} Threads::Threads)
endif()
