# cmake -D FOLDER=harness/report/page -D FILE=page_template.cpp -P WritePage.cmake
file(READ ${FOLDER}/page.html page)
file(READ ${FOLDER}/style.css style)
file(GLOB scripts ${FOLDER}/*.js)
list(SORT scripts)
set(script "")
foreach(one IN LISTS scripts)
  file(READ ${one} text)
  string(APPEND script "${text}")
endforeach()
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
file(WRITE ${FILE} "#include \"harness/report/page_template.h\"\n\n"
  "std::string_view firedrill::page_template() { return R\"PAGE(${page})PAGE\"; }\n")
