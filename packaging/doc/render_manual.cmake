# As a script: asks the tool for the manual pages that are made from its declarations, and renders each by render.cmake.
# What packaging/man/PAGE.md adds goes before SEE ALSO.
cmake_minimum_required(VERSION 3.25)
set(folder "${output}")
file(REMOVE_RECURSE "${folder}/man" "${folder}/html" "${folder}/markdown")

execute_process(COMMAND "${tool}" manual OUTPUT_VARIABLE pages COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" pages "${pages}")
foreach(page ${pages})
  string(REGEX MATCH "^([^ ]+) ([1-8])$" page "${page}")
  set(name "${CMAKE_MATCH_1}")
  set(section "${CMAKE_MATCH_2}")
  set(markdown "${folder}/markdown/${name}.md")
  execute_process(COMMAND "${tool}" manual "${name}" OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  if(EXISTS "${additions}/${name}.md")
    file(READ "${additions}/${name}.md" more)
    string(REPLACE "## SEE ALSO\n" "${more}\n## SEE ALSO\n" text "${text}")
  endif()
  file(WRITE "${markdown}" "${text}")
  execute_process(COMMAND "${CMAKE_COMMAND}" "-Dname=${name}" "-Dsection=${section}" "-Dsource=${markdown}"
    "-Dman=${folder}/man/man${section}/${name}.${section}.gz" "-Dhtml=${folder}/html/${name}.html" "-Ddate=${date}"
    "-Dversion=${version}" -P "${CMAKE_CURRENT_LIST_DIR}/render.cmake" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
