# How Markdown becomes a man page and a page of HTML, by lowdown (Debian's package of that name).
#
#   include(packaging/doc/render.cmake)
#   millrace_render(NAME SECTION SOURCE.md [DEPENDS file-or-target...])
#
# for example
#
#   millrace_render(millrace-operating 7 doc/operating.md)
#
# makes man/man7/millrace-operating.7.gz and html/operating.html in the current build folder (the HTML is named after
# the source) and adds them to the lists MILLRACE_MAN_7 (_1, _5, _8) and MILLRACE_HTML of the caller's scope, which
# packaging/CMakeLists.txt installs. They are made by the target `manual`, which is part of `packaged` and not of `all`.
#
# What the Markdown looks like:
#
# * Its first line is `# Title`; there is no other `#`. The title is what `man -k` and the NAME section say. The title of
#   a command is `# millrace-topic(1): create, list and delete topics`.
# * Text between the title and the first `##` becomes the section DESCRIPTION of the man page; `##` are its sections,
#   `###` its subsections.
# * A link to another chapter is `[text](other.md#heading)`: in HTML it goes to other.html, in the man page the text is
#   all that remains. An id is its heading in lower case with `-` for blanks.
# * Lists of terms have the term in a line, an empty line, then `:   what it is` (PHP Markdown Extra). Tables are
#   GitHub's. Raw HTML is left out: write `\<` where no code span is.
# * Nothing is replaced by a typographer: `--all` and "quotes" stay.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(millrace_render_script "${CMAKE_CURRENT_LIST_FILE}")
  add_custom_target(manual)
  configure_file("${CMAKE_CURRENT_LIST_DIR}/millrace.css" html/millrace.css COPYONLY)

  # The date on the pages: that of the commit, where SOURCE_DATE_EPOCH says it, else none. Never today's.
  set(millrace_render_date "")
  if(DEFINED ENV{SOURCE_DATE_EPOCH})
    string(TIMESTAMP millrace_render_date "%Y-%m-%d" UTC)
  endif()

  function(millrace_render name section source)
    cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "DEPENDS")
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(GET source STEM LAST_ONLY stem)
    set(man "${CMAKE_CURRENT_BINARY_DIR}/man/man${section}/${name}.${section}.gz")
    set(html "${CMAKE_CURRENT_BINARY_DIR}/html/${stem}.html")
    add_custom_command(OUTPUT "${man}" "${html}"
      COMMAND "${CMAKE_COMMAND}" "-Dname=${name}" "-Dsection=${section}" "-Dsource=${source}" "-Dman=${man}"
              "-Dhtml=${html}" "-Ddate=${millrace_render_date}" "-Dversion=${PROJECT_VERSION}"
              -P "${millrace_render_script}"
      DEPENDS "${source}" "${millrace_render_script}" ${arg_DEPENDS}
      COMMENT "Rendering ${name}(${section})" VERBATIM)
    add_custom_target(manual_${name}.${section} DEPENDS "${man}" "${html}")
    add_dependencies(manual manual_${name}.${section})
    list(APPEND MILLRACE_MAN_${section} "${man}")
    list(APPEND MILLRACE_HTML "${html}")
    return(PROPAGATE MILLRACE_MAN_${section} MILLRACE_HTML)
  endfunction()
  return()
endif()

# --- As a script: renders one page ---

cmake_minimum_required(VERSION 3.25)
find_program(lowdown lowdown)
find_program(gzip gzip)
if(NOT lowdown OR NOT gzip)
  message(FATAL_ERROR "the manual is rendered by lowdown and gzip: apt-get install lowdown gzip")
endif()

file(READ "${source}" text)
string(REGEX MATCH "^# ([^\n]+)\n+" first "${text}")
if(first STREQUAL "")
  message(FATAL_ERROR "${source}:1: expected `# Title`")
endif()
set(title "${CMAKE_MATCH_1}")
string(LENGTH "${first}" first_length)
string(SUBSTRING "${text}" ${first_length} -1 body)
string(REGEX REPLACE "^[a-z._-]+\\([1-8]\\): " "" summary "${title}")

function(lowdown mode markdown output)
  file(WRITE "${output}.md" "${markdown}")
  execute_process(COMMAND "${lowdown}" -s "-t${mode}" --out-no-smarty ${ARGN} "${output}.md"
    OUTPUT_FILE "${output}" COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE "${output}.md")
endfunction()

# HTML. Links between the chapters are links between the pages.
cmake_path(GET html PARENT_PATH folder)
file(MAKE_DIRECTORY "${folder}")
string(REGEX REPLACE "(\\]\\([a-z_.-]+)\\.md([)#])" "\\1.html\\2" linked "# ${title}\n\n${body}")
string(REPLACE ";" "\\;" title "${title}") # else a list
lowdown(html "${linked}" "${html}" -M "title=${title}" -M css=millrace.css --parse-no-metadata)

# The man page.
cmake_path(GET man PARENT_PATH folder)
file(MAKE_DIRECTORY "${folder}")
cmake_path(REMOVE_EXTENSION man LAST_ONLY OUTPUT_VARIABLE page)
if(NOT body MATCHES "^## ")
  string(PREPEND body "## DESCRIPTION\n\n")
endif()
string(TOUPPER "${name}" heading)
lowdown(man "## NAME\n\n${name} - ${summary}\n\n${body}" "${page}" -M "title=${heading}" -M "section=${section}"
  -M "source=Millrace ${version}" -M "volume=Millrace" -M "date=${date}" -M shiftheadinglevelby=-1
  --parse-no-metadata --nroff-nolinks)
# What is typed stands out on a terminal too; lines are ragged; the last column of a table takes what the others leave.
file(READ "${page}" roff)
string(REPLACE "\\fC" "\\fB" roff "${roff}")
string(REGEX REPLACE "(\n\\.S[HS]\n[^\n]+\n)\\.LP\n" "\\1" roff "${roff}")
string(REGEX REPLACE "^([^\n]*\n\\.TH [^\n]*\n)" "\\1.if n .ad l\n" roff "${roff}")
string(REPLACE "T{\n" "T{\n.ad l\n" roff "${roff}")
string(REPLACE "tab(|) expand allbox;" "tab(|) allbox;" roff "${roff}")
string(REGEX REPLACE "(\nlb[ lcrb]*)\n([lcr ]+)\\.\n" "\\1x\n\\2x.\n" roff "${roff}")
file(WRITE "${page}" "${roff}")
execute_process(COMMAND "${gzip}" --best --no-name --force "${page}" COMMAND_ERROR_IS_FATAL ANY)
