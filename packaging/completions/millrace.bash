# Completion of millrace and millraced for bash. What can be typed says the program itself: `millrace complete`.
# shellcheck shell=bash

# The line up to the cursor in words as the program will see them: bash cuts them at : and = too. Into `typed`.
_millrace_words() {
  local line=${COMP_LINE:0:COMP_POINT} at word
  typed=()
  for ((at = 0; at <= COMP_CWORD; at++)); do
    word=${COMP_WORDS[at]}
    if [[ $at -gt 0 && $line != [[:space:]]* && -n $line ]]; then
      typed[${#typed[@]} - 1]+=$word
    else
      line=${line#"${line%%[![:space:]]*}"}
      typed+=("$word")
    fi
    line=${line#"$word"}
  done
  # The one at the cursor may go on behind it.
  typed[${#typed[@]} - 1]=${typed[-1]%"${line}"}
}

_millrace() {
  local -a typed found plain
  local tool=$1 word names value
  _millrace_words
  word=${typed[-1]}
  # Quotes are the shell's.
  plain=("${typed[@]//[\"\'\\]/}")
  [[ $tool == */* ]] && tool=${tool%/*}/millrace || tool=millrace
  tool=${tool/#\~/$HOME}
  mapfile -t found < <("$tool" complete -- "${1##*/}" "${plain[@]:1}" 2>/dev/null)
  names=${found[0]:-none}

  # What bash takes as words of their own stays on the line.
  local cut=
  if [[ $word == *[:=]* ]]; then
    cut=${word%"${word##*[:=]}"}
    [[ $COMP_WORDBREAKS == *:* ]] || cut=${cut%"${cut##*=}"}
  fi
  COMPREPLY=()
  for value in "${found[@]:1}"; do
    value=${value%%$'\t'*}
    [[ $word == [\"\']* ]] || printf -v value %q "$value"
    COMPREPLY+=("${value#"$cut"}")
  done
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
  case $names in
    files | folders)
      compopt -o filenames
      local -a on_disk
      # As bash calls them.
      local -A actions=([files]=file [folders]=directory)
      mapfile -t on_disk < <(compgen -A "${actions[$names]}" -- "$word")
      COMPREPLY+=("${on_disk[@]}")
      ;;
  esac
}
complete -F _millrace millrace millraced
