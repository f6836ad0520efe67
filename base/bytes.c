/* SPDX-License-Identifier: MIT */
#include "base/bytes.h"

#include <limits.h>
#include <strings.h>

bool bytes_eq(struct bytes a, struct bytes b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool bytes_is_word(struct bytes a, const char *word)
{
	return strlen(word) == a.n && strncasecmp(a.p, word, a.n) == 0;
}

bool bytes_to_i64(struct bytes b, int64_t *ret)
{
	size_t i = 0;
	bool negative = b.n > 0 && b.p[0] == '-';
	uint64_t value = 0;

	i += negative;
	if (i == b.n || b.n - i > 19)
		return false;
	for (; i < b.n; i++) {
		if (b.p[i] < '0' || b.p[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(b.p[i] - '0');
	}
	if (value > (uint64_t)INT64_MAX)
		return false;
	*ret = negative ? -(int64_t)value : (int64_t)value;
	return true;
}

static bool id_byte(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
	       c == '-';
}

bool id_valid(struct bytes b)
{
	if (b.n == 0 || b.n > ID_MAX || (b.n == 1 && b.p[0] == '-'))
		return false;
	for (size_t i = 0; i < b.n; i++) {
		if (!id_byte((unsigned char)b.p[i]))
			return false;
	}
	return true;
}

bool person_id_valid(struct bytes b)
{
	if (b.n == 0 || b.n > ID_MAX || (b.n == 1 && b.p[0] == '-'))
		return false;
	for (size_t i = 0; i < b.n; i++) {
		unsigned char c = (unsigned char)b.p[i];
		if (!id_byte(c) && c != '.' && c != '@')
			return false;
	}
	return true;
}

size_t utf8_sequence(const unsigned char *p, size_t n)
{
	static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len = p[0] < 0x80         ? 1
		     : (p[0] >> 5) == 6  ? 2
		     : (p[0] >> 4) == 14 ? 3
		     : (p[0] >> 3) == 30 ? 4
					 : 0;
	uint32_t code = len == 1 ? p[0] : p[0] & (0x7fu >> len);

	if (len == 0 || len > n)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	bool surrogate = code >= 0xd800 && code <= 0xdfff;
	return code < smallest[len] || code > 0x10ffff || surrogate ? 0 : len;
}

bool name_valid(struct bytes b)
{
	const unsigned char *p = (const unsigned char *)b.p;

	if (b.n > NAME_MAX_BYTES)
		return false;
	for (size_t i = 0; i < b.n;) {
		size_t len = utf8_sequence(p + i, b.n - i);
		if (len == 0 || p[i] < 0x20 || p[i] == 0x7f)
			return false;
		i += len;
	}
	return true;
}

int bytes_split(struct bytes b, char separator, struct bytes *fields, int max)
{
	int count = 0;

	while (count < max - 1) {
		const char *end = b.n > 0 ? memchr(b.p, separator, b.n) : NULL;
		if (end == NULL)
			break;
		size_t n = (size_t)(end - b.p);
		fields[count++] = (struct bytes){b.p, n};
		b = (struct bytes){end + 1, b.n - n - 1};
	}
	fields[count++] = b;
	return count;
}

struct bytes bytes_cut(struct bytes *b, char separator)
{
	struct bytes part[2] = {{"", 0}, {"", 0}};

	bytes_split(*b, separator, part, 2);
	*b = part[1];
	return part[0];
}

char *bytes_copy(char *dst, size_t cap, struct bytes b)
{
	size_t n = b.n < cap - 1 ? b.n : cap - 1;
	if (n > 0)
		memcpy(dst, b.p, n);
	dst[n] = '\0';
	return dst;
}
