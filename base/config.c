/* SPDX-License-Identifier: MIT */
#include "base/config.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/duration.h"
#include "base/mem.h"

#define SECOND ((int64_t)1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define KIB    ((int64_t)1024)
#define MIB    (1024 * KIB)
#define GIB    (1024 * MIB)

#define AT(member) offsetof(struct config, member)

/* clang-format off */
static const struct config_key keys[] = {
	{"server", "listen", CONFIG_STRING, AT(listen), "127.0.0.1", 0, 0, false,
	 "Address to listen on: an IPv4 or IPv6 address, or several with blanks between them."},
	{"server", "port", CONFIG_INT, AT(port), "7411", 0, 65535, false,
	 "TCP port; 0 takes a free one and logs it."},
	{"server", "max_clients", CONFIG_INT, AT(max_clients), "25000", 1, 1000000, true,
	 "Connections at once; one more is answered BUSY and closed. Capped by the open-files limit less 64."},
	{"server", "max_line", CONFIG_SIZE, AT(max_line), "64k", 1 * KIB, 16 * MIB, true,
	 "Longest inline command, and longest argument that is not a payload."},
	{"server", "max_args", CONFIG_INT, AT(max_args), "1024", 16, 1000000, true,
	 "Most arguments of one command."},
	{"server", "max_payload", CONFIG_SIZE, AT(max_payload), "1m", 1 * KIB, 256 * MIB, true,
	 "Most bytes of one command, all its arguments together."},
	{"server", "max_pipeline", CONFIG_INT, AT(max_pipeline), "1024", 1, 1000000, true,
	 "Commands of one connection in flight; past that its socket is not read until some are answered."},
	{"server", "output_limit", CONFIG_SIZE, AT(output_limit), "4m", 64 * KIB, 1024 * MIB, true,
	 "Replies a client may leave unread before it is closed; at an eighth of it its commands are no longer read."},
	{"server", "idle_timeout", CONFIG_DURATION, AT(idle_timeout), "12h", 0, 365 * DAY, true,
	 "A connection that says nothing for so long is closed; 0 keeps it."},
	{"server", "partial_timeout", CONFIG_DURATION, AT(partial_timeout), "30s", 100, DAY, true,
	 "Longest time a command may take to arrive once its first byte has, and a reply to be taken."},
	{"server", "drain_timeout", CONFIG_DURATION, AT(drain_timeout), "15s", 0, HOUR, true,
	 "Longest time that SIGTERM waits for commands in flight and confirms."},
	{"server", "users_file", CONFIG_STRING, AT(users_file), "", 0, 0, true,
	 "File of users and their rights; empty: no AUTH is asked and everyone may do everything."},
	{"server", "log_level", CONFIG_STRING, AT(log_level), "notice", 0, 0, true,
	 "error, warning, notice, info or debug."},

	{"redis", "host", CONFIG_STRING, AT(redis_host), "127.0.0.1", 0, 0, false, "Address or name of Redis."},
	{"redis", "port", CONFIG_INT, AT(redis_port), "6379", 1, 65535, false, "Port of Redis."},
	{"redis", "user", CONFIG_STRING, AT(redis_user), "", 0, 0, false, "ACL user; empty: the default user."},
	{"redis", "password", CONFIG_SECRET, AT(redis_password), "", 0, 0, false, "Password; better password_file."},
	{"redis", "password_file", CONFIG_STRING, AT(redis_password_file), "", 0, 0, false,
	 "File with the password; a relative name is a systemd credential."},
	{"redis", "db", CONFIG_INT, AT(redis_db), "0", 0, 1023, false, "Database number."},
	{"redis", "prefix", CONFIG_STRING, AT(redis_prefix), "muster:", 0, 0, false, "What every key begins with."},
	{"redis", "partitions", CONFIG_INT, AT(partitions), "48", 1, 48, false,
	 "Slices of departments and queues. Written into Redis at the first start and fixed from then on."},
	{"redis", "timeout", CONFIG_DURATION, AT(redis_timeout), "5s", 50, HOUR, true,
	 "Longest wait for a reply of Redis; then the link is dropped and what waited gets UNAVAILABLE."},
	{"redis", "max_inflight", CONFIG_SIZE, AT(redis_max_inflight), "64m", 1 * MIB, 4096 * MIB, true,
	 "Bytes under way to Redis; past that commands get BUSY."},
	{"redis", "lease", CONFIG_DURATION, AT(lease), "10s", 500, HOUR, false,
	 "How long a partition stays with a daemon that has stopped renewing it."},

	{"amqp", "host", CONFIG_STRING, AT(amqp_host), "127.0.0.1", 0, 0, false, "Address or name of RabbitMQ."},
	{"amqp", "port", CONFIG_INT, AT(amqp_port), "5672", 1, 65535, false, "Port of RabbitMQ."},
	{"amqp", "user", CONFIG_STRING, AT(amqp_user), "guest", 0, 0, false, "User of RabbitMQ."},
	{"amqp", "password", CONFIG_SECRET, AT(amqp_password), "guest", 0, 0, false, "Password; better password_file."},
	{"amqp", "password_file", CONFIG_STRING, AT(amqp_password_file), "", 0, 0, false,
	 "File with the password; a relative name is a systemd credential."},
	{"amqp", "vhost", CONFIG_STRING, AT(amqp_vhost), "/", 0, 0, false, "Virtual host of RabbitMQ."},
	{"amqp", "heartbeat", CONFIG_DURATION, AT(amqp_heartbeat), "15s", SECOND, HOUR, false,
	 "Heartbeat interval asked for; the link is dropped after two without a byte."},
	{"amqp", "confirm_window", CONFIG_INT, AT(amqp_confirm_window), "1000", 1, 65536, true,
	 "Notices published and not yet confirmed, at most."},
	{"amqp", "delays", CONFIG_STRING, AT(amqp_delays), "5s 30s 5m", 0, 0, false,
	 "Waits before the second and later tries of a dead notice; after the last it is parked."},

	{"mysql", "host", CONFIG_STRING, AT(mysql_host), "127.0.0.1", 0, 0, false, "Address or name of MySQL or MariaDB."},
	{"mysql", "port", CONFIG_INT, AT(mysql_port), "3306", 1, 65535, false, "Port of MySQL or MariaDB."},
	{"mysql", "socket", CONFIG_STRING, AT(mysql_socket), "", 0, 0, false, "Unix socket; goes before host and port."},
	{"mysql", "user", CONFIG_STRING, AT(mysql_user), "muster", 0, 0, false, "User of MySQL or MariaDB."},
	{"mysql", "password", CONFIG_SECRET, AT(mysql_password), "", 0, 0, false, "Password; better password_file."},
	{"mysql", "password_file", CONFIG_STRING, AT(mysql_password_file), "", 0, 0, false,
	 "File with the password; a relative name is a systemd credential."},
	{"mysql", "database", CONFIG_STRING, AT(mysql_database), "muster", 0, 0, false, "Database; must exist."},
	{"mysql", "timeout", CONFIG_DURATION, AT(mysql_timeout), "30s", 100, HOUR, true,
	 "Longest wait for one statement; then the link is dropped and the work begun again."},
	{"mysql", "tls_ca", CONFIG_STRING, AT(mysql_tls_ca), "", 0, 0, false,
	 "CA file; when set, TLS is required and the server's certificate is verified."},

	{"day", "timezone", CONFIG_STRING, AT(timezone), "", 0, 0, false,
	 "Zone of the work day, such as Europe/Berlin; empty: the system's."},
	{"day", "day_start", CONFIG_TIME, AT(day_start), "04:00", 0, DAY - 1, false,
	 "Local time at which a work date begins; it ends at the next one."},
	{"day", "shift_start", CONFIG_TIME, AT(shift_start), "09:00", 0, DAY - 1, true,
	 "Check in by this local time, inclusive."},
	{"day", "shift_end", CONFIG_TIME, AT(shift_end), "18:00", 0, DAY - 1, true,
	 "Check out from this local time, inclusive."},
	{"day", "debounce", CONFIG_DURATION, AT(debounce), "30s", 0, HOUR, true,
	 "Punches of one person and direction closer than this count as one; all are kept."},
	{"day", "max_punches", CONFIG_INT, AT(max_punches), "100", 8, 1000, true,
	 "Most punches kept of one person and work date; past that, one between the first and the last gives way."},
	{"day", "accept_past", CONFIG_DURATION, AT(accept_past), "7d", HOUR, 60 * DAY, true,
	 "How far back an event time may lie."},
	{"day", "accept_future", CONFIG_DURATION, AT(accept_future), "5m", 0, DAY, true,
	 "How far ahead of the daemon's clock an event time may lie."},
	{"day", "close_delay", CONFIG_DURATION, AT(close_delay), "5m", 0, DAY, true,
	 "From the end of a work date to its close."},
	{"day", "close_auto", CONFIG_BOOL, AT(close_auto), "yes", 0, 0, true,
	 "Close days by the clock; otherwise only DAY.CLOSE does."},
	{"day", "dir_cache", CONFIG_INT, AT(dir_cache), "2000000", 1000, 100000000, true,
	 "Employees whose department the daemon remembers; about 110 bytes each."},

	{"team", "max_depth", CONFIG_INT, AT(max_depth), "64", 1, 1000, true,
	 "Most levels of the tree. Redis keeps about 40 bytes for each node and level above it."},
	{"team", "inline_max", CONFIG_INT, AT(inline_max), "1000", 0, 100000, true,
	 "A move of at most so many entries of ancestors' sets is one script; a bigger one is a job."},
	{"team", "chunk", CONFIG_INT, AT(chunk), "1000", 1, 5000, true,
	 "About so many writes are one step of a job; 1000 take Redis about 2 ms."},

	{"task", "lease", CONFIG_DURATION, AT(task_lease), "60s", 100, DAY, true,
	 "A worker that is not heard of for so long loses its task. What this section says holds for a queue, or a "
	 "task, that says nothing else."},
	{"task", "lease_max", CONFIG_DURATION, AT(task_lease_max), "1h", 100, 30 * DAY, true,
	 "The longest lease that may be asked for."},
	{"task", "retries", CONFIG_INT, AT(task_retries), "3", 0, 1000000, true,
	 "A task runs at most once more than this."},
	{"task", "crashes", CONFIG_INT, AT(task_crashes), "3", 1, 1000000, true,
	 "A task whose lease ran out so often has failed, whatever retries are left: it kills its workers."},
	{"task", "backoff", CONFIG_DURATION, AT(task_backoff), "5s", 0, DAY, true,
	 "Pause before the first retry of a task that failed; it doubles with each."},
	{"task", "backoff_max", CONFIG_DURATION, AT(task_backoff_max), "10m", 0, 30 * DAY, true,
	 "The longest such pause. Up to a fifth is added to each, so that not all come back at once."},
	{"task", "max_tasks", CONFIG_INT, AT(task_max_tasks), "1000000", 1, INT64_C(1000000000), true,
	 "Tasks of one queue in Redis, ended ones too; TASK.SUBMIT answers BUSY beyond it."},
	{"task", "max_bytes", CONFIG_SIZE, AT(task_max_bytes), "1g", KIB, 1024 * GIB, true,
	 "Bytes of their payloads; TASK.SUBMIT answers BUSY beyond it."},
	{"task", "max_result", CONFIG_SIZE, AT(task_max_result), "64k", 0, 16 * MIB, true,
	 "The longest RESULT of a task."},
	{"task", "max_error", CONFIG_SIZE, AT(task_max_error), "1k", 16, 64 * KIB, true,
	 "So much is kept of the ERROR of a task."},
	{"task", "wait_max", CONFIG_DURATION, AT(task_wait_max), "5m", 1000, DAY, true,
	 "The longest WAIT of a TASK.CLAIM."},
	{"task", "keep", CONFIG_INT, AT(task_keep), "1000", 0, INT64_C(1000000000), true,
	 "So many tasks that have ended stay in Redis, of each queue and status, when MySQL has them."},
	{"task", "keep_for", CONFIG_DURATION, AT(task_keep_for), "1d", 0, 3650 * DAY, true,
	 "And none of them for longer than this."},
	{"task", "age_after", CONFIG_DURATION, AT(task_age_after), "0s", 0, 365 * DAY, true,
	 "A task that has been ready for so long goes up by one priority, and again after as long; 0 = never."},
	{"task", "queues_max", CONFIG_INT, AT(task_queues_max), "1000", 1, 1000000, true,
	 "Most queues in one partition; a further one is BUSY unless one that has nothing in it can be "
	 "forgotten."},
	{"task", "notices", CONFIG_ENDS, AT(task_notices), "failed, timeout, cancelled", 0, 15, true,
	 "The ends of tasks that are told as notices: success, failed, timeout, cancelled."},
};
/* clang-format on */

