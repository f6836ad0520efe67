/* SPDX-License-Identifier: MIT */
#include "base/info.h"

#include <assert.h>
#include <strings.h>

#define SECTIONS_MAX 40

static struct {
	const char *name;
	void (*fn)(struct buf *out, void *arg);
	void *arg;
} sections[SECTIONS_MAX];
static int count;

void info_register(const char *section, void (*fn)(struct buf *out, void *arg), void *arg)
{
	assert(count < SECTIONS_MAX);
	sections[count].name = section;
	sections[count].fn = fn;
	sections[count++].arg = arg;
}

static bool wants_all(const char *section)
{
	return section == NULL || strcasecmp(section, "all") == 0 || strcasecmp(section, "default") == 0 ||
	       strcasecmp(section, "everything") == 0;
}

void info_write(struct buf *out, const char *section)
{
	for (int i = 0; i < count; i++) {
		if (!wants_all(section) && strcasecmp(section, sections[i].name) != 0)
			continue;
		buf_addf(out, "%s# %s\r\n", out->len > 0 ? "\r\n" : "", sections[i].name);
		sections[i].fn(out, sections[i].arg);
	}
}
