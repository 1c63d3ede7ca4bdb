# Completion of millraced for bash: as that of millrace, which stands beside this file.
# shellcheck shell=bash
# shellcheck source=packaging/completions/millrace.bash
source "${BASH_SOURCE[0]%/*}/millrace"
