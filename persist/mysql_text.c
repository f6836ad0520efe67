/* SPDX-License-Identifier: MIT */
#include "persist/mysql_text.h"

#define DAY_MS           INT64_C(86400000)
#define YEAR_9999_END_MS INT64_C(253402300799999)

enum byte_class { PLAIN = 0, ESCAPED = 1, HIGH = 2 };

static unsigned classes_of(struct bytes s)
{
	unsigned seen = PLAIN;

	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		seen |= c >= 0x80 ? HIGH : c == '\'' || c == '\\' || c == '\0' ? ESCAPED : PLAIN;
	}
	return seen;
}

static void add_hex(struct buf *out, struct bytes s)
{
	static const char digits[] = "0123456789abcdef";

	if (!buf_reserve(out, 2 * s.n + 3))
		return;
	char *p = out->data + out->len;
	*p++ = 'x';
	*p++ = '\'';
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		*p++ = digits[c >> 4];
		*p++ = digits[c & 15];
	}
	*p++ = '\'';
	*p = '\0';
	out->len = (size_t)(p - out->data);
}

/* '' rather than \', so that not even a session in another mode could be made to run what was quoted. */
static void add_escaped(struct buf *out, struct bytes s)
{
	if (!buf_reserve(out, 2 * s.n + 2))
		return;
	char *p = out->data + out->len;
	*p++ = '\'';
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		if (c == '\'' || c == '\\')
			*p++ = c;
		else if (c == '\0')
			*p++ = '\\';
		*p++ = c == '\0' ? '0' : c;
	}
	*p++ = '\'';
	*p = '\0';
	out->len = (size_t)(p - out->data);
}

void mysql_add_quoted(struct buf *out, struct bytes s)
{
	unsigned seen = classes_of(s);

	if ((seen & HIGH) != 0 && !name_valid(s)) {
		add_hex(out, s);
	} else if ((seen & ESCAPED) != 0) {
		add_escaped(out, s);
	} else if (buf_reserve(out, s.n + 2)) {
		char *p = out->data + out->len;
		*p++ = '\'';
		if (s.n > 0)
			memcpy(p, s.p, s.n);
		p[s.n] = '\'';
		p[s.n + 1] = '\0';
		out->len += s.n + 2;
	}
}

/* The civil date of a day count from 1970-01-01 (Hinnant's algorithm; days >= 0 here). */
static void civil(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
	int64_t z = days + 719468;
	int64_t era = z / 146097;
	int64_t of_era = z - era * 146097;
	int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
	int64_t month = (5 * of_year + 2) / 153;

	*ret_day = (int)(of_year - (153 * month + 2) / 5 + 1);
	*ret_month = (int)(month < 10 ? month + 3 : month - 9);
	*ret_year = (int)(year + era * 400 + (*ret_month <= 2));
}

static char *put(char *p, int value, int digits)
{
	for (int i = digits - 1; i >= 0; i--) {
		p[i] = (char)('0' + value % 10);
		value /= 10;
	}
	return p + digits;
}

void mysql_add_datetime(struct buf *out, int64_t unix_ms)
{
	char text[32];
	char *p = text;
	int year, month, day;
	int64_t ms = unix_ms % DAY_MS;

	if (unix_ms < 0) {
		buf_add(out, "NULL", 4);
		return;
	}
	if (unix_ms > YEAR_9999_END_MS) {
		buf_add_str(
			out, "'out of range'"); /* the server refuses it: a data error, not a wrong date */
		return;
	}
	civil(unix_ms / DAY_MS, &year, &month, &day);
	*p++ = '\'';
	p = put(p, year, 4);
	*p++ = '-';
	p = put(p, month, 2);
	*p++ = '-';
	p = put(p, day, 2);
	*p++ = ' ';
	p = put(p, (int)(ms / 3600000), 2);
	*p++ = ':';
	p = put(p, (int)(ms / 60000 % 60), 2);
	*p++ = ':';
	p = put(p, (int)(ms / 1000 % 60), 2);
	*p++ = '.';
	p = put(p, (int)(ms % 1000), 3);
	*p++ = '\'';
	buf_add(out, text, (size_t)(p - text));
}
