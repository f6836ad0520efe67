/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <assert.h>
#include <time.h>

#define LISTENERS_MAX 8

static bool held;
static int64_t held_ms;
static struct {
	void (*fn)(void *arg);
	void *arg;
} listeners[LISTENERS_MAX];
static int listener_count;

int64_t clock_wall_ms(void)
{
	struct timespec ts;

	if (held)
		return held_ms;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t clock_mono_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

void clock_hold(void)
{
	held_ms = clock_wall_ms();
	held = true;
}

bool clock_held(void)
{
	return held;
}

void clock_set(int64_t wall_ms)
{
	if (!held)
		return;
	held_ms = wall_ms;
	for (int i = 0; i < listener_count; i++)
		listeners[i].fn(listeners[i].arg);
}

void clock_on_set(void (*fn)(void *arg), void *arg)
{
	assert(listener_count < LISTENERS_MAX);
	listeners[listener_count].fn = fn;
	listeners[listener_count++].arg = arg;
}
