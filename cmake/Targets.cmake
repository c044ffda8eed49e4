# Compiler settings shared by the library, the program and the tests.
add_library(polyhead_flags INTERFACE)
target_compile_options(polyhead_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow
  $<$<BOOL:${POLYHEAD_WERROR}>:-Werror>
  # False alarms of g++ 12 on std::string's operator+ and on vectors with default values (GCC bugs 105651, 105562).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-maybe-uninitialized>
  $<$<BOOL:${POLYHEAD_NATIVE}>:-march=native>
  # Vectors of 64 bytes where the machine has them; -ffast-math never: NaN and Inf must stay visible.
  $<$<AND:$<BOOL:${POLYHEAD_NATIVE}>,$<CXX_COMPILER_ID:GNU>>:-mprefer-vector-width=512>
  -fno-math-errno -fno-trapping-math)
if(POLYHEAD_SANITIZE)
  target_compile_options(polyhead_flags INTERFACE -fsanitize=${POLYHEAD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    # Sanitized, g++ 12 takes its own AVX-512 intrinsics for uses of uninitialised values.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>)
  target_link_options(polyhead_flags INTERFACE -fsanitize=${POLYHEAD_SANITIZE})
endif()

# polyhead_library(NAME dependency...): the library polyhead::NAME of all sources in src/NAME.
function(polyhead_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  add_library(polyhead_${name} STATIC ${sources})
  target_link_libraries(polyhead_${name} PUBLIC ${ARGN} PRIVATE $<BUILD_INTERFACE:polyhead_flags>)
  add_library(polyhead::${name} ALIAS polyhead_${name})
  set_target_properties(polyhead_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(polyhead_${name} PUBLIC cxx_std_20)
  target_include_directories(polyhead_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  set_property(GLOBAL APPEND PROPERTY POLYHEAD_LIBRARIES polyhead_${name})
endfunction()

# polyhead_compile_apart(target...): never several files in one go (CMAKE_UNITY_BUILD, which the presets set because most of
# a build is headers): in these it is their own code that takes time, and files use the same names for different things.
function(polyhead_compile_apart)
  set_target_properties(${ARGN} PROPERTIES UNITY_BUILD OFF)
endfunction()
