# rmm_defaults: compile settings of every target of ours, never exported.
add_library(rmm_defaults INTERFACE)
target_compile_features(rmm_defaults INTERFACE c_std_11)
target_compile_definitions(rmm_defaults INTERFACE _GNU_SOURCE $<$<BOOL:${RMM_HEAVY_CHECKS}>:RMM_HEAVY_CHECKS=1>)
target_compile_options(rmm_defaults INTERFACE $<$<COMPILE_LANGUAGE:C>:
    -Wall -Wextra -Wpedantic -Wshadow -Wvla -Wundef -Wstrict-prototypes -Wmissing-prototypes
    -Wpointer-arith -Wwrite-strings -Wcast-qual -Wimplicit-fallthrough -Wformat=2>
    $<$<AND:$<COMPILE_LANGUAGE:C>,$<BOOL:${RMM_WERROR}>>:-Werror>)
# What is installed names no path of the machine that built it, and two builds in different places
# are the same bytes. To debug it: gdb -ex 'set substitute-path /usr/src/rmm-c <clone>'.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
target_compile_options(rmm_defaults INTERFACE
    $<$<AND:$<COMPILE_LANGUAGE:C>,$<NOT:$<CONFIG:Debug>>>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}=/usr/src/rmm-c;-ffile-prefix-map=${CMAKE_BINARY_DIR}=/usr/src/rmm-c/build>
    $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<NOT:$<CONFIG:Debug>>>:-Xcompiler=-ffile-prefix-map=${PROJECT_SOURCE_DIR}=/usr/src/rmm-c;-Xcompiler=-ffile-prefix-map=${CMAKE_BINARY_DIR}=/usr/src/rmm-c/build>)
if(RMM_SANITIZE)
    target_compile_options(rmm_defaults INTERFACE
        $<$<COMPILE_LANGUAGE:C>:-fsanitize=${RMM_SANITIZE} -fno-omit-frame-pointer>)
    target_link_options(rmm_defaults INTERFACE -fsanitize=${RMM_SANITIZE})
    if(RMM_SANITIZE MATCHES "undefined")
        target_compile_options(rmm_defaults INTERFACE
            $<$<COMPILE_LANGUAGE:C>:-fno-sanitize-recover=undefined>)
    endif()
endif()

# Installed programs find the library beside them, wherever the tree is moved to.
if(NOT DEFINED CMAKE_INSTALL_RPATH)
    file(RELATIVE_PATH library_from_programs /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
    set(CMAKE_INSTALL_RPATH "\$ORIGIN/${library_from_programs};\$ORIGIN")
endif()

# rmm_test_program(PROGRAM [k=v ...])
# A cmocka program that knows the environment of its test and runs single cases:
# tests/harness/run.c and the program's own environment.c.
function(rmm_test_program program)
    set(environment "")
    foreach(variable ${ARGN})
        string(APPEND environment "\"${variable}\",")
    endforeach()
    string(MD5 hash "${environment}")
    set(object rmm_test_environment_${hash}) # of all programs with these variables
    if(NOT TARGET ${object})
        add_library(${object} OBJECT ${PROJECT_SOURCE_DIR}/tests/harness/environment.c)
        target_include_directories(${object} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
        target_link_libraries(${object} PRIVATE rmm_defaults)
        target_compile_definitions(${object} PRIVATE "RMM_TEST_ENVIRONMENT=${environment}")
    endif()
    target_sources(${program} PRIVATE $<TARGET_OBJECTS:rmm_test_runner> $<TARGET_OBJECTS:${object}>)
endfunction()

# rmm_add_test(NAME limiting LABEL unit SOURCES a.c ... [LIBS l ...] [TIMEOUT s] [ENV k=v ...])
# A cmocka program, run as <label>.<name> with the variables of ENV, which a run by hand has too. It
# links the whole library; one of the suite unit links only what LIBS names. RMM_TEST_THREADS names its
# cases that start threads (tests/harness/thread_cases.h).
function(rmm_add_test)
    cmake_parse_arguments(ARG "" "NAME;LABEL;TIMEOUT" "SOURCES;LIBS;ENV" ${ARGN})
    if(NOT ARG_TIMEOUT)
        set(ARG_TIMEOUT 150) # on a busy machine; an idle one takes some seconds
    endif()
    if(RMM_SANITIZE) # several times slower, and perhaps on a busy machine
        math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 4")
    endif()
    if(ARG_TIMEOUT GREATER 600) # a test that hangs must not cost the whole run
        set(ARG_TIMEOUT 600)
    endif()
    add_executable(test_${ARG_NAME} ${ARG_SOURCES})
    set(harness rmm_harness)
    if(ARG_LABEL STREQUAL "unit")
        set(harness rmm_harness_alone)
    endif()
    target_link_libraries(test_${ARG_NAME} PRIVATE rmm_defaults ${harness} ${ARG_LIBS})
    rmm_test_program(test_${ARG_NAME} ${ARG_ENV})
    add_test(NAME ${ARG_LABEL}.${ARG_NAME} COMMAND test_${ARG_NAME})
    set_tests_properties(${ARG_LABEL}.${ARG_NAME} PROPERTIES
        LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77
        ENVIRONMENT "${ARG_ENV}")
endfunction()
