/* SPDX-License-Identifier: MIT */
#include "daemon/resp.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"

/* What Redis takes at most; more is no request of any client. */
#define ARGS_MAX  ((int64_t)1 << 20)
#define BULK_MAX  ((int64_t)512 << 20)
#define HEAD_MAX  64 /* bytes of "*<count>\r\n" */
#define ARGS_KEEP 64 /* room for arguments that is kept between commands */

void resp_init(struct resp *r)
{
	*r = (struct resp){.state = RESP_START};
}

void resp_release(struct resp *r)
{
	free(r->args);
	resp_init(r);
}

/* Back to the start of a command; keeps a small list of arguments. */
static void restart(struct resp *r)
{
	struct resp_arg *args = r->args;
	size_t cap = r->cap;

	if (cap > ARGS_KEEP) {
		free(args);
		args = NULL;
		cap = 0;
	}
	*r = (struct resp){.state = RESP_START, .args = args, .cap = cap};
}

static void add_arg(struct resp *r, size_t at, size_t n)
{
	if (r->argc == r->cap) {
		r->cap = r->cap == 0 ? 8 : r->cap * 2;
		r->args = xrealloc(r->args, r->cap * sizeof(*r->args));
	}
	r->args[r->argc++] = (struct resp_arg){at, n};
}

static enum resp_status more(struct resp *r, size_t need)
{
	r->need = need;
	return RESP_MORE;
}

static enum resp_status fail(struct resp *r, const char *error)
{
	r->error = error;
	return RESP_ERROR;
}

/* ---- inline lines ---- */

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static char escape(char c)
{
	static const char from[] = "nrtba", to[] = "\n\r\t\b\a";
	const char *at = c == '\0' ? NULL : strchr(from, c);
	return at != NULL ? to[at - from] : c;
}

/* Decodes a quoted text whose opening quote is at *in, to *out; both move on. False when it does not end. */
static bool unquote(char *data, size_t end, size_t *in, size_t *out)
{
	char quote = data[(*in)++];

	while (*in < end && data[*in] != quote) {
		char c = data[*in];
		size_t rest = end - *in;
		size_t used = 1;
		if (quote == '"' && c == '\\' && rest >= 4 && data[*in + 1] == 'x' &&
			hex_digit(data[*in + 2]) >= 0 && hex_digit(data[*in + 3]) >= 0) {
			c = (char)(hex_digit(data[*in + 2]) * 16 + hex_digit(data[*in + 3]));
			used = 4;
		} else if (quote == '"' && c == '\\' && rest >= 2) {
			c = escape(data[*in + 1]);
			used = 2;
		} else if (quote == '\'' && c == '\\' && rest >= 2 && data[*in + 1] == '\'') {
			c = '\'';
			used = 2;
		}
		data[(*out)++] = c;
		*in += used;
	}
	if (*in == end)
		return false;
	(*in)++;
	return *in == end || is_space(data[*in]);
}

/* Splits data[0..end) as Redis does; false on quotes that don't match. */
static bool split(struct resp *r, char *data, size_t end)
{
	size_t in = 0;

	for (;;) {
		while (in < end && is_space(data[in]))
			in++;
		if (in == end)
			return true;
		size_t start = in, out = in;
		while (in < end && !is_space(data[in])) {
			if (data[in] != '"' && data[in] != '\'')
				data[out++] = data[in++];
			else if (!unquote(data, end, &in, &out))
				return false;
		}
		add_arg(r, start, out - start);
	}
}

static enum resp_status too_long(struct resp *r)
{
	restart(r);
	r->error = "TOOBIG the line is longer than server.max_line";
	return RESP_TOOBIG;
}

static enum resp_status parse_inline(
	struct resp *r, const struct resp_limits *limits, char *data, size_t len, size_t *ret_consumed)
{
	char *newline = memchr(data + r->scanned, '\n', len - r->scanned);

