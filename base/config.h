/* SPDX-License-Identifier: MIT */
/* The configuration: one typed table (config.c) of section, key, type, default, range, whether a reload
 * applies it, and help. The table drives parsing, --check-config, reload, CONFIG GET, `--help-config` and the
 * man page. Durations are held in milliseconds, times of day in milliseconds after midnight, sizes in bytes.
 */
#ifndef BASE_CONFIG_H
#define BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct config {
	/* [server] */
	char *listen;
	int64_t port;
	int64_t max_clients;
	int64_t max_line;
	int64_t max_args;
	int64_t max_payload;
	int64_t max_pipeline;
	int64_t output_limit;
	int64_t idle_timeout;
	int64_t partial_timeout;
	int64_t drain_timeout;
	char *users_file;
	char *log_level;
	/* [redis] */
	char *redis_host;
	int64_t redis_port;
	char *redis_user;
	char *redis_password;
	char *redis_password_file;
	int64_t redis_db;
	char *redis_prefix;
	int64_t partitions;
	int64_t redis_timeout;
	int64_t redis_max_inflight;
	int64_t lease;
	/* [amqp] */
	char *amqp_host;
	int64_t amqp_port;
	char *amqp_user;
	char *amqp_password;
	char *amqp_password_file;
	char *amqp_vhost;
	int64_t amqp_heartbeat;
	int64_t amqp_confirm_window;
	char *amqp_delays;
	/* [mysql] */
	char *mysql_host;
	int64_t mysql_port;
	char *mysql_socket;
	char *mysql_user;
	char *mysql_password;
	char *mysql_password_file;
	char *mysql_database;
	int64_t mysql_timeout;
	char *mysql_tls_ca;
	/* [day] */
	char *timezone;
	int64_t day_start;
	int64_t shift_start;
	int64_t shift_end;
	int64_t debounce;
	int64_t max_punches;
	int64_t accept_past;
	int64_t accept_future;
	int64_t close_delay;
	bool close_auto;
	int64_t dir_cache;
	/* [team] */
	int64_t max_depth;
	int64_t inline_max;
	int64_t chunk;
	/* [task] */
	int64_t task_lease, task_lease_max;
	int64_t task_retries, task_crashes;
	int64_t task_backoff, task_backoff_max;
	int64_t task_max_tasks, task_max_bytes;
	int64_t task_max_result, task_max_error;
	int64_t task_wait_max;
	int64_t task_keep, task_keep_for;
	int64_t task_age_after;
	int64_t task_queues_max;
	int64_t task_notices; /* CONFIG_ENDS */
};

enum config_type {
	CONFIG_STRING,
	CONFIG_SECRET, /* a string that CONFIG GET and logs never show */
	CONFIG_INT,
	CONFIG_BOOL,
	CONFIG_DURATION, /* see duration.h */
	CONFIG_SIZE,     /* 4096, 64k, 1m */
	CONFIG_TIME,     /* 04:00 */
	CONFIG_ENDS      /* how tasks end: any of success, failed, timeout, cancelled, as bits 1, 2, 4, 8 */
};

struct config_key {
	const char *section;
	const char *name;
	enum config_type type;
	size_t offset; /* in struct config */
	const char *fallback;
	int64_t min, max; /* of INT, DURATION (ms), SIZE, TIME (ms); ignored for the others */
	bool reload;      /* a reload applies it; otherwise it takes a restart */
	const char *help; /* one line */
};

/* The whole table; *ret_count entries, in the order of the document. */
const struct config_key *config_keys(size_t *ret_count);

/* Fills c with the defaults. Free with config_release(). */
void config_init(struct config *c);
void config_release(struct config *c);

/* Reads the INI file at `path` over the defaults, and the *_password_file keys (a relative name is looked up
 * in $CREDENTIALS_DIRECTORY). 0, or -1 with one line per fault in `errors`: file, line, what was expected. On
 * -1 c is as after config_init(). */
int config_load(struct config *c, const char *path, struct buf *errors) __attribute__((warn_unused_result));

/* Sets one key from text, as a file would. -1 and a message in errors when it can't be. */
int config_set(struct config *c, const char *section, const char *name, const char *value, struct buf *errors)
	__attribute__((warn_unused_result));

/* Moves the reloadable values of `from` into c; names of changed keys that need a restart go to `restart`. */
void config_reload(struct config *c, struct config *from, struct buf *restart);

/* NULL when there is none. */
const struct config_key *config_find(const char *section, const char *name);
/* What a text means as the value of a key that is a number, by its type and range. -1 and a message in errors
 * when it means nothing. */
int config_number_read(const struct config_key *key, const char *value, int64_t *ret, struct buf *errors)
	__attribute__((warn_unused_result));
/* And back. */
void config_number_write(const struct config_key *key, int64_t n, struct buf *out);

/* The value of a key as text, as a file would say it; a secret is "(hidden)" or "". */
void config_value(const struct config *c, const struct config_key *key, struct buf *out);

/* The whole table as a commented sample file. */
void config_sample(struct buf *out);

#endif
