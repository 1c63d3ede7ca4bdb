# Component `sdk`: all that a plugin's author needs, for find_package(Millrace).
#
#   include/millrace/        headers
#   lib/libmillrace_*.a      libraries
#   lib/cmake/Millrace/      the CMake package
#   share/millrace/template/ the plugins to start from; `millrace plugin new` copies one
#   share/millrace/examples/ operators and an entity, each in one short file
include(CMakePackageConfigHelpers)

set(package_folder lib/cmake/Millrace)

foreach(part sdk kafka kafka_json fields filelog testing)
  set_target_properties(millrace_${part} PROPERTIES EXPORT_NAME ${part})
endforeach()
install(TARGETS millrace_sdk millrace_kafka millrace_kafka_json millrace_fields millrace_filelog
                millrace_testing
  EXPORT MillraceTargets ARCHIVE DESTINATION lib COMPONENT sdk
  INCLUDES DESTINATION include)
install(EXPORT MillraceTargets NAMESPACE millrace:: DESTINATION ${package_folder} COMPONENT sdk)

install(DIRECTORY include/millrace kafka/include/millrace fields/include/millrace
                  filelog/include/millrace "${CMAKE_BINARY_DIR}/generated/millrace"
  DESTINATION include COMPONENT sdk
  FILES_MATCHING PATTERN "*.h")
install(DIRECTORY template examples DESTINATION share/millrace COMPONENT sdk)

# What a plugin's package says that it needs.
file(STRINGS include/millrace/abi.h abi_lines REGEX "^#define MILLRACE_ABI_(MAJOR|MINOR) [0-9]+$")
foreach(line ${abi_lines})
  string(REGEX MATCH "MILLRACE_ABI_(MAJOR|MINOR) ([0-9]+)$" matched "${line}")
  set(Millrace_ABI_${CMAKE_MATCH_1} ${CMAKE_MATCH_2} CACHE INTERNAL "of the ABI of plugins")
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS include/millrace/abi.h)
configure_package_config_file(cmake/MillraceConfig.cmake.in
  "${CMAKE_CURRENT_BINARY_DIR}/MillraceConfig.cmake" INSTALL_DESTINATION ${package_folder})
# Before 1.0 a minor version may change anything.
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/MillraceConfigVersion.cmake"
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES
  "${CMAKE_CURRENT_BINARY_DIR}/MillraceConfig.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/MillraceConfigVersion.cmake"
  cmake/MillraceAddPlugin.cmake cmake/MillracePackagePlugin.cmake cmake/plugin.exports
  DESTINATION ${package_folder} COMPONENT sdk)
