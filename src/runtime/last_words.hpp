#pragma once

namespace holdfast::runtime {

/// For a program's first lines: out of memory then ends it with one line and exit code 1, at once, instead of an
/// abort in the middle of something; an exception that nobody catches is named before it aborts. Nothing is undone or
/// given back by that: leases run out, and what was not acknowledged comes again.
void install_last_words();

}  // namespace holdfast::runtime
