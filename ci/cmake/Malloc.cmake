# The heap of the program: tcmalloc where there is one. A trial in the sim world is many small allocations of one
# thread, and exploration is a sixth faster than with the C library's heap. Sanitizers bring a heap of their own.
find_library(FIREDRILL_MALLOC NAMES libtcmalloc_minimal.so.4 tcmalloc_minimal DOC "tcmalloc_minimal, for the program")
mark_as_advanced(FIREDRILL_MALLOC)
if(FIREDRILL_MALLOC AND NOT FIREDRILL_SANITIZE)
  # Nothing refers to it by name, so the linker must be told that it is needed.
  target_link_libraries(firedrill PRIVATE -Wl,--push-state,--no-as-needed ${FIREDRILL_MALLOC} -Wl,--pop-state)
endif()
