#pragma once

// 1 where AddressSanitizer or ThreadSanitizer is compiled in, which bring an allocator of their own, need more memory
// and take ten times as long. The compilers tell it in two ways.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HOLDFAST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HOLDFAST_SANITIZED 1
#endif
#endif
#ifndef HOLDFAST_SANITIZED
#define HOLDFAST_SANITIZED 0
#endif