const struct config_key *config_keys(size_t *ret_count)
{
	*ret_count = ARRAY_LEN(keys);
	return keys;
}

static bool is_text(const struct config_key *key)
{
	return key->type == CONFIG_STRING || key->type == CONFIG_SECRET;
}

static char **text_at(struct config *c, const struct config_key *key)
{
	return (char **)((char *)c + key->offset);
}

static int64_t *number_at(struct config *c, const struct config_key *key)
{
	return (int64_t *)((char *)c + key->offset);
}

static bool *flag_at(struct config *c, const struct config_key *key)
{
	return (bool *)((char *)c + key->offset);
}

struct unit {
	const char *suffix;
	int64_t factor;
};

static const struct unit sizes[] = {{"", 1}, {"k", KIB}, {"m", MIB}, {"g", GIB}};

static bool parse_scaled(const char *text, const struct unit *units, size_t count, int64_t *ret)
{
	char *end;

	errno = 0;
	long long n = strtoll(text, &end, 10);
	if (end == text || errno != 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (strcasecmp(end, units[i].suffix) == 0)
			return !__builtin_mul_overflow((int64_t)n, units[i].factor, ret);
	}
	return false;
}

static bool parse_time_of_day(const char *text, int64_t *ret)
{
	int hour, minute, second = 0, used = 0;

	if (sscanf(text, "%2d:%2d%n:%2d%n", &hour, &minute, &used, &second, &used) < 2 || text[used] != '\0')
		return false;
	if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59)
		return false;
	*ret = hour * HOUR + minute * MINUTE + second * SECOND;
	return true;
}

