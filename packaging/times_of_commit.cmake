# Run by CPack on what it has staged: each file is as old as SOURCE_DATE_EPOCH says, where that is set. A checkout gives its
# files the time it was made; that of an .rpm would otherwise be the older of the two.
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(
    COMMAND find "${CPACK_TEMPORARY_DIRECTORY}" -exec touch --no-dereference "--date=@$ENV{SOURCE_DATE_EPOCH}" {} +
    COMMAND_ERROR_IS_FATAL ANY)
endif()
