/* SPDX-License-Identifier: MIT */
/* Messages in the making, for notice.c: to whom one goes, by its keys, what it begins with, and which one a
 * further event joins. */
#ifndef MQ_NOTICE_MESSAGE_H
#define MQ_NOTICE_MESSAGE_H

#include "mq/notice.h"

enum what { WHAT_IN, WHAT_OUT, WHAT_LATE, WHAT_ABSENT, WHAT_WITHDRAWN, WHAT_CLOSED, WHAT_TEAM, WHAT_TASK };

/* Whom a message is for and about. `home` differs from `dept` for a person who was moved during the day: then
 * the supervisors of both hear of it. */
struct address {
	enum what what;
	struct bytes dept, home, date;
	struct bytes change; /* of a team or task */
	struct bytes queue;  /* of a task, which has no department */
};

/* The message that one more event of this kind goes into; a new one when there is none or it is full. `ref`:
 * of the event's record. NULL when the department is not known. */
struct notice *message_for(
	struct notices *all, const struct address *to, struct bytes ref, const struct tree *tree);
/* Of a change of the tree, one message each: where the team stands, and where it stood before, if it moved.
 */
struct notice *message_for_team(struct notices *all, const struct address *to, struct bytes ref,
	struct bytes path, struct bytes old_path, struct bytes name);
struct notice *message_for_queue(struct notices *all, const struct address *to, struct bytes ref);

/* Or is to be told of all the same; else it is noted in `all`. */
bool message_dept_known(struct notices *all, const struct tree *tree, struct bytes dept);
/* A path as a JSON array of its ids. */
void message_add_path(struct buf *out, struct bytes path);

#endif
