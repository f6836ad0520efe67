/* SPDX-License-Identifier: MIT */
#include "rules/punch.h"

#include <stdlib.h>

#include "base/mem.h"

static const char *const names[ATTENDANCE_COUNT] = {
	[ATTENDANCE_NOT_YET] = "not_yet",
	[ATTENDANCE_PRESENT] = "present",
	[ATTENDANCE_LATE] = "late",
	[ATTENDANCE_EARLY] = "early",
	[ATTENDANCE_LATE_EARLY] = "late_early",
	[ATTENDANCE_MISSING_IN] = "missing_in",
	[ATTENDANCE_MISSING_OUT] = "missing_out",
	[ATTENDANCE_ABSENT] = "absent",
};

const char *attendance_name(enum attendance a)
{
	return names[a];
}

bool attendance_from_name(struct bytes name, enum attendance *ret)
{
	for (int i = 0; i < ATTENDANCE_COUNT; i++) {
		if (bytes_is_word(name, names[i])) {
			*ret = (enum attendance)i;
			return true;
		}
	}
	return false;
}

static bool parse_token(struct bytes token, struct punch *ret)
{
	if (token.n < 2 || (token.p[0] != 'I' && token.p[0] != 'O' && token.p[0] != 'U'))
		return false;
	const char *mark = memchr(token.p, '#', token.n);
	size_t digits = (mark != NULL ? (size_t)(mark - token.p) : token.n) - 1;
	ret->direction = token.p[0];
	ret->event_id =
		mark != NULL ? (struct bytes){mark + 1, token.n - digits - 2} : (struct bytes){NULL, 0};
	return bytes_to_i64((struct bytes){token.p + 1, digits}, &ret->at) && ret->at >= 0;
}

int punch_set_parse(struct bytes set, struct punch punches[PUNCH_SET_MAX])
{
	int count = 0;

	while (set.n > 0) {
		const char *blank = memchr(set.p, ' ', set.n);
		size_t n = blank != NULL ? (size_t)(blank - set.p) : set.n;
		bool trailing = blank != NULL && n + 1 == set.n;
		if (count == PUNCH_SET_MAX || trailing ||
			!parse_token((struct bytes){set.p, n}, &punches[count]))
			return -1;
		count++;
		size_t step = blank != NULL ? n + 1 : n;
		set.p += step;
		set.n -= step;
	}
	return count;
}

static int by_time(const void *a, const void *b)
{
	const struct punch *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return (x->direction > y->direction) - (x->direction < y->direction);
}

/* Drops, from sorted punches, those within the window of the last that counted in their direction. */
static int debounce(struct punch *punches, int count, int64_t window)
{
	static const char directions[] = "IOU";
	int64_t last[3] = {-1, -1, -1};
	int kept = 0;

	for (int i = 0; i < count; i++) {
		int d = (int)(strchr(directions, punches[i].direction) - directions);
		if (last[d] >= 0 && punches[i].at - last[d] <= window)
			continue;
		last[d] = punches[i].at;
		punches[kept++] = punches[i];
	}
	return kept;
}

static bool only_outs(const struct punch *punches, int count)
{
	for (int i = 0; i < count; i++) {
		if (punches[i].direction != 'O')
			return false;
	}
	return true;
}

/* Turns U into I or O, and the first of several OUT into the in that it stands for. */
static void settle_directions(
	struct punch *punches, int count, const struct shift *shift, struct judgement *j)
{
	for (int i = 0; i < count; i++) {
		if (punches[i].direction == 'U')
			punches[i].direction = i == 0 ? 'I' : 'O';
	}
	if (count >= 2 && only_outs(punches, count) &&
		punches[0].at < shift->start + (shift->end - shift->start) / 2) {
		punches[0].direction = 'I';
		j->reason = "direction_guess";
	}
}

static void find_bounds(const struct punch *punches, int count, struct judgement *j)
{
	for (int i = 0; i < count; i++) {
		if (punches[i].direction == 'I' && j->in < 0)
			j->in = punches[i].at;
		if (punches[i].direction == 'O')
			j->out = punches[i].at;
	}
	/* An out before the first in is no end of this day's work. */
	if (j->in >= 0 && j->out >= 0 && j->out <= j->in)
		j->out = -1;
}

static enum attendance status_of(const struct judgement *j, bool closed)
{
	if (j->in < 0 && j->out < 0)
		return closed ? ATTENDANCE_ABSENT : ATTENDANCE_NOT_YET;
	if (j->in < 0)
		return ATTENDANCE_MISSING_IN;
	if (j->out < 0 && closed)
		return ATTENDANCE_MISSING_OUT;
	if (j->late_ms > 0)
		return j->early_ms > 0 ? ATTENDANCE_LATE_EARLY : ATTENDANCE_LATE;
	return j->early_ms > 0 ? ATTENDANCE_EARLY : ATTENDANCE_PRESENT;
}

int punch_judge(struct bytes set, const struct shift *shift, bool closed, struct judgement *ret)
{
	static struct punch punches[PUNCH_SET_MAX]; /* one thread; 32 KB that need not be on the stack */
	struct judgement j = {.in = -1, .out = -1, .reason = ""};

	int count = punch_set_parse(set, punches);
	if (count < 0)
		return -1;
	qsort(punches, (size_t)count, sizeof(punches[0]), by_time);
	count = debounce(punches, count, shift->debounce);
	settle_directions(punches, count, shift, &j);
	find_bounds(punches, count, &j);
	j.punches = count;
	if (j.in > shift->start)
		j.late_ms = j.in - shift->start;
	/* While the day is open, somebody who came back in has not left early. */
	bool left = closed || (count > 0 && punches[count - 1].direction == 'O');
	if (j.out >= 0 && j.out < shift->end && left)
		j.early_ms = shift->end - j.out;
	if (j.in >= 0 && j.out >= 0)
		j.worked_ms = j.out - j.in;
	j.status = status_of(&j, closed);
	*ret = j;
	return 0;
}
