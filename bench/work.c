/* SPDX-License-Identifier: MIT */
#include "bench/work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "bench/reply.h"

#define WORDS_MAX 64

void work_release(struct work *w)
{
	buf_release(&w->text);
	free(w->ends);
	*w = (struct work){0};
}

static void end_command(struct work *w)
{
	if (w->count == w->cap) {
		w->cap = w->cap == 0 ? 1024 : w->cap * 2;
		w->ends = xrealloc(w->ends, w->cap * sizeof(w->ends[0]));
	}
	w->ends[w->count++] = w->text.len;
}

void work_encode(struct buf *out, const struct bytes *words, int count)
{
	buf_addf(out, "*%d\r\n", count);
	for (int i = 0; i < count; i++) {
		buf_addf(out, "$%zu\r\n", words[i].n);
		buf_add_bytes(out, words[i]);
		buf_add(out, "\r\n", 2);
	}
}

void work_add(struct work *w, const struct bytes *words, int count)
{
	if (count == 0)
		return;
	work_encode(&w->text, words, count);
	end_command(w);
}

/* Calls fn for each line that is not empty, without its end. */
static int each_line(const char *file, void (*fn)(void *arg, struct bytes line), void *arg)
{
	FILE *f = strcmp(file, "-") == 0 ? stdin : fopen(file, "re");
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	if (f == NULL)
		return -1;
	while ((n = getline(&line, &cap, f)) >= 0) {
		size_t length = strcspn(line, "\r\n");
		if (length > 0)
			fn(arg, (struct bytes){line, length});
	}
	int result = ferror(f) ? -1 : 0;
	free(line);
	if (f != stdin)
		fclose(f);
	return result;
}

static void add_line(void *arg, struct bytes line)
{
	struct bytes words[WORDS_MAX], rest = line;
	int count = 0;

	while (rest.n > 0 && count < WORDS_MAX) {
		struct bytes f[2];
		int parts = bytes_split(rest, ' ', f, 2);
		if (f[0].n > 0)
			words[count++] = f[0];
		rest = parts == 2 ? f[1] : (struct bytes){"", 0};
	}
	work_add(arg, words, count);
}

int work_read(struct work *w, const char *file)
{
	return each_line(file, add_line, w);
}

/* One command more; false when the bytes are none. */
static bool add_encoded(struct work *w, struct bytes *rest)
{
	size_t n = reply_length(*rest);

	if (n == 0 || n == REPLY_MALFORMED)
		return false;
	buf_add(&w->text, rest->p, n);
	end_command(w);
	rest->p += n;
	rest->n -= n;
	return true;
}

int work_read_resp(struct work *w, const char *file)
{
	FILE *f = fopen(file, "re");
	struct stat st;

	if (f == NULL)
		return -1;
	if (fstat(fileno(f), &st) != 0 || st.st_size <= 0) {
		fclose(f);
		return -1;
	}
	char *data = xmalloc((size_t)st.st_size);
	struct bytes rest = {data, fread(data, 1, (size_t)st.st_size, f)};
	while (rest.n > 0 && add_encoded(w, &rest))
		continue;
	bool whole = rest.n == 0 && ferror(f) == 0;
	fclose(f);
	free(data);
	if (!whole)
		errno = EINVAL;
	return whole ? 0 : -1;
}

struct expansion {
	struct work *work;
	char *const *words;
	int count;
};

/* Adds a word to `out` with its {} replaced. */
static void expand(struct buf *out, const char *word, struct bytes line)
{
	const char *hole;

	while ((hole = strstr(word, "{}")) != NULL) {
		buf_add(out, word, (size_t)(hole - word));
		buf_add_bytes(out, line);
		word = hole + 2;
	}
	buf_add_str(out, word);
}

static void expand_line(void *arg, struct bytes line)
{
	const struct expansion *e = arg;
	struct buf text = BUF_INIT;
	struct bytes words[WORDS_MAX];
	size_t ends[WORDS_MAX];

	for (int i = 0; i < e->count; i++) {
		expand(&text, e->words[i], line);
		ends[i] = text.len;
	}
	for (int i = 0; i < e->count; i++) {
		size_t begin = i == 0 ? 0 : ends[i - 1];
		words[i] = (struct bytes){text.data + begin, ends[i] - begin};
	}
	work_add(e->work, words, e->count);
	buf_release(&text);
}

int work_expand(struct work *w, const char *file, char *const *words, int count)
{
	struct expansion e = {w, words, count < WORDS_MAX ? count : WORDS_MAX};

	return each_line(file, expand_line, &e);
}

struct bytes work_command(const struct work *w, uint64_t number)
{
	size_t i = (size_t)(number % w->count);
	size_t begin = i == 0 ? 0 : w->ends[i - 1];

	return (struct bytes){w->text.data + begin, w->ends[i] - begin};
}