	if (newline == NULL && len <= limits->max_line) {
		r->scanned = len;
		return more(r, len + 1);
	}
	if (newline == NULL) {
		*ret_consumed = len;
		enum resp_status status = too_long(r);
		r->state = RESP_SKIP_LINE;
		return status;
	}
	size_t end = (size_t)(newline - data);
	*ret_consumed = end + 1;
	if (end > limits->max_line)
		return too_long(r);
	r->state = RESP_START;
	if (!split(r, data, end > 0 && data[end - 1] == '\r' ? end - 1 : end))
		return fail(r, "ERR Protocol error: unbalanced quotes in request");
	if (r->argc > limits->max_args) {
		restart(r);
		r->error = "TOOBIG the command has more arguments than server.max_args";
		return RESP_TOOBIG;
	}
	return r->argc == 0 ? RESP_EMPTY : RESP_COMMAND;
}

static enum resp_status skip_line(struct resp *r, const char *data, size_t len, size_t *ret_consumed)
{
	const char *newline = memchr(data, '\n', len);

	if (newline == NULL) {
		*ret_consumed = len;
		return more(r, 1);
	}
	*ret_consumed = (size_t)(newline - data) + 1;
	restart(r);
	return RESP_EMPTY;
}

/* ---- arrays ---- */

enum head { HEAD_MORE, HEAD_OK, HEAD_LONG, HEAD_BAD };

/* Reads the number of the head line at r->mark ("*3\r\n", "$5\r\n"), and moves mark behind the line. */
static enum head read_head(struct resp *r, const char *data, size_t len, int64_t max, int64_t *ret)
{
	size_t from = r->scanned > r->mark ? r->scanned : r->mark;
	const char *newline = memchr(data + from, '\n', len - from);

	if (newline == NULL) {
		r->scanned = len;
		return len - r->mark > HEAD_MAX ? HEAD_LONG : HEAD_MORE;
	}
	if ((size_t)(newline - data) - r->mark > HEAD_MAX)
		return HEAD_LONG;
	const char *digits = data + r->mark + 1;
	if (newline <= digits || newline[-1] != '\r' || digits[0] == '-')
		return HEAD_BAD;
	int64_t n;
	if (!bytes_to_i64((struct bytes){digits, (size_t)(newline - digits) - 1}, &n) || n > max)
		return HEAD_BAD;
	r->mark = (size_t)(newline - data) + 1;
	*ret = n;
	return HEAD_OK;
}

/* Drops what there is of the command; `left` arguments follow, after `skip` bytes of the present one. */
static enum resp_status toobig_array(
	struct resp *r, size_t left, size_t skip, const char *error, size_t *ret_consumed)
{
	*ret_consumed = r->mark;
	restart(r);
	r->state = skip > 0 ? RESP_SKIP_BODY : RESP_SKIP_HEAD;
	r->left = left;
	r->skip = skip;
	r->error = error;
	return RESP_TOOBIG;
}

static enum resp_status parse_count(
	struct resp *r, const struct resp_limits *limits, const char *data, size_t len, size_t *ret_consumed)
{
	int64_t count;

	switch (read_head(r, data, len, ARGS_MAX, &count)) {
	case HEAD_MORE:
		return more(r, len + 1);
	case HEAD_LONG:
		return fail(r, "ERR Protocol error: too big mbulk count string");
	case HEAD_BAD:
		return fail(r, "ERR Protocol error: invalid multibulk length");
	case HEAD_OK:
		break;
	}
	if (count == 0) {
		*ret_consumed = r->mark;
		restart(r);
		return RESP_EMPTY;
	}
	r->left = (size_t)count;
	if (r->left > limits->max_args)
		return toobig_array(r, r->left, 0,
			"TOOBIG the command has more arguments than server.max_args", ret_consumed);
	r->state = RESP_BULK_HEAD;
	return RESP_COMMAND; /* go on */
}

static enum resp_status bad_mark(struct resp *r, char c)
{
	static char text[64]; /* one loop, one thread; used before the next call */

	memcpy(text, "ERR Protocol error: expected '$', got ' '", 42);
	text[39] = c;
	return fail(r, text);
}

