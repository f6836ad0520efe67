/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum log_level max_level = LOG_LEVEL_NOTICE;

void log_set_level(enum log_level level)
{
	max_level = level;
}

bool log_set_level_name(const char *name)
{
	static const char *const names[] = {"error", "warning", "notice", "info", "debug"};
	for (int i = 0; i < 5; i++) {
		if (strcmp(name, names[i]) == 0) {
			max_level = (enum log_level)(LOG_LEVEL_ERROR + i);
			return true;
		}
	}
	return false;
}

bool log_enabled(enum log_level level)
{
	return level <= max_level;
}

void log_line(enum log_level level, const char *format, ...)
{
	char line[2048];
	va_list ap;

	if (!log_enabled(level))
		return;
	int head = snprintf(line, sizeof(line), "<%d>", (int)level);
	va_start(ap, format);
	int n = vsnprintf(line + head, sizeof(line) - (size_t)head - 1, format, ap);
	va_end(ap);
	if (n < 0)
		return;
	size_t len = strnlen(line, sizeof(line) - 1);
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	}
	line[len++] = '\n';
	/* One write a line, so that lines of two processes don't mix. Nobody is left to tell if it fails. */
	ssize_t ignored = write(STDERR_FILENO, line, len);
	(void)ignored;
}
