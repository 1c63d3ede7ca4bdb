# Component `sdk`: all that a plugin's author needs, for find_package(Millrace).
#
#   include/millrace/        headers
#   lib/libmillrace_*.a      libraries
#   lib/cmake/Millrace/      the CMake package
#   share/millrace/template/ the plugins to start from; `millrace plugin new` copies one
#   share/millrace/examples/ operators and an entity, each in one short file
include(CMakePackageConfigHelpers)

set(package_folder lib/cmake/Millrace)

foreach(part sdk kafka kafka_json fields testing)
  set_target_properties(millrace_${part} PROPERTIES EXPORT_NAME ${part})
endforeach()
install(TARGETS millrace_sdk millrace_kafka millrace_kafka_json millrace_fields millrace_testing
  EXPORT MillraceTargets ARCHIVE DESTINATION lib COMPONENT sdk
  INCLUDES DESTINATION include)
install(EXPORT MillraceTargets NAMESPACE millrace:: DESTINATION ${package_folder} COMPONENT sdk)

install(DIRECTORY include/millrace kafka/include/millrace fields/include/millrace "${CMAKE_BINARY_DIR}/generated/millrace"
  DESTINATION include COMPONENT sdk
  FILES_MATCHING PATTERN "*.h")
install(DIRECTORY template examples DESTINATION share/millrace COMPONENT sdk)

configure_package_config_file(cmake/MillraceConfig.cmake.in
  "${CMAKE_CURRENT_BINARY_DIR}/MillraceConfig.cmake" INSTALL_DESTINATION ${package_folder})
# Before 1.0 a minor version may change anything.
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/MillraceConfigVersion.cmake"
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES
  "${CMAKE_CURRENT_BINARY_DIR}/MillraceConfig.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/MillraceConfigVersion.cmake"
  cmake/MillraceAddPlugin.cmake cmake/plugin.exports
  DESTINATION ${package_folder} COMPONENT sdk)
