-- SPDX-License-Identifier: MIT
-- Tasks that have ended, what happened to them on the way, and reports of both.
--
-- Ids of tasks are ours, and sort by the time of submission. work_date is that of `finished` (of `at`), by the rule of
-- attendance. journal_ref is where the record stands in its partition's journal; an older one does not overwrite a
-- newer. Both tables can be partitioned by ranges of their keys' first column.

-- One row per task that has ended; one that was brought back is 'pending' until it ends again. A success keeps no
-- payload. NULL = none.
CREATE TABLE IF NOT EXISTS task (
  id CHAR(12) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  queue VARBINARY(64) NOT NULL,
  status VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  priority TINYINT UNSIGNED NOT NULL,
  submitted DATETIME(3) NOT NULL,
  claimed DATETIME(3) NULL,
  finished DATETIME(3) NULL,
  work_date DATE NOT NULL,
  worker VARBINARY(64) NOT NULL DEFAULT '',
  token BIGINT NULL,
  retries INT UNSIGNED NOT NULL DEFAULT 0,
  crashes INT UNSIGNED NOT NULL DEFAULT 0,
  dedupe_key VARBINARY(200) NOT NULL DEFAULT '',
  result MEDIUMBLOB NULL,
  error MEDIUMBLOB NULL,
  payload LONGBLOB NULL,
  updated DATETIME(3) NOT NULL,
  journal_ref VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  PRIMARY KEY (id),
  KEY date_queue (work_date, queue),
  KEY status_finished (status, finished)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;

-- What happened to tasks: attempts that failed, leases that ran out, releases, ends, and those brought back, in order.
-- A success without retries and crashes has no row: its row in task says all of it.
CREATE TABLE IF NOT EXISTS task_event (
  task CHAR(12) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  journal_ref VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  event VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  queue VARBINARY(64) NOT NULL,
  at DATETIME(3) NOT NULL,
  work_date DATE NOT NULL,
  retries INT UNSIGNED NOT NULL DEFAULT 0,
  crashes INT UNSIGNED NOT NULL DEFAULT 0,
  worker VARBINARY(64) NOT NULL DEFAULT '',
  token BIGINT NULL,
  claimed DATETIME(3) NULL,
  not_before DATETIME(3) NULL,
  error MEDIUMBLOB NULL,
  PRIMARY KEY (task, journal_ref),
  KEY date_queue (work_date, queue)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;

-- One row per work date and queue: how tasks ended, how long they waited (from their submission to the start of their
-- last run, so with delays and earlier runs) and how long the last run took. Milliseconds.
CREATE OR REPLACE VIEW task_daily AS
SELECT t.work_date, t.queue,
  COUNT(*) AS ended,
  SUM(t.status = 'success') AS success,
  SUM(t.status = 'failed') AS failed,
  SUM(t.status = 'timeout') AS timeout,
  SUM(t.status = 'cancelled') AS cancelled,
  ROUND(AVG(TIMESTAMPDIFF(MICROSECOND, t.submitted, t.claimed)) / 1000) AS wait_ms_mean,
  ROUND(MAX(TIMESTAMPDIFF(MICROSECOND, t.submitted, t.claimed)) / 1000) AS wait_ms_max,
  ROUND(AVG(IF(t.status = 'cancelled', NULL, TIMESTAMPDIFF(MICROSECOND, t.claimed, t.finished))) / 1000)
    AS run_ms_mean,
  ROUND(MAX(IF(t.status = 'cancelled', NULL, TIMESTAMPDIFF(MICROSECOND, t.claimed, t.finished))) / 1000)
    AS run_ms_max
FROM task t
WHERE t.status <> 'pending'
GROUP BY t.work_date, t.queue;

-- Tasks that have failed and were not brought back, with the error of their last run.
CREATE OR REPLACE VIEW task_failures AS
SELECT t.finished, t.work_date, t.queue, t.id AS task, t.status, t.retries, t.crashes, t.worker, t.dedupe_key,
  CONVERT(t.error USING utf8mb4) AS error, LENGTH(t.payload) AS payload_bytes
FROM task t
WHERE t.status IN ('failed', 'timeout');

-- One row per work date and queue in which not all went straight: attempts that failed and were tried again, leases
-- that ran out, releases, tasks brought back after their end, and how many tasks that were.
CREATE OR REPLACE VIEW task_retries AS
SELECT e.work_date, e.queue,
  COUNT(DISTINCT e.task) AS tasks,
  SUM(e.event = 'retry') AS retries,
  SUM(e.event = 'expired') AS expired,
  SUM(e.event = 'released') AS released,
  SUM(e.event = 'retried') AS brought_back,
  MAX(e.retries) AS retries_max
FROM task_event e
WHERE e.event IN ('retry', 'expired', 'released', 'retried')
GROUP BY e.work_date, e.queue;
