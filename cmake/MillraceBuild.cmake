# Compiler, warnings, sanitizers and output folders of every target in this tree.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# Everything runs in place: programs in bin/, plugins in lib/millrace/plugins/KIND/NAME.so,
# which is where the daemon looks relative to itself.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(MILLRACE_PLUGIN_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib/millrace/plugins")

if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "the product is built with clang 19; use a preset: cmake --preset release")
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                    -Wimplicit-fallthrough -Werror)
# Designated initialisers may leave out members that have a default.
add_compile_options(-Wno-missing-field-initializers -Wno-missing-designated-field-initializers)
add_compile_options(-gz "$<$<CONFIG:Debug>:-gline-tables-only>")
add_link_options(-fuse-ld=lld -Wl,--as-needed)

if(MILLRACE_SANITIZE)
  add_compile_options(-fsanitize=${MILLRACE_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MILLRACE_SANITIZE})
endif()

if(MILLRACE_FUZZ) # what steers the drivers of tests/fuzz
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_program(MILLRACE_CCACHE ccache)
if(MILLRACE_CCACHE)
  # A precompiled header carries no time stamp (see below), so ccache may trust its content.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
      "${MILLRACE_CCACHE}")
endif()
set(CMAKE_PCH_INSTANTIATE_TEMPLATES ON)
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")

find_package(Threads REQUIRED)

string(REPLACE "-g " "-gline-tables-only " CMAKE_CXX_FLAGS_RELWITHDEBINFO
       "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
# The same bytes wherever the tree is.
string(APPEND CMAKE_CXX_FLAGS_RELWITHDEBINFO " -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.")

# The standard headers that nearly every file needs, parsed once. Only speed depends on it: every file
# includes what it uses, and `-DMILLRACE_PCH=OFF` builds without.
option(MILLRACE_PCH "Use precompiled headers" ON)
function(millrace_use_pch target)
  if(NOT MILLRACE_PCH)
    return()
  endif()
  # A header precompiled with -fPIC does not fit a program's -fPIE.
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${target} REUSE_FROM millrace_sdk)
endfunction()
