/* SPDX-License-Identifier: MIT */
/* Log lines on stderr, one a call, each with the journal's priority prefix (<3> … <7>), so that systemd files
 * them rightly. A line reads `subsystem id event=… key=value …`; no secret and no payload belongs in one.
 * Control bytes in the text are replaced, so a peer's bytes can't forge a line. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARNING, LOG_LEVEL_NOTICE, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Lines above this level are dropped. Starts at notice. */
void log_set_level(enum log_level level);
/* Takes "error", "warning", "notice", "info" or "debug"; false, and nothing changed, on any other word. */
bool log_set_level_name(const char *name);
bool log_enabled(enum log_level level);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...)  log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...)    log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                                                                       \
	do {                                                                                                 \
		if (log_enabled(LOG_LEVEL_DEBUG))                                                            \
			log_line(LOG_LEVEL_DEBUG, __VA_ARGS__);                                              \
	} while (0)

#endif
