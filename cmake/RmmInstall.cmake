# What installs, and how others find it: find_package(rmm-c), pkg-config rmm-c and rmm-sim. The
# installed tree can be moved: no path of the build or of the prefix is written into it, but for
# the prefix in the systemd units. Components: library, development, rmmfs, exporter, tools, and documentation,
# which takes what names none; a package is made of each (RmmPackages.cmake).
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rmm-c)
install(EXPORT rmm-c-targets NAMESPACE rmm-c:: DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(cmake/rmm-c-config.cmake.in rmm-c-config.cmake
    INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(rmm-c-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rmm-c-config.cmake
              ${PROJECT_BINARY_DIR}/rmm-c-config-version.cmake
        DESTINATION ${package_dir} COMPONENT development)
# find_package(rmm) of programs for RAPIDS RMM, where they name this folder (docs/compat.md).
install(FILES cmake/as-rmm/rmm-config.cmake cmake/as-rmm/rmm-config-version.cmake cmake/as-rmm/rmm-targets.cmake
        DESTINATION ${package_dir}/as-rmm COMPONENT development)

# From the folder of the .pc file to the prefix: as many steps up as it is deep.
file(RELATIVE_PATH RMM_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" RMM_PC_UP "${RMM_PC_UP}")
# A static library's users link what it is built on; a shared one brings that along.
set(RMM_PC_LIBS "-L\${libdir} -lrmm-c")
if(NOT BUILD_SHARED_LIBS)
    if(RMM_HAVE_CUDA)
        string(REPLACE CUDA:: "" runtime ${RMM_CUDART})
        string(APPEND RMM_PC_LIBS " -L${CUDAToolkit_LIBRARY_DIR} -l${runtime}")
    endif()
    string(APPEND RMM_PC_LIBS " -lpthread -ldl -lrt -lm -Wl,-z,nodelete")
endif()
configure_file(cmake/rmm-c.pc.in rmm-c.pc @ONLY)
configure_file(cmake/rmm-sim.pc.in rmm-sim.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rmm-c.pc ${PROJECT_BINARY_DIR}/rmm-sim.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

install(FILES CHANGELOG.md LICENSE README.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documentation)
foreach(program rmm-bench rmm-replay rmm-run rmm-timeline rmm-top) # a man page comes with its program; services have their own
    if(TARGET ${program})
        install(FILES docs/man/${program}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
    endif()
endforeach()

# Completion for shells, made of what the built programs say of their options.
set(completions "")
if(EXISTS /etc/debian_version AND CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(zsh_folder share/zsh/vendor-completions)
else()
    set(zsh_folder share/zsh/site-functions)
endif()
foreach(program rmm-bench rmm-replay rmm-run rmm-timeline rmm-top rmm-exporter rmmfs)
    if(NOT TARGET ${program} OR CMAKE_CROSSCOMPILING OR RMM_SANITIZE)
        continue()
    endif()
    foreach(shell bash zsh fish)
        set(output ${PROJECT_BINARY_DIR}/completion/${shell}/${program})
        add_custom_command(OUTPUT ${output}
            COMMAND ${PROJECT_SOURCE_DIR}/tools/common/completion.sh $<TARGET_FILE:${program}> ${shell} ${output}
            DEPENDS ${program} ${PROJECT_SOURCE_DIR}/tools/common/completion.sh VERBATIM)
        list(APPEND completions ${output})
    endforeach()
    set(component tools)
    if(program STREQUAL rmmfs)
        set(component rmmfs)
    elseif(program STREQUAL rmm-exporter)
        set(component exporter)
    endif()
    set(folder ${PROJECT_BINARY_DIR}/completion)
    install(FILES ${folder}/bash/${program} DESTINATION share/bash-completion/completions COMPONENT ${component})
    install(FILES ${folder}/zsh/${program} DESTINATION ${zsh_folder} RENAME _${program} COMPONENT ${component})
    install(FILES ${folder}/fish/${program} DESTINATION share/fish/vendor_completions.d
        RENAME ${program}.fish COMPONENT ${component})
endforeach()
add_custom_target(completions ALL DEPENDS ${completions})

include(cmake/RmmSbom.cmake)
include(cmake/RmmPackages.cmake)
