/* SPDX-License-Identifier: MIT */
/* The only source of time. Wall time (unix milliseconds) decides dates and deadlines of the day; monotonic
 * time (microseconds) decides timeouts and latencies. With clock_hold() wall time stands still and moves only
 * by clock_set(): tests and the demo live whole days in seconds. Monotonic time never stands still. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

int64_t clock_wall_ms(void);
int64_t clock_mono_us(void);

/* Freezes wall time at its present value. */
void clock_hold(void);
bool clock_held(void);
/* Moves a held clock, forwards or backwards, then calls the listeners. Does nothing unless held. */
void clock_set(int64_t wall_ms);
/* fn(arg) is called after each clock_set(). At most 8 listeners; there is no removal. */
void clock_on_set(void (*fn)(void *arg), void *arg);

#endif
