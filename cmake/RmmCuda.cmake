# The CUDA toolkit: its headers, its CUDA runtime RMM_CUDART, and nvcc for what has kernels.
#
# FindCUDAToolkit looks for each part anywhere: it takes another toolkit where CUDAToolkit_ROOT names
# none that it knows, and another's libraries where this one lacks them. Headers of one version and a
# runtime of another may link, and then pass wrong arguments. So both are checked here.

# rmm_library_is_beside(RESULT TARGET): whether the library of TARGET is in the folder of libcudart.so.
function(rmm_library_is_beside result target)
    set(${result} FALSE PARENT_SCOPE)
    if(NOT TARGET ${target})
        return()
    endif()
    get_target_property(file ${target} IMPORTED_LOCATION)
    get_filename_component(folder ${file} DIRECTORY)
    get_filename_component(folder ${folder} REALPATH)
    get_filename_component(link_folder ${CUDAToolkit_LIBRARY_DIR} REALPATH)
    get_filename_component(library ${CUDA_CUDART} REALPATH) # conda's link is in another folder
    get_filename_component(library_folder ${library} DIRECTORY)
    if(folder STREQUAL link_folder OR folder STREQUAL library_folder)
        set(${result} TRUE PARENT_SCOPE)
    endif()
endfunction()

# What the caller names is taken, or it is an error.
if(NOT CUDAToolkit_ROOT AND DEFINED ENV{CUDAToolkit_ROOT}) # of which it takes an nvcc only
    set(CUDAToolkit_ROOT "$ENV{CUDAToolkit_ROOT}")
endif()
set(root "${CUDAToolkit_ROOT}")
if(root AND EXISTS "${root}/version.txt" AND NOT EXISTS "${root}/bin/nvcc")
    # newer CMake would prefer the toolkit of an nvcc that is in PATH, or was found the last time
    set(CUDAToolkit_SENTINEL_FILE "${root}/version.txt")
    set(CMAKE_CUDA_COMPILER "")
    find_package(CUDAToolkit 12.0 QUIET)
    unset(CMAKE_CUDA_COMPILER)
else()
    find_package(CUDAToolkit 12.0 QUIET)
endif()
if(root AND NOT CMAKE_CUDA_COMPILER_LOADED AND NOT EXISTS "${root}/bin/nvcc" AND NOT EXISTS "${root}/nvcc")
    get_filename_component(real_root "${root}" REALPATH)
    set(found "")
    if(CUDAToolkit_FOUND)
        list(GET CUDAToolkit_INCLUDE_DIRS 0 found)
    endif()
    get_filename_component(found "${found}" REALPATH)
    string(FIND "${found}/" "${real_root}/" at)
    if(NOT CUDAToolkit_FOUND OR NOT at EQUAL 0)
        message(FATAL_ERROR "CUDAToolkit_ROOT: ${root} is no CUDA toolkit: it has neither bin/nvcc nor version.txt. tests/cuda/toolkit makes one of NVIDIA's wheels on PyPI.")
    endif()
endif()
if(CUDAToolkit_FOUND)
    get_filename_component(library ${CUDA_CUDART} REALPATH)
    if(library MATCHES "[.]so[.]([0-9]+([.][0-9]+)?)")
        set(runtime_version ${CMAKE_MATCH_1})
        string(FIND "${CUDAToolkit_VERSION}." "${runtime_version}." at)
        if(NOT at EQUAL 0)
            message(FATAL_ERROR "The CUDA toolkit's headers are of ${CUDAToolkit_VERSION} (${CUDAToolkit_INCLUDE_DIRS}), its runtime is of ${runtime_version} (${library}): set CUDAToolkit_ROOT to a folder that has both, or RMM_CUDA=OFF.")
        endif()
    endif()
    # In the library, so that each library of a process may have its own; the wheels before 12.9
    # have only the shared one.
    set(RMM_CUDART CUDA::cudart)
    rmm_library_is_beside(has_static CUDA::cudart_static)
    if(has_static)
        set(RMM_CUDART CUDA::cudart_static)
    endif()
    message(STATUS "CUDA runtime: ${CUDAToolkit_VERSION}, ${RMM_CUDART}")
endif()

# rmm_enable_nvcc(): enables CUDA in this folder if there is an nvcc that compiles with the toolkit's
# headers; CMAKE_CUDA_COMPILER says so. A macro, because a language cannot be enabled in a function.
macro(rmm_enable_nvcc)
    include(CheckLanguage)
    if(NOT CMAKE_CUDA_COMPILER AND CUDAToolkit_NVCC_EXECUTABLE)
        set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
    endif()
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
        # machine code for A100 and H100, H200; other GPUs make theirs from the PTX
        if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
            set(CMAKE_CUDA_ARCHITECTURES 75-virtual 80-real 90-real)
        endif()
        enable_language(CUDA)
        if(NOT CMAKE_CUDA_COMPILER_VERSION VERSION_EQUAL CUDAToolkit_VERSION)
            rmm_adopt_nvcc()
        endif()
    endif()
endmacro()

# An nvcc of another toolkit, because NVIDIA's wheels of CUDA 12 have none: it gets the headers of this
# one, but for crt/, which belongs to the compiler. In a folder of links, because its own headers come
# before those of -isystem, and gcc ignores a -I of the same folder.
macro(rmm_adopt_nvcc)
    set(nvcc_headers ${PROJECT_BINARY_DIR}/nvcc_headers)
    file(REMOVE_RECURSE ${nvcc_headers})
    file(MAKE_DIRECTORY ${nvcc_headers})
    list(GET CUDAToolkit_INCLUDE_DIRS 0 toolkit_headers)
    file(GLOB headers RELATIVE ${toolkit_headers} ${toolkit_headers}/*)
    foreach(header ${headers})
        file(CREATE_LINK ${toolkit_headers}/${header} ${nvcc_headers}/${header} SYMBOLIC)
    endforeach()
    list(GET CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES 0 compiler_headers)
    file(CREATE_LINK ${compiler_headers}/crt ${nvcc_headers}/crt SYMBOLIC)
    set(CMAKE_CUDA_FLAGS "-I${nvcc_headers} ${CMAKE_CUDA_FLAGS}")
    include(CheckSourceCompiles)
    set(CMAKE_REQUIRED_LIBRARIES ${RMM_CUDART})
    check_source_compiles(CUDA "__global__ void set(int *to) { *to = 1; } int main() { set<<<1, 1>>>(nullptr); }"
        RMM_NVCC_TAKES_HEADERS)
    unset(CMAKE_REQUIRED_LIBRARIES)
    if(NOT RMM_NVCC_TAKES_HEADERS)
        message(STATUS "Kernels: no. nvcc ${CMAKE_CUDA_COMPILER_VERSION} cannot use the headers of CUDA ${CUDAToolkit_VERSION}")
        set(CMAKE_CUDA_COMPILER "")
    endif()
endmacro()
