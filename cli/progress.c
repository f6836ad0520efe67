/* SPDX-License-Identifier: MIT */
#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cli/when.h"

#define REDRAW_US 100000
#define PLAIN_US  5000000
#define BAR_WIDTH 24

struct progress {
	const char *what, *unit;
	bool terminal;
	bool drawn;   /* the line is on the screen */
	bool changed; /* what is set has not been drawn */
	int64_t started_us, drawn_us;
	uint64_t done, total, count;
};

struct progress *progress_new(const char *what, const char *unit)
{
	struct progress *p = xcalloc(1, sizeof(*p));

	p->what = what;
	p->unit = unit;
	p->terminal = isatty(STDERR_FILENO) == 1;
	p->started_us = p->drawn_us = clock_mono_us();
	return p;
}

static void add_bar(struct buf *line, uint64_t done, uint64_t total)
{
	unsigned full = (unsigned)(done * BAR_WIDTH / total);

	buf_add_str(line, " [");
	for (unsigned i = 0; i < BAR_WIDTH; i++)
		buf_add_char(line, i < full ? '#' : '.');
	buf_add_char(line, ']');
}

static void add_rate(struct progress *p, struct buf *line, int64_t now_us)
{
	char text[WHEN_MAX];
	int64_t elapsed_us = now_us - p->started_us;

	if (elapsed_us <= 0)
		return;
	double rate = (double)p->count * 1e6 / (double)elapsed_us;
	buf_addf(line, ", %.0f/s", rate);
	if (p->total == 0 || p->done == 0 || p->done >= p->total)
		return;
	double left_ms = (double)elapsed_us / 1000 * (double)(p->total - p->done) / (double)p->done;
	buf_addf(line, ", %s left", when_duration(text, left_ms < 1000 ? 1000 : (int64_t)left_ms));
}

static void draw(struct progress *p, int64_t now_us)
{
	struct buf line = BUF_INIT;
	uint64_t done = p->done < p->total ? p->done : p->total;

	buf_add_str(&line, p->what);
	if (p->total > 0 && p->terminal)
		add_bar(&line, done, p->total);
	if (p->total > 0)
		buf_addf(&line, " %3u%%", (unsigned)(done * 100 / p->total));
	buf_addf(&line, "  %" PRIu64 " %s", p->count, p->unit);
	add_rate(p, &line, now_us);
	fprintf(stderr, p->terminal ? "\r%s\033[K" : "%s\n", line.data);
	buf_release(&line);
	p->drawn = true;
	p->changed = false;
	p->drawn_us = now_us;
}

void progress_set(struct progress *p, uint64_t done, uint64_t total, uint64_t count)
{
	int64_t now_us = clock_mono_us();

	p->changed = p->changed || done != p->done || count != p->count;
	p->done = done;
	p->total = total;
	p->count = count;
	if (now_us - p->drawn_us >= (p->terminal ? REDRAW_US : PLAIN_US))
		draw(p, now_us);
}

void progress_hide(struct progress *p)
{
	if (p == NULL || !p->terminal || !p->drawn)
		return;
	fputs("\r\033[K", stderr);
	p->drawn = false;
	p->changed = true;
}

void progress_free(struct progress *p)
{
	if (p == NULL)
		return;
	if (p->changed && (p->drawn || p->terminal))
		draw(p, clock_mono_us());
	if (p->terminal && p->drawn)
		fputc('\n', stderr);
	free(p);
}
