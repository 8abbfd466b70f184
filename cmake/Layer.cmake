# holdfast_layer(NAME [DEPENDS layer...] [LIBRARIES target...] [DIRS folder...])
#
# Makes src/NAME the target holdfast::NAME out of every .cpp in it (and in DIRS below it). Its headers are
# found as "NAME/header.hpp", but only by targets that name it: the include directory handed on holds one
# link, to this folder alone, so an include against the arrows does not compile.
function(holdfast_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS;LIBRARIES;DIRS")
  set(folder ${CMAKE_CURRENT_SOURCE_DIR})
  set(patterns ${folder}/*.cpp)
  foreach(dir IN LISTS arg_DIRS)
    list(APPEND patterns ${folder}/${dir}/*.cpp)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")

  set(gate ${CMAKE_BINARY_DIR}/layers/${name})
  file(MAKE_DIRECTORY ${gate})
  file(CREATE_LINK ${folder} ${gate}/${name} SYMBOLIC)

  if(sources)
    add_library(holdfast_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(holdfast_${name} PRIVATE holdfast_warnings)
  else()
    add_library(holdfast_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(holdfast::${name} ALIAS holdfast_${name})
  target_include_directories(holdfast_${name} ${scope} ${gate} ${CMAKE_SOURCE_DIR}/include)
  foreach(dependency IN LISTS arg_DEPENDS)
    target_link_libraries(holdfast_${name} ${scope} holdfast::${dependency})
  endforeach()
  target_link_libraries(holdfast_${name} ${scope} ${arg_LIBRARIES})
endfunction()
