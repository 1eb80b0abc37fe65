/// @file own_symbols.hpp
/// @brief Names and lines of the worker's own program, which it may not open.
#pragma once

namespace convladder::grader {

/// Takes over the memory with the table: lines of words,
///
///     function ADDRESS NAME          line ADDRESS LINE FILE, up to the next row's address
///     thread_local OFFSET BYTES NAME     object ADDRESS BYTES NAME
///
/// Numbers are hexadecimal, names mangled.
void take_symbols(int file);

}  // namespace convladder::grader