static const char *const ends[] = {"success", "failed", "timeout", "cancelled"};

/* The bit of one word, 0 when it is none. */
static int64_t end_bit(const char *word, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		if (strlen(ends[i]) == n && strncasecmp(word, ends[i], n) == 0)
			return INT64_C(1) << i;
	}
	return 0;
}

static bool parse_ends(const char *text, int64_t *ret)
{
	int64_t bits = 0;
	size_t n;

	for (text += strspn(text, " \t,"); *text != '\0'; text += n + strspn(text + n, " \t,")) {
		n = strcspn(text, " \t,");
		int64_t bit = end_bit(text, n);
		if (bit == 0)
			return false;
		bits |= bit;
	}
	*ret = bits;
	return true;
}

static void add_ends(struct buf *out, int64_t bits)
{
	const char *between = "";

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		if ((bits & INT64_C(1) << i) == 0)
			continue;
		buf_addf(out, "%s%s", between, ends[i]);
		between = ", ";
	}
}

static bool parse_bool(const char *text, bool *ret)
{
	static const char *const yes[] = {"yes", "true", "on", "1"};
	static const char *const no[] = {"no", "false", "off", "0"};

	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
			*ret = strcasecmp(text, yes[i]) == 0;
			return true;
		}
	}
	return false;
}

