# Everything comes from the system's packages (tools/install-dependencies.sh); ARCHITECTURE.md says what each is for.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(fmt REQUIRED)
find_package(ICU REQUIRED COMPONENTS uc i18n)
find_package(yaml-cpp REQUIRED)
find_package(Eigen3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(benchmark REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(sentencepiece REQUIRED IMPORTED_TARGET sentencepiece)
# The shared library brings some thirty others (for reading over networks) that every start would load.
set(HDF5_USE_STATIC_LIBRARIES ON)
find_package(HDF5 REQUIRED COMPONENTS C)
if(NOT TARGET HDF5::HDF5)
  add_library(HDF5::HDF5 INTERFACE IMPORTED)
  set_target_properties(HDF5::HDF5 PROPERTIES
    INTERFACE_LINK_LIBRARIES "${HDF5_C_LIBRARIES}" INTERFACE_INCLUDE_DIRECTORIES "${HDF5_C_INCLUDE_DIRS}")
endif()

set(POLYHEAD_GEMM_LIBRARY "")
if(POLYHEAD_ONEDNN)
  # Not through dnnl-config.cmake: Debian's asks for OpenCL, which only GPUs need.
  find_path(DNNL_INCLUDE_DIR dnnl.hpp REQUIRED)
  find_library(DNNL_LIBRARY dnnl REQUIRED)
  add_library(polyhead::dnnl INTERFACE IMPORTED)
  set_target_properties(polyhead::dnnl PROPERTIES
    INTERFACE_LINK_LIBRARIES ${DNNL_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR}
    INTERFACE_COMPILE_DEFINITIONS POLYHEAD_ONEDNN)
  set(POLYHEAD_GEMM_LIBRARY polyhead::dnnl)
endif()
