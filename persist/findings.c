/* SPDX-License-Identifier: MIT */
#include "persist/findings.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"

#define KEEP 10000

/* Known by its text: code|id|queue|detail. */
struct entry {
	UT_hash_handle hh;
	bool left; /* not repaired, as far as was seen */
	bool seen; /* in this round */
	size_t code_len, id_len, queue_len, len;
	char text[];
};

struct findings {
	struct entry *entries;
	struct finding_code codes[FINDING_CODES_MAX];
	size_t code_count;
	int64_t count, left;
	/* Left of those that are not remembered: in this round so far, in the one before. */
	int64_t more_left, more_left_before;
	bool repeated; /* a round has ended */
};

struct findings *findings_new(void)
{
	return xcalloc(1, sizeof(struct findings));
}

void findings_free(struct findings *f)
{
	struct entry *e, *tmp;

	if (f == NULL)
		return;
	HASH_ITER (hh, f->entries, e, tmp) {
		HASH_DEL(f->entries, e);
		free(e);
	}
	free(f);
}

static void count(struct findings *f, struct bytes code)
{
	size_t i = 0;

	f->count++;
	while (i < f->code_count && !bytes_eq(bytes_of(f->codes[i].name), code))
		i++;
	if (i == FINDING_CODES_MAX)
		return;
	if (i == f->code_count)
		bytes_copy(f->codes[f->code_count++].name, sizeof(f->codes[0].name), code);
	f->codes[i].count++;
}

static struct entry *remember(struct findings *f, const struct finding *finding, const struct buf *text)
{
	struct entry *e = xcalloc(1, sizeof(*e) + text->len);

	e->code_len = finding->code.n;
	e->id_len = finding->id.n;
	e->queue_len = finding->queue.n;
	e->len = text->len;
	memcpy(e->text, text->data, text->len);
	HASH_ADD_KEYPTR(hh, f->entries, e->text, e->len, e);
	return e;
}

/* One that is not remembered: of a later round it is new only when it has been repaired, since otherwise it
 * was there before. */
static void add_unknown(struct findings *f, const struct finding *finding)
{
	if (!f->repeated || finding->repaired)
		count(f, finding->code);
	if (!finding->repaired)
		f->more_left++;
}

bool findings_add(struct findings *f, const struct finding *finding)
{
	struct buf text = BUF_INIT;
	struct entry *e;

	buf_add_bytes(&text, finding->code);
	buf_add_char(&text, '|');
	buf_add_bytes(&text, finding->id);
	buf_add_char(&text, '|');
	buf_add_bytes(&text, finding->queue);
	buf_add_char(&text, '|');
	buf_add_bytes(&text, finding->detail);
	HASH_FIND(hh, f->entries, text.data, text.len, e);
	bool known = e != NULL;
	if (!known && HASH_COUNT(f->entries) >= KEEP) {
		add_unknown(f, finding);
	} else {
		if (!known) {
			e = remember(f, finding, &text);
			count(f, finding->code);
		}
		f->left += (finding->repaired ? 0 : 1) - (e->left ? 1 : 0);
		e->left = !finding->repaired;
		e->seen = true;
	}
	buf_release(&text);
	return !known;
}

void findings_end_round(struct findings *f)
{
	f->left = 0;
	f->more_left_before = f->more_left;
	f->more_left = 0;
	f->repeated = true;
	for (struct entry *e = f->entries; e != NULL; e = e->hh.next) {
		e->left = e->left && e->seen;
		e->seen = false;
		f->left += e->left;
	}
}

int64_t findings_count(const struct findings *f)
{
	return f->count;
}

int64_t findings_left(const struct findings *f)
{
	return f->left + (f->repeated ? f->more_left_before : f->more_left);
}

const struct finding_code *findings_codes(const struct findings *f, size_t *ret_count)
{
	*ret_count = f->code_count;
	return f->codes;
}

size_t findings_list(const struct findings *f, struct finding *list, size_t max)
{
	size_t n = 0;

	for (const struct entry *e = f->entries; e != NULL && n < max; e = e->hh.next) {
		const char *id = e->text + e->code_len + 1, *queue = id + e->id_len + 1;
		const char *detail = queue + e->queue_len + 1;
		list[n++] = (struct finding){.code = {e->text, e->code_len},
			.id = {id, e->id_len},
			.queue = {queue, e->queue_len},
			.detail = {detail, (size_t)(e->text + e->len - detail)},
			.repaired = !e->left};
	}
	return n;
}
