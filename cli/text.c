/* SPDX-License-Identifier: MIT */
#include "cli/text.h"

#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <wchar.h>

static bool utf8;

void text_init(void)
{
	utf8 = setlocale(LC_CTYPE, "") != NULL && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	if (!utf8)
		setlocale(LC_CTYPE, "C.UTF-8");
}

bool text_is_utf8(void)
{
	return utf8;
}

/* The next character: its bytes, and its columns, -1 when it can't be shown. */
static size_t next_character(const char *s, size_t n, int *ret_columns)
{
	mbstate_t state = {0};
	wchar_t c;
	size_t len = mbrtowc(&c, s, n, &state);

	if (len == (size_t)-1 || len == (size_t)-2 || len == 0) {
		*ret_columns = -1;
		return 1;
	}
	*ret_columns = wcwidth(c);
	return len;
}

size_t text_width(const char *s, size_t n)
{
	size_t width = 0;

	for (size_t i = 0; i < n;) {
		int columns;
		i += next_character(s + i, n - i, &columns);
		width += columns < 0 ? 1 : (size_t)columns;
	}
	return width;
}

void text_clean(struct buf *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		int columns;
		size_t len = next_character(s + i, n - i, &columns);
		if (columns < 0)
			buf_add_char(out, '?');
		else
			buf_add(out, s + i, len);
		i += len;
	}
}
