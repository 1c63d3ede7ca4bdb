# millrace_add_plugin(NAME KIND kind SOURCES file... [LIBRARIES target...])
#
# Builds NAME.so, a plugin of the given kind (transport, storage, compression, coordination,
# operators), into lib/millrace/plugins/KIND/. It sees <millrace/...> and its own folder, nothing
# else, and exports its descriptor alone.
function(millrace_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "KIND" "SOURCES;LIBRARIES")
  if(NOT arg_KIND OR NOT arg_SOURCES)
    message(FATAL_ERROR "millrace_add_plugin(${name}): KIND and SOURCES are needed")
  endif()
  set(target "plugin_${arg_KIND}_${name}")
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE millrace::sdk ${arg_LIBRARIES})
  if(COMMAND millrace_use_pch)
    millrace_use_pch(${target})
  endif()
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL -Wl,-z,defs)
  if(MILLRACE_SANITIZE)
    # The sanitizer's runtime is in the program that loads the plugin.
    target_link_options(${target} PRIVATE -Wl,-z,undefs)
  endif()
  set_target_properties(${target} PROPERTIES
    PREFIX ""
    OUTPUT_NAME "${name}"
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    LIBRARY_OUTPUT_DIRECTORY "${MILLRACE_PLUGIN_OUTPUT_DIRECTORY}/${arg_KIND}")
endfunction()