/* Reads "$<length>\r\n". RESP_COMMAND = got it. */
static enum resp_status bulk_head(struct resp *r, const char *data, size_t len, int64_t *ret)
{
	if (r->mark == len)
		return more(r, len + 1);
	if (data[r->mark] != '$')
		return bad_mark(r, data[r->mark]);
	switch (read_head(r, data, len, BULK_MAX, ret)) {
	case HEAD_MORE:
		return more(r, len + 1);
	case HEAD_LONG:
		return fail(r, "ERR Protocol error: too big bulk count string");
	case HEAD_BAD:
		return fail(r, "ERR Protocol error: invalid bulk length");
	case HEAD_OK:
		break;
	}
	return RESP_COMMAND;
}

static enum resp_status parse_bulk_head(
	struct resp *r, const struct resp_limits *limits, const char *data, size_t len, size_t *ret_consumed)
{
	int64_t length;
	enum resp_status status = bulk_head(r, data, len, &length);

	if (status != RESP_COMMAND)
		return status;
	if (r->total > limits->max_payload || (size_t)length > limits->max_payload - r->total)
		return toobig_array(r, r->left - 1, (size_t)length + 2,
			"TOOBIG the command is longer than server.max_payload", ret_consumed);
	add_arg(r, r->mark, (size_t)length);
	r->total += (size_t)length;
	r->state = RESP_BULK_BODY;
	return RESP_COMMAND;
}

static enum resp_status parse_bulk_body(struct resp *r, const char *data, size_t len)
{
	size_t end = r->mark + r->args[r->argc - 1].n;

	if (len < end + 2)
		return more(r, end + 2);
	if (data[end] != '\r' || data[end + 1] != '\n')
		return fail(r, "ERR Protocol error: expected CRLF after a bulk string");
	r->mark = end + 2;
	r->left--;
	r->state = RESP_BULK_HEAD;
	return RESP_COMMAND;
}

static enum resp_status parse_array(
	struct resp *r, const struct resp_limits *limits, const char *data, size_t len, size_t *ret_consumed)
{
	enum resp_status status = RESP_COMMAND;

	if (r->state == RESP_COUNT)
		status = parse_count(r, limits, data, len, ret_consumed);
	while (status == RESP_COMMAND && r->left > 0) {
		if (r->state == RESP_BULK_HEAD)
			status = parse_bulk_head(r, limits, data, len, ret_consumed);
		else
			status = parse_bulk_body(r, data, len);
	}
	if (status == RESP_COMMAND) {
		*ret_consumed = r->mark;
		r->state = RESP_START;
	}
	return status;
}

static enum resp_status skip_array(struct resp *r, const char *data, size_t len, size_t *ret_consumed)
{
	while (r->left > 0 || r->state == RESP_SKIP_BODY) {
		if (r->state == RESP_SKIP_BODY) {
			size_t n = len - r->mark < r->skip ? len - r->mark : r->skip;
			r->mark += n;
			r->skip -= n;
			if (r->skip > 0)
				break;
			r->state = RESP_SKIP_HEAD;
			continue;
		}
		int64_t length;
		enum resp_status status = bulk_head(r, data, len, &length);
		if (status == RESP_ERROR)
			return status;
		if (status == RESP_MORE)
			break;
		r->left--;
		r->skip = (size_t)length + 2;
		r->state = RESP_SKIP_BODY;
	}
	*ret_consumed = r->mark;
	r->scanned = r->scanned > r->mark ? r->scanned - r->mark : 0;
	r->mark = 0;
	if (r->left > 0 || r->state == RESP_SKIP_BODY)
		return more(r, len - *ret_consumed + 1);
	restart(r);
	return RESP_EMPTY;
}

enum resp_status resp_parse(
	struct resp *r, const struct resp_limits *limits, char *data, size_t len, size_t *ret_consumed)
{
	*ret_consumed = 0;
	if (r->state == RESP_START) {
		restart(r);
		if (len == 0)
			return more(r, 1);
		r->state = data[0] == '*' ? RESP_COUNT : RESP_INLINE;
	}
	switch (r->state) {
	case RESP_INLINE:
		return parse_inline(r, limits, data, len, ret_consumed);
	case RESP_SKIP_LINE:
		return skip_line(r, data, len, ret_consumed);
	case RESP_SKIP_HEAD:
	case RESP_SKIP_BODY:
		return skip_array(r, data, len, ret_consumed);
	default:
		return parse_array(r, limits, data, len, ret_consumed);
	}
}
