# Run by CPack on what it is about to pack: the SDK's archives without what a debugger reads, which is most of them.
file(GLOB_RECURSE archives "${CPACK_TEMPORARY_DIRECTORY}/*.a")
foreach(archive ${archives})
  execute_process(COMMAND strip --strip-debug --enable-deterministic-archives --remove-section=.llvm_addrsig "${archive}"
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
