/* SPDX-License-Identifier: MIT */
#include "base/duration.h"

#include "base/mem.h"

#define SECOND INT64_C(1000)

static const struct {
	const char *suffix;
	int64_t ms;
} units[] = {{"ms", 1}, {"s", SECOND}, {"m", 60 * SECOND}, {"h", 3600 * SECOND}, {"d", 86400 * SECOND}};

/* The factor of what stands behind the number; 0 when it is no unit. */
static int64_t unit_of(struct bytes suffix)
{
	if (suffix.n == 0)
		return SECOND;
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (bytes_is_word(suffix, units[i].suffix))
			return units[i].ms;
	}
	return 0;
}

/* Cuts the digits off the front. */
static struct bytes cut_digits(struct bytes *text)
{
	struct bytes digits = {text->p, 0};

	while (digits.n < text->n && text->p[digits.n] >= '0' && text->p[digits.n] <= '9')
		digits.n++;
	text->p += digits.n;
	text->n -= digits.n;
	return digits;
}

/* Digits that do not amount to a millisecond of the biggest unit add nothing. */
static int64_t fraction_of(struct bytes digits, int64_t unit)
{
	int64_t value = 0, scale = 1;

	for (size_t i = 0; i < digits.n && i < 9; i++) {
		value = value * 10 + (digits.p[i] - '0');
		scale *= 10;
	}
	return value * unit / scale;
}

bool duration_parse(struct bytes text, int64_t *ret_ms)
{
	struct bytes whole = cut_digits(&text), fraction = {"", 0};
	bool pointed = text.n > 0 && text.p[0] == '.';
	int64_t n, ms;

	if (pointed) {
		text.p++;
		text.n--;
		fraction = cut_digits(&text);
	}
	int64_t unit = unit_of(text);
	if (unit == 0 || (pointed && fraction.n == 0) || !bytes_to_i64(whole, &n) ||
		__builtin_mul_overflow(n, unit, &ms) ||
		__builtin_add_overflow(ms, fraction_of(fraction, unit), &ms))
		return false;
	*ret_ms = ms;
	return true;
}

void duration_format(struct buf *out, int64_t ms)
{
	size_t unit = ms == 0 ? 1 : 0;

	for (size_t i = 1; ms != 0 && i < ARRAY_LEN(units); i++) {
		if (ms % units[i].ms == 0)
			unit = i;
	}
	buf_add_i64(out, ms / units[unit].ms);
	buf_add_str(out, units[unit].suffix);
}
