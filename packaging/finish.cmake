# Run by cpack over the installed components, before it makes packages of them: what Debian and RPM
# ask of a package, but an installation under a prefix of one's own does not need.
cmake_policy(VERSION 3.24)
find_program(GZIP gzip REQUIRED)
file(GLOB components ${CPACK_TEMPORARY_DIRECTORY}/*)
foreach(component ${components})
    get_filename_component(name ${component} NAME)
    if(NOT name IN_LIST CPACK_COMPONENTS_ALL)
        continue()
    endif()
    string(TOUPPER ${name} NAME)

    # Libraries are where the loader looks: no path of our own.
    file(GLOB programs ${component}/usr/bin/* ${component}/usr/lib*/*.so* ${component}/usr/lib*/rmm-c/*.so
        ${component}/usr/lib/*/*.so* ${component}/usr/lib/*/rmm-c/*.so)
    foreach(program ${programs})
        if(NOT IS_SYMLINK ${program})
            file(RPATH_REMOVE FILE ${program})
        endif()
    endforeach()

    file(GLOB pages ${component}/usr/share/man/man*/*)
    set(compress ${pages})
    if(CPACK_GENERATOR STREQUAL "DEB")
        set(folder ${component}/usr/share/doc/${CPACK_DEBIAN_${NAME}_PACKAGE_NAME})
        file(COPY ${CPACK_RMM_PACKAGING_DIR}/debian/copyright DESTINATION ${folder})
        configure_file(${CPACK_RMM_PACKAGING_DIR}/debian/changelog ${folder}/changelog.Debian COPYONLY)
        list(APPEND compress ${folder}/changelog.Debian)
    endif()
    if(compress)
        # -n: no time of day in them
        execute_process(COMMAND ${GZIP} -9nf ${compress} COMMAND_ERROR_IS_FATAL ANY)
    endif()

    # Directories have modes of the umask: the same packages come from each, and /usr stays open to all.
    execute_process(COMMAND find ${component} -type d -exec chmod 755 {} + COMMAND_ERROR_IS_FATAL ANY)
endforeach()
