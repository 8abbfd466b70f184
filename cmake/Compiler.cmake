# One place for what every target is compiled with.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

# How the compiler is called and which linker links is for the project that all belongs to, if we are a part of one.
if(PROJECT_IS_TOP_LEVEL)
  find_program(CCACHE_PROGRAM ccache)
  if(CCACHE_PROGRAM)
    # What ccache asks for where there are precompiled headers.
    set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
  endif()
  # mold links in a tenth of the time, where the compiler can call it (g++ from 12.1, clang).
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=mold HOLDFAST_HAVE_MOLD)
  if(HOLDFAST_HAVE_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()

# Warnings are errors, for our own code only: every dependency comes in as SYSTEM.
add_library(holdfast_warnings INTERFACE)
target_compile_options(holdfast_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual)
if(PROJECT_IS_TOP_LEVEL)  # another project's compiler may be newer, and know more warnings
  target_compile_options(holdfast_warnings INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports these inside its own headers once it has inlined them; each was looked at.
  target_compile_options(holdfast_warnings INTERFACE
    -Wno-restrict -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow
    -Wno-missing-field-initializers)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(holdfast_warnings INTERFACE -Wno-missing-field-initializers)
endif()

set(HOLDFAST_SANITIZE "" CACHE STRING "Comma-separated list for -fsanitize=")
if(HOLDFAST_SANITIZE AND PROJECT_IS_TOP_LEVEL)
  add_compile_options(-fsanitize=${HOLDFAST_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${HOLDFAST_SANITIZE})
endif()
if(HOLDFAST_FUZZ AND PROJECT_IS_TOP_LEVEL)
  # The fuzz targets link the libraries that all else links, so these tell which of their lines an input has reached.
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "HOLDFAST_FUZZ needs clang: cmake --preset asan")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
