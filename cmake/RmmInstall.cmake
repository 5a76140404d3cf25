# What installs, and how others find it: find_package(rmm-c) and pkg-config rmm-c.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rmm-c)
install(EXPORT rmm-c-targets NAMESPACE rmm-c:: DESTINATION ${package_dir})
configure_package_config_file(cmake/rmm-c-config.cmake.in rmm-c-config.cmake
    INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(rmm-c-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/rmm-c-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/rmm-c-config-version.cmake
        DESTINATION ${package_dir})
configure_file(cmake/rmm-c.pc.in rmm-c.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/rmm-c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
