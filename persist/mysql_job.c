/* SPDX-License-Identifier: MIT */
#include "persist/mysql_job.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"

#define PACKET_MARGIN    16   /* MariaDB takes 2 bytes below its limit at the most */
#define PACKET_TOO_LARGE 1153 /* what a server says to a statement above its limit, when it says anything */

static void enter(struct mysql_job *job, enum mysql_job_state to)
{
	static const char *const names[] = {"queued", "begin", "statement", "commit", "rollback", "done"};

	assert(to > job->state || (to == MYSQL_JOB_STATEMENT && job->state == MYSQL_JOB_STATEMENT));
	if (to != job->state)
		log_debug(
			"mysql job %p event=state change=%s->%s", (void *)job, names[job->state], names[to]);
	job->state = to;
}

static void set_fault(struct mysql_job *job, unsigned code, const char *message)
{
	snprintf(job->message, sizeof(job->message), "%s", message);
	job->result.outcome = sql_classify(code);
	job->result.code = code;
	job->result.failed = job->state == MYSQL_JOB_STATEMENT ? job->at : MYSQL_NO_STATEMENT;
}

bool mysql_job_fail(struct mysql_job *job, unsigned code, const char *message, struct bytes *ret_sql)
{
	if (job->state == MYSQL_JOB_ROLLBACK)
		return false;
	set_fault(job, code, message);
	if (!job->transaction)
		return false;
	enter(job, MYSQL_JOB_ROLLBACK);
	*ret_sql = BYTES_LIT("ROLLBACK");
	return true;
}

void mysql_job_lose(struct mysql_job *job, unsigned code, const char *message)
{
	if (job->result.outcome == SQL_OK)
		set_fault(job, code, message);
}

static bool next_statement(struct mysql_job *job, size_t max_packet, struct bytes *ret_sql)
{
	struct bytes sql = job->statements[job->at];
	char message[96];

	enter(job, MYSQL_JOB_STATEMENT);
	if (sql.n + PACKET_MARGIN <= max_packet) {
		*ret_sql = sql;
		return true;
	}
	/* Sent, it would cost the connection: the server answers it by hanging up. */
	snprintf(message, sizeof(message), "a statement of %zu bytes is above max_allowed_packet, %zu", sql.n,
		max_packet);
	return mysql_job_fail(job, PACKET_TOO_LARGE, message, ret_sql);
}

bool mysql_job_start(struct mysql_job *job, size_t max_packet, struct bytes *ret_sql)
{
	if (!job->transaction)
		return next_statement(job, max_packet, ret_sql);
	enter(job, MYSQL_JOB_BEGIN);
	*ret_sql = BYTES_LIT("BEGIN");
	return true;
}

bool mysql_job_step(struct mysql_job *job, size_t max_packet, uint64_t affected, struct bytes *ret_sql)
{
	if (job->state == MYSQL_JOB_COMMIT || job->state == MYSQL_JOB_ROLLBACK)
		return false;
	if (job->state == MYSQL_JOB_STATEMENT)
		job->affected[job->at++] = affected;
	if (job->at < job->count)
		return next_statement(job, max_packet, ret_sql);
	if (!job->transaction)
		return false;
	enter(job, MYSQL_JOB_COMMIT);
	*ret_sql = BYTES_LIT("COMMIT");
	return true;
}

void mysql_job_complete(struct mysql_job *job)
{
	enter(job, MYSQL_JOB_DONE);
	job->cb(&job->result, job->arg);
	buf_release(&job->text);
	free(job->affected);
	free(job);
}

static struct mysql_job *new_job(size_t count, mysql_cb cb, void *arg)
{
	struct mysql_job *job = xcalloc(1, sizeof(*job));

	job->cb = cb;
	job->arg = arg;
	job->count = count;
	job->affected = xcalloc(count + 1, sizeof(*job->affected));
	job->result.affected = job->affected;
	job->result.message = job->message;
	job->result.failed = MYSQL_NO_STATEMENT;
	return job;
}

struct mysql_job *mysql_job_query(struct buf *sql, mysql_cb cb, void *arg)
{
	struct mysql_job *job = new_job(1, cb, arg);

	job->text = *sql;
	*sql = (struct buf){.limit = sql->limit};
	job->single = buf_bytes(&job->text);
	job->statements = &job->single;
	return job;
}

struct mysql_job *mysql_job_batch(const struct bytes *statements, size_t count, mysql_cb cb, void *arg)
{
	struct mysql_job *job = new_job(count, cb, arg);

	job->transaction = true;
	job->statements = statements;
	return job;
}
