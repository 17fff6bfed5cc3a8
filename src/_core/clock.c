/* Time: the processor's counter where it runs evenly, looked after by the system's clock.

   Linux uses the counter for its own clock only if it is even and the same on all processors, so that choice decides here too. The
   system's clock is looked at again every millisecond: the two never differ by more than some ten nanoseconds, and time never goes
   back. */

#include "recorder.h"

#include <stdio.h>
#include <string.h>

Counter counter;

static int64_t system_clock(void)
{
#ifdef __APPLE__
    return (int64_t)clock_gettime_nsec_np(CLOCK_UPTIME_RAW);
#else
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
#endif
}

#ifdef HAS_COUNTER

static bool counter_is_trusted;
static uint64_t first_ticks;
static int64_t first_ns;

enum { LOOK_AFTER_NS = 1000000, SHORTEST_NS = 200000 };

/* The system's clock, and the counter at the same time. */
static int64_t read_both(uint64_t *ticks)
{
    uint64_t before = __rdtsc();
    int64_t ns = system_clock();
    *ticks = before + (__rdtsc() - before) / 2;
    return ns;
}

static bool system_trusts_counter(void)
{
    char name[16] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");
    if (file == NULL)
        return false;
    bool is_trusted = fgets(name, sizeof name, file) != NULL && strcmp(name, "tsc\n") == 0;
    fclose(file);
    return is_trusted;
}

/* Called when the module is imported: until the first recording the counter can be measured against the clock. */
void start_clock(void)
{
    counter_is_trusted = system_trusts_counter();
    if (counter_is_trusted)
        first_ns = read_both(&first_ticks);
}

int64_t look_at_clock(void)
{
    if (!counter_is_trusted)
        return system_clock();
    uint64_t ticks;
    int64_t ns = read_both(&ticks);
    int64_t measured_ns = ns - first_ns;
    if (measured_ns < SHORTEST_NS || ticks <= first_ticks)
        return ns; /* too short to know how fast the counter runs */
    int64_t told = 0; /* what was or could have been told already */
    if (counter.most_ticks != 0) {
        uint64_t passed = ticks - counter.ticks;
        uint64_t most = counter.most_ticks < passed ? counter.most_ticks : passed;
        told = counter.ns + (int64_t)(((unsigned __int128)most * counter.ns_per_tick) >> 32);
    }
    counter.ns_per_tick = (uint64_t)(((unsigned __int128)measured_ns << 32) / (ticks - first_ticks));
    counter.ns = ns > told ? ns : told;
    counter.ticks = ticks;
    /* the longer the speed has been measured, the longer it is trusted */
    int64_t trusted_ns = measured_ns / 8 < LOOK_AFTER_NS ? measured_ns / 8 : LOOK_AFTER_NS;
    counter.most_ticks = (uint64_t)(((unsigned __int128)trusted_ns << 32) / counter.ns_per_tick);
    return counter.ns;
}

#else

void start_clock(void) {}

int64_t look_at_clock(void)
{
    return system_clock();
}

#endif
