# millrace_add_plugin(NAME KIND kind SOURCES file... [LIBRARIES target...])
#
# Builds NAME.so, a plugin of the given kind (transport, storage, compression, coordination,
# operators), as target plugin_KIND_NAME. It sees <millrace/...> and its own folder, nothing else, and
# exports its descriptor alone. MILLRACE_VERSION is the version of the SDK, in quotes. Installing puts it into
# lib/millrace/plugins/KIND of the prefix, component `runtime`. Variables that change this:
#
#   MILLRACE_PLUGIN_OUTPUT_DIRECTORY  where it is built, as KIND/NAME.so; plugins/ of the build folder
#   MILLRACE_PLUGIN_INSTALL           OFF: it is not installed
#   MILLRACE_PLUGIN_COMPONENT         the component instead of `runtime`
#   MILLRACE_SANITIZE                 ON: the compiler's flags name sanitizers
function(millrace_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "KIND" "SOURCES;LIBRARIES")
  if(NOT arg_KIND OR NOT arg_SOURCES)
    message(FATAL_ERROR "millrace_add_plugin(${name}): KIND and SOURCES are needed")
  endif()
  if(NOT MILLRACE_PLUGIN_OUTPUT_DIRECTORY)
    set(MILLRACE_PLUGIN_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/plugins")
  endif()
  set(exports "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.exports")
  set(target "plugin_${arg_KIND}_${name}")
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE millrace::sdk ${arg_LIBRARIES})
  target_compile_definitions(${target} PRIVATE MILLRACE_VERSION="${Millrace_VERSION}")
  if(COMMAND millrace_use_pch)
    millrace_use_pch(${target})
  endif()
  set_target_properties(${target} PROPERTIES
    PREFIX ""
    OUTPUT_NAME "${name}"
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS "${exports}"
    LIBRARY_OUTPUT_DIRECTORY "${MILLRACE_PLUGIN_OUTPUT_DIRECTORY}/${arg_KIND}")
  target_link_options(${target} PRIVATE "LINKER:--version-script=${exports}")
  if(NOT MILLRACE_SANITIZE)  # whose runtime is in the program that loads the plugin
    target_link_options(${target} PRIVATE LINKER:-z,defs)
  endif()
  if(NOT DEFINED MILLRACE_PLUGIN_INSTALL OR MILLRACE_PLUGIN_INSTALL)
    if(NOT MILLRACE_PLUGIN_COMPONENT)
      set(MILLRACE_PLUGIN_COMPONENT runtime)
    endif()
    install(TARGETS ${target} LIBRARY DESTINATION "lib/millrace/plugins/${arg_KIND}"
            COMPONENT ${MILLRACE_PLUGIN_COMPONENT})
  endif()
endfunction()
