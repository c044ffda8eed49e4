# The page of `polyhead report`, with its style sheet, its scripts and d3 in it, as a header of bytes.
find_file(POLYHEAD_D3_FILE d3.min.js PATHS /usr/share/nodejs/d3/dist NO_DEFAULT_PATH REQUIRED)

set(folder ${PROJECT_SOURCE_DIR}/src/experiment/report)
set(scripts figures.js charts.js experiment.js heads.js attention.js page.js)
set(sources page.html.in style.css d3-license.txt ${scripts})
list(TRANSFORM sources PREPEND ${folder}/)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources} ${POLYHEAD_D3_FILE})

file(READ ${folder}/style.css POLYHEAD_REPORT_STYLE)
file(READ ${folder}/d3-license.txt POLYHEAD_D3_LICENSE)
file(READ ${POLYHEAD_D3_FILE} POLYHEAD_D3)
set(POLYHEAD_REPORT_SCRIPT "")
foreach(script ${scripts})
  file(READ ${folder}/${script} text)
  string(APPEND POLYHEAD_REPORT_SCRIPT "${text}")
endforeach()
set(generated ${PROJECT_BINARY_DIR}/generated)
configure_file(${folder}/page.html.in ${generated}/page.html @ONLY)

# Bytes: string literals of this length are not portable.
file(READ ${generated}/page.html bytes HEX)
string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
file(CONFIGURE OUTPUT ${generated}/page_template.h @ONLY CONTENT
     "#pragma once\n\nnamespace polyhead::experiment {\ninline constexpr char page_template[] = {@bytes@};\n}\n")
target_include_directories(polyhead_experiment PRIVATE ${generated})
