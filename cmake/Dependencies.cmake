# Libraries: the system's packages if available (Debian and Ubuntu have all of them), otherwise a download. Each
# download is pinned by a hash of its archive or by a commit, followed by its version.
include(FetchContent)

if(CONVLADDER_STATIC)
  set(PNG_USE_STATIC_LIBS ON)
  set(ZLIB_USE_STATIC_LIBS ON)
  list(PREPEND CMAKE_FIND_LIBRARY_SUFFIXES .a)
  add_link_options(-static-libstdc++ -static-libgcc)
endif()

find_package(Threads REQUIRED)

# Unversioned: Debian's 3.4.0 rejects version ranges across major versions, newer ones reject a plain 3.4.
find_package(Eigen3 CONFIG QUIET)
if(NOT Eigen3_FOUND OR Eigen3_VERSION VERSION_LESS 3.4)
  # Only its headers: Eigen's own CMake project would add its tests.
  FetchContent_Declare(Eigen3
    URL https://gitlab.com/libeigen/eigen/-/archive/3.4.0/eigen-3.4.0.tar.gz
    URL_HASH SHA256=8586084f71f9bde545ee7fa6d00288b264a2b7ac3607b974e54d13e7162c1c72
    SOURCE_SUBDIR headers-only)
  FetchContent_MakeAvailable(Eigen3)
  add_library(Eigen3::Eigen INTERFACE IMPORTED)
  target_include_directories(Eigen3::Eigen SYSTEM INTERFACE ${eigen3_SOURCE_DIR})
endif()

FetchContent_Declare(CLI11 GIT_REPOSITORY https://github.com/CLIUtils/CLI11.git GIT_TAG 6c7b07a878ad834957b98d0f9ce1dbe0cb204fc9  # v2.4.2
                     FIND_PACKAGE_ARGS CONFIG)
FetchContent_Declare(nlohmann_json GIT_REPOSITORY https://github.com/nlohmann/json.git GIT_TAG 9cca280a4d0ccf0c08f47a99aa71d1b0e52f8d03  # v3.11.3
                     FIND_PACKAGE_ARGS CONFIG)
FetchContent_MakeAvailable(CLI11 nlohmann_json)

set(Boost_USE_STATIC_LIBS ON)
find_package(Boost QUIET CONFIG COMPONENTS context)
if(NOT Boost_FOUND)
  set(BOOST_INCLUDE_LIBRARIES context)
  FetchContent_Declare(Boost
    URL https://github.com/boostorg/boost/releases/download/boost-1.86.0/boost-1.86.0-cmake.tar.xz
    URL_HASH SHA256=2c5ec5edcdff47ff55e27ed9560b0a0b94b07bd07ed9928b476150e16b0efc57)
  FetchContent_MakeAvailable(Boost)
endif()

find_package(PNG)
if(NOT PNG_FOUND)
  FetchContent_Declare(libpng GIT_REPOSITORY https://github.com/pnggroup/libpng.git GIT_TAG ed217e3e601d8e462f7fd1e04bed43ac42212429)  # v1.6.43
  set(PNG_TESTS OFF)
  set(PNG_TOOLS OFF)
  FetchContent_MakeAvailable(libpng)
  add_library(PNG::PNG ALIAS png_static)
endif()

# Pictures. Cairo has no CMake project to download: without it, and in static programs, no pictures are drawn.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND AND NOT CONVLADDER_STATIC)
  pkg_check_modules(Cairo IMPORTED_TARGET cairo-svg)
  pkg_check_modules(TurboJPEG IMPORTED_TARGET libturbojpeg)  # photographs as JPEG and BMP; without it, as PNG only
endif()
if(NOT TARGET PkgConfig::Cairo)
  message(STATUS "Pictures: no Cairo (libcairo2-dev, pkg-config); nothing will be drawn")
endif()

if(BUILD_TESTING OR NOT DEFINED BUILD_TESTING)
  # 2.4.12 is the first version that CMake 4 configures.
  FetchContent_Declare(doctest GIT_REPOSITORY https://github.com/doctest/doctest.git GIT_TAG 1da23a3e8119ec5cce4f9388e91b065e20bf06f5  # v2.4.12
                       FIND_PACKAGE_ARGS CONFIG)
  FetchContent_MakeAvailable(doctest)
  if(doctest_SOURCE_DIR)
    list(APPEND CMAKE_MODULE_PATH ${doctest_SOURCE_DIR}/scripts/cmake)
  endif()
endif()