static const char *expected(enum config_type type)
{
	static const char *const words[] = {
		[CONFIG_STRING] = "text",
		[CONFIG_SECRET] = "text",
		[CONFIG_INT] = "a whole number",
		[CONFIG_BOOL] = "yes or no",
		[CONFIG_DURATION] = DURATION_EXPECTED,
		[CONFIG_SIZE] = "a size such as 4096, 64k or 1m",
		[CONFIG_TIME] = "a time of day such as 04:00",
		[CONFIG_ENDS] = "any of success, failed, timeout, cancelled",
	};
	return words[type];
}

void config_number_write(const struct config_key *key, int64_t n, struct buf *out)
{
	if (key->type == CONFIG_TIME) {
		buf_addf(out, "%02d:%02d", (int)(n / HOUR), (int)(n / MINUTE % 60));
		if (n % MINUTE != 0)
			buf_addf(out, ":%02d", (int)(n / SECOND % 60));
	} else if (key->type == CONFIG_DURATION) {
		duration_format(out, n);
	} else if (key->type == CONFIG_ENDS) {
		add_ends(out, n);
	} else if (key->type == CONFIG_SIZE) {
		const struct unit *u = &sizes[0];
		for (size_t i = 1; i < ARRAY_LEN(sizes); i++) {
			if (n != 0 && n % sizes[i].factor == 0)
				u = &sizes[i];
		}
		buf_addf(out, "%lld%s", (long long)(n / u->factor), u->suffix);
	} else {
		buf_add_i64(out, n);
	}
}

