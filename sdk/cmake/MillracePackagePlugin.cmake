# millrace_package_plugin(NAME KIND kind [CONTACT text] [SUMMARY text] [DESCRIPTION text] [EXAMPLE file])
#
# Makes the target `package`: millrace-plugin-NAME_VERSION_ARCHITECTURE.deb in the build folder, of the
# project's version. It has what the project installs: the plugin, as usr/lib/millrace/plugins/KIND/NAME.so, and
# EXAMPLE, a file for /etc/millrace/conf.d, as usr/share/doc/millrace-plugin-NAME/examples/NAME.toml. It depends
# on a Millrace that loads plugins of this SDK's ABI, and on the packages of the libraries that the plugin
# links. Once for a project, after millrace_add_plugin(); CPACK_ variables that are set before count.
function(millrace_package_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "KIND;CONTACT;SUMMARY;DESCRIPTION;EXAMPLE" "")
  if(NOT arg_KIND)
    message(FATAL_ERROR "millrace_package_plugin(${name}): KIND is needed")
  endif()
  string(REPLACE "_" "-" package "millrace-plugin-${name}")
  foreach(default
      "CONTACT=${name}'s author <author@example.org>"
      "SUMMARY=${name}, a plugin of kind ${arg_KIND} for Millrace"
      "DESCRIPTION=Millrace loads it from its folder of plugins.")
    string(REGEX MATCH "^([A-Z]+)=(.*)$" matched "${default}")
    if(NOT arg_${CMAKE_MATCH_1})
      set(arg_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
    endif()
  endforeach()
  if(arg_EXAMPLE)
    install(FILES "${arg_EXAMPLE}" DESTINATION "share/doc/${package}/examples" RENAME "${name}.toml"
            COMPONENT runtime)
  endif()

  set(CPACK_GENERATOR DEB)
  set(CPACK_SOURCE_GENERATOR "")
  set(CPACK_PACKAGE_NAME "${package}")
  set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
  set(CPACK_PACKAGE_CONTACT "${arg_CONTACT}")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${arg_SUMMARY}")
  set(CPACK_PACKAGE_DESCRIPTION "${arg_DESCRIPTION}")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION net)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS
    "millrace-plugin-abi-${Millrace_ABI_MAJOR} (>= ${Millrace_ABI_MAJOR}.${Millrace_ABI_MINOR})")
  find_program(dpkg_shlibdeps dpkg-shlibdeps NO_CACHE)
  if(dpkg_shlibdeps)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  else()
    message(STATUS "no dpkg-shlibdeps (package dpkg-dev): the package of ${name} will not depend on its libraries")
  endif()
  include(CPack)
endfunction()
