# Completion of millraced for fish: as that of millrace, which stands beside this file.
source (status dirname)/millrace.fish