const struct config_key *config_find(const char *section, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (strcmp(keys[i].section, section) == 0 && strcmp(keys[i].name, name) == 0)
			return &keys[i];
	}
	return NULL;
}

static bool parse_number(const struct config_key *key, const char *value, int64_t *ret)
{
	switch (key->type) {
	case CONFIG_DURATION:
		return duration_parse(bytes_of(value), ret);
	case CONFIG_SIZE:
		return parse_scaled(value, sizes, ARRAY_LEN(sizes), ret);
	case CONFIG_TIME:
		return parse_time_of_day(value, ret);
	case CONFIG_ENDS:
		return parse_ends(value, ret);
	default:
		return parse_scaled(value, sizes, 1, ret);
	}
}

int config_number_read(const struct config_key *key, const char *value, int64_t *ret, struct buf *errors)
{
	int64_t n;

	if (!parse_number(key, value, &n)) {
		buf_addf(errors, "[%s] %s = %s: expected %s", key->section, key->name, value,
			expected(key->type));
		return -1;
	}
	if (n < key->min || n > key->max) {
		buf_addf(errors, "[%s] %s = %s: expected ", key->section, key->name, value);
		config_number_write(key, key->min, errors);
		buf_add_str(errors, " to ");
		config_number_write(key, key->max, errors);
		return -1;
	}
	*ret = n;
	return 0;
}

int config_set(struct config *c, const char *section, const char *name, const char *value, struct buf *errors)
{
	const struct config_key *key = config_find(section, name);

	if (key == NULL) {
		buf_addf(errors, "[%s] %s: no such key", section, name);
		return -1;
	}
	if (is_text(key)) {
		free(*text_at(c, key));
		*text_at(c, key) = xstrdup(value);
		return 0;
	}
	if (key->type != CONFIG_BOOL)
		return config_number_read(key, value, number_at(c, key), errors);
	if (parse_bool(value, flag_at(c, key)))
		return 0;
	buf_addf(errors, "[%s] %s = %s: expected %s", section, name, value, expected(key->type));
	return -1;
}

void config_init(struct config *c)
{
	struct buf errors = BUF_INIT;

	*c = (struct config){0};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (config_set(c, keys[i].section, keys[i].name, keys[i].fallback, &errors) != 0)
			abort(); /* a default outside its own range: the unit test walks the table */
	}
	buf_release(&errors);
}

void config_release(struct config *c)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (is_text(&keys[i]))
			free(*text_at(c, &keys[i]));
	}
	*c = (struct config){0};
}

struct load {
	struct config *config;
	const char *path;
	struct buf *errors;
	int faults;
};

static int on_value(void *user, const char *section, const char *name, const char *value)
{
	struct load *load = user;
	struct buf fault = BUF_INIT;

	if (config_set(load->config, section, name, value, &fault) != 0) {
		buf_addf(load->errors, "%s: %s\n", load->path, fault.data);
		load->faults++;
	}
	buf_release(&fault);
	return 1;
}

/* The first line of a secret's file, without its end. */
static int read_secret(const char *name, char **dst, struct buf *errors)
{
	char path[4096], line[1024];
	const char *folder = getenv("CREDENTIALS_DIRECTORY");

	if (name[0] != '/' && folder != NULL)
		snprintf(path, sizeof(path), "%s/%s", folder, name);
	else
		snprintf(path, sizeof(path), "%s", name);
	FILE *f = fopen(path, "re");
	if (f == NULL) {
		buf_addf(errors, "%s: can't read the password file: %s\n", path, strerror(errno));
		return -1;
	}
	bool got = fgets(line, sizeof(line), f) != NULL;
	fclose(f);
	if (!got) {
		buf_addf(errors, "%s: the password file is empty\n", path);
		return -1;
	}
	line[strcspn(line, "\r\n")] = '\0';
	free(*dst);
	*dst = xstrdup(line);
	explicit_bzero(line, sizeof(line));
	return 0;
}

