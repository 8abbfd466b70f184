#pragma once

namespace holdfast::test {

// Where the build has put things; written by tests/CMakeLists.txt.
extern const char* const program_file;    ///< the built `holdfast`
extern const char* const simulator_file;  ///< the built `holdfast_sim`
extern const char* const kill_at_file;    ///< support/kill_at.cpp, to be preloaded
extern const char* const source_folder;   ///< of this project

}  // namespace holdfast::test
