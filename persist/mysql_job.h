/* SPDX-License-Identifier: MIT */
/* One job of a link: a statement, or a transaction of several. It decides what is sent next and holds how it
 * went; the link (persist/mysql_link.c) sends, and lists the jobs. Knows no connection. */
#ifndef PERSIST_MYSQL_JOB_H
#define PERSIST_MYSQL_JOB_H

#include <sys/queue.h>

#include "persist/mysql_link.h"

#define MYSQL_ERROR_MAX 300 /* bytes kept of an error text */

enum mysql_job_state {
	MYSQL_JOB_QUEUED,
	MYSQL_JOB_BEGIN,     /* BEGIN was sent */
	MYSQL_JOB_STATEMENT, /* statements[at] was sent */
	MYSQL_JOB_COMMIT,    /* COMMIT was sent */
	MYSQL_JOB_ROLLBACK,  /* ROLLBACK was sent; the result holds why */
	MYSQL_JOB_DONE,      /* the result holds how it went */
};

struct mysql_job {
	enum mysql_job_state state;
	mysql_cb cb;
	void *arg;
	bool transaction;
	struct buf text;                /* of a single statement: owned */
	struct bytes single;            /* the same, as an array of one */
	const struct bytes *statements; /* borrowed, or &single */
	size_t count, at;
	struct mysql_result result;
	char message[MYSQL_ERROR_MAX]; /* what result.message points to */
	uint64_t *affected;            /* count entries, owned */
	TAILQ_ENTRY(mysql_job) link;
};

TAILQ_HEAD(mysql_jobs, mysql_job);

/* Takes the text of `sql`. */
struct mysql_job *mysql_job_query(struct buf *sql, mysql_cb cb, void *arg);
/* Borrows the statements until the job is completed. */
struct mysql_job *mysql_job_batch(const struct bytes *statements, size_t count, mysql_cb cb, void *arg);

/* Each of the three says what to send in *ret_sql, or returns false when the job is at its end. `max_packet`
 * is the server's limit: a statement above it fails here. */
bool mysql_job_start(struct mysql_job *job, size_t max_packet, struct bytes *ret_sql);
/* What was sent has succeeded. */
bool mysql_job_step(struct mysql_job *job, size_t max_packet, uint64_t affected, struct bytes *ret_sql);
/* What was sent has failed, and the connection is alive. */
bool mysql_job_fail(struct mysql_job *job, unsigned code, const char *message, struct bytes *ret_sql);

/* The connection is gone: the fault is this, unless the job had one before. */
void mysql_job_lose(struct mysql_job *job, unsigned code, const char *message);
/* Calls the callback and frees the job, which must be in no list. */
void mysql_job_complete(struct mysql_job *job);

#endif