static int read_secrets(struct config *c, struct buf *errors)
{
	int faults = 0;

	if (c->redis_password_file[0] != '\0')
		faults += read_secret(c->redis_password_file, &c->redis_password, errors) != 0;
	if (c->amqp_password_file[0] != '\0')
		faults += read_secret(c->amqp_password_file, &c->amqp_password, errors) != 0;
	if (c->mysql_password_file[0] != '\0')
		faults += read_secret(c->mysql_password_file, &c->mysql_password, errors) != 0;
	return faults;
}

static int check_together(const struct config *c, const char *path, struct buf *errors)
{
	int faults = 0;

	if (c->shift_start >= c->shift_end) {
		buf_addf(errors, "%s: [day] shift_start: expected a time before shift_end\n", path);
		faults++;
	}
	if (c->shift_start < c->day_start) {
		buf_addf(errors, "%s: [day] shift_start: expected a time not before day_start\n", path);
		faults++;
	}
	return faults;
}

int config_load(struct config *c, const char *path, struct buf *errors)
{
	struct load load = {.config = c, .path = path, .errors = errors};

	int line = ini_parse(path, on_value, &load);
	if (line < 0) {
		buf_addf(errors, "%s: can't read it: %s\n", path, strerror(errno));
		load.faults++;
	} else if (line > 0) {
		buf_addf(errors, "%s: line %d: expected [section], key = value, or a comment\n", path, line);
		load.faults++;
	}
	load.faults += read_secrets(c, errors);
	load.faults += check_together(c, path, errors);
	if (load.faults == 0)
		return 0;
	config_release(c);
	config_init(c);
	return -1;
}

static bool same(struct config *a, struct config *b, const struct config_key *key)
{
	if (is_text(key))
		return strcmp(*text_at(a, key), *text_at(b, key)) == 0;
	if (key->type == CONFIG_BOOL)
		return *flag_at(a, key) == *flag_at(b, key);
	return *number_at(a, key) == *number_at(b, key);
}

void config_reload(struct config *c, struct config *from, struct buf *restart)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct config_key *key = &keys[i];
		if (same(c, from, key))
			continue;
		if (!key->reload) {
			buf_addf(restart, "%s%s.%s", restart->len > 0 ? " " : "", key->section, key->name);
		} else if (is_text(key)) {
			char *old = *text_at(c, key);
			*text_at(c, key) = *text_at(from, key);
			*text_at(from, key) = old;
		} else if (key->type == CONFIG_BOOL) {
			*flag_at(c, key) = *flag_at(from, key);
		} else {
			*number_at(c, key) = *number_at(from, key);
		}
	}
}

void config_value(const struct config *c, const struct config_key *key, struct buf *out)
{
	struct config *m = (struct config *)(uintptr_t)c; /* only read through it */

	if (key->type == CONFIG_SECRET)
		buf_add_str(out, **text_at(m, key) != '\0' ? "(hidden)" : "");
	else if (key->type == CONFIG_STRING)
		buf_add_str(out, *text_at(m, key));
	else if (key->type == CONFIG_BOOL)
		buf_add_str(out, *flag_at(m, key) ? "yes" : "no");
	else
		config_number_write(key, *number_at(m, key), out);
}

void config_sample(struct buf *out)
{
	const char *section = "";

	buf_add_str(out, "# Configuration of musterd. Every key with its default; `musterd --check-config "
			 "FILE` checks one.\n");
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct config_key *key = &keys[i];
		if (strcmp(section, key->section) != 0)
			buf_addf(out, "\n[%s]\n", key->section);
		section = key->section;
		buf_addf(out, "# %s%s\n#%s = %s\n", key->help, key->reload ? "" : " (restart)", key->name,
			key->fallback);
	}
}
