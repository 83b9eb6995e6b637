# Embeds the template of the HTML report: harness/report/page/page.html with its style and its scripts, in the order of
# their names, as one text in a source that is written at build time.
set(page_folder ${CMAKE_SOURCE_DIR}/harness/report/page)
set(page_source ${CMAKE_BINARY_DIR}/generated/page_template.cpp)
file(GLOB page_parts CONFIGURE_DEPENDS ${page_folder}/*)
add_custom_command(OUTPUT ${page_source}
  COMMAND ${CMAKE_COMMAND} -D FOLDER=${page_folder} -D FILE=${page_source}
          -P ${CMAKE_CURRENT_LIST_DIR}/WritePage.cmake
  DEPENDS ${page_parts} ${CMAKE_CURRENT_LIST_DIR}/WritePage.cmake
  COMMENT "")
target_sources(harness_report PRIVATE ${page_source})
