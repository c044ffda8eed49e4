# `cmake --install` and, in another project, find_package(polyhead) and polyhead::train (or a lower layer).
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY POLYHEAD_LIBRARIES)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/polyhead)
install(TARGETS ${libraries} EXPORT polyhead ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/polyhead DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT polyhead NAMESPACE polyhead:: FILE polyheadTargets.cmake DESTINATION ${config_dir})
configure_package_config_file(cmake/polyheadConfig.cmake.in polyheadConfig.cmake INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(polyheadConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/polyheadConfig.cmake ${PROJECT_BINARY_DIR}/polyheadConfigVersion.cmake
              cmake/Dependencies.cmake
        DESTINATION ${config_dir})
