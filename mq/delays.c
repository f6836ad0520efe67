/* SPDX-License-Identifier: MIT */
#include "mq/delays.h"

#include <string.h>

#include "base/mem.h"

#define DELAY_MAX_MS (30 * 24 * INT64_C(3600000))

static int64_t unit_ms(struct bytes suffix)
{
	static const struct {
		const char *text;
		int64_t ms;
	} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};

	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (bytes_eq(suffix, bytes_of(units[i].text)))
			return units[i].ms;
	}
	return 0;
}

/* Milliseconds of one word, or 0 when it is none. */
static int64_t parse_word(struct bytes word)
{
	size_t digits = 0;
	int64_t n;

	while (digits < word.n && word.p[digits] >= '0' && word.p[digits] <= '9')
		digits++;
	if (digits == 0 || digits > 10 || !bytes_to_i64((struct bytes){word.p, digits}, &n))
		return 0;
	n *= unit_ms((struct bytes){word.p + digits, word.n - digits});
	return n > DELAY_MAX_MS ? 0 : n;
}

int delays_parse(struct delays *ret, const char *text, struct buf *errors)
{
	struct delays d = {0};

	for (text += strspn(text, " \t,"); *text != '\0'; text += strspn(text, " \t,")) {
		struct bytes word = {text, strcspn(text, " \t,")};
		int64_t ms = parse_word(word);
		if (ms == 0 || word.n >= DELAY_TEXT_MAX || d.count == DELAYS_MAX) {
			buf_addf(errors,
				"delays: at most %d waits such as 500ms, 30s, 5m or 1h, not '%.*s'\n",
				DELAYS_MAX, (int)word.n, word.p);
			return -1;
		}
		bytes_copy(d.item[d.count].text, DELAY_TEXT_MAX, word);
		d.item[d.count++].ms = ms;
		text += word.n;
	}
	*ret = d;
	return 0;
}
