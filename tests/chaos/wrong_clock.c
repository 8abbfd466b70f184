/* Preloaded into one process: its wall clock is wrong, and nothing else is.
 *
 * CLOCK_REALTIME, gettimeofday() and time() give start + offset + (true - start) * rate. CLOCK_MONOTONIC and
 * CLOCK_BOOTTIME stay the kernel's, and so do timers on them. (libfaketime 0.9.10 rewrites the absolute times of every
 * timerfd as if it were on the wall clock.)
 *
 * WRONG_CLOCK="START_NS OFFSET_NS RATE"
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long start_ns, offset_ns;
static double rate = 1.0;

__attribute__((constructor)) static void read_settings(void) {
  const char* text = getenv("WRONG_CLOCK");
  if (text == NULL || sscanf(text, "%lld %lld %lf", &start_ns, &offset_ns, &rate) != 3) {
    fputs("wrong_clock: WRONG_CLOCK is not 'START_NS OFFSET_NS RATE'\n", stderr);
    abort();
  }
}

static long long true_now_ns(void) {
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static long long wrong_now_ns(void) {
  const long long passed = true_now_ns() - start_ns;
  return start_ns + offset_ns + passed + (long long)((double)passed * (rate - 1.0));
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return (int)syscall(SYS_clock_gettime, clock, now);
  const long long wrong = wrong_now_ns();
  now->tv_sec = wrong / 1000000000LL;
  now->tv_nsec = wrong % 1000000000LL;
  return 0;
}

int gettimeofday(struct timeval* now, void* zone) {
  (void)zone;
  const long long wrong = wrong_now_ns();
  now->tv_sec = wrong / 1000000000LL;
  now->tv_usec = wrong % 1000000000LL / 1000;
  return 0;
}

time_t time(time_t* out) {
  const time_t wrong = wrong_now_ns() / 1000000000LL;
  if (out != NULL) *out = wrong;
  return wrong;
}
