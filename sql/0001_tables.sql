-- SPDX-License-Identifier: MIT
-- The tables of Muster. Runs on MariaDB 10.11 and later and on MySQL 8.0 and later.
--
-- Ids come from outside and are bytes (VARBINARY): a collation would fold case, accents and trailing blanks of two
-- people into one key. Words of ours are ascii_bin. Times are UTC, with the local offset in minutes beside them.
-- Columns of unique keys are NOT NULL, with '' for "none", since NULLs do not collide. Every unique key of the large
-- tables begins with work_date, so that they can be partitioned by month without a change.

-- Departments as of now; a removed one stays, with its state.
CREATE TABLE IF NOT EXISTS department (
  id VARBINARY(64) NOT NULL,
  name VARCHAR(255) NOT NULL DEFAULT '',
  parent VARBINARY(64) NOT NULL DEFAULT '',
  path VARBINARY(8192) NOT NULL DEFAULT '',
  manager VARBINARY(64) NOT NULL DEFAULT '',
  state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'active',
  version BIGINT NOT NULL DEFAULT 0,
  updated DATETIME(3) NOT NULL,
  PRIMARY KEY (id),
  KEY parent (parent)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;

-- Employees as of now; one who left stays, as 'removed'.
CREATE TABLE IF NOT EXISTS employee (
  id VARBINARY(64) NOT NULL,
  name VARCHAR(255) NOT NULL DEFAULT '',
  dept VARBINARY(64) NOT NULL DEFAULT '',
  state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'active',
  updated DATETIME(3) NOT NULL,
  journal_ref VARBINARY(64) NOT NULL DEFAULT '',
  PRIMARY KEY (id),
  KEY dept (dept)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;

-- Every accepted punch, as it came; append-only.
CREATE TABLE IF NOT EXISTS attendance_event (
  work_date DATE NOT NULL,
  employee VARBINARY(64) NOT NULL,
  at_ms BIGINT NOT NULL,
  direction CHAR(1) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  dept VARBINARY(64) NOT NULL,
  at DATETIME(3) NOT NULL,
  received DATETIME(3) NOT NULL,
  utc_offset SMALLINT NOT NULL,
  event_id VARBINARY(64) NOT NULL DEFAULT '',
  source VARBINARY(64) NOT NULL DEFAULT '',
  marks VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  late TINYINT NOT NULL DEFAULT 0,
  journal_ref VARBINARY(64) NOT NULL DEFAULT '',
  PRIMARY KEY (work_date, employee, at_ms, direction),
  KEY dept_date (dept, work_date)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;

-- One row per employee and work date; dept is the department of that day and never follows a later move.
CREATE TABLE IF NOT EXISTS attendance_day (
  work_date DATE NOT NULL,
  employee VARBINARY(64) NOT NULL,
  dept VARBINARY(64) NOT NULL,
  status VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  first_in DATETIME(3) NULL,
  last_out DATETIME(3) NULL,
  utc_offset SMALLINT NOT NULL,
  late_ms INT UNSIGNED NOT NULL DEFAULT 0,
  early_ms INT UNSIGNED NOT NULL DEFAULT 0,
  worked_ms INT UNSIGNED NOT NULL DEFAULT 0,
  punches SMALLINT UNSIGNED NOT NULL DEFAULT 0,
  punch_set VARBINARY(16384) NOT NULL DEFAULT '',
  reason VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  shift VARBINARY(64) NOT NULL DEFAULT 'default',
  calendar VARBINARY(64) NOT NULL DEFAULT 'default',
  day_type VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'work',
  revision INT UNSIGNED NOT NULL DEFAULT 1,
  created DATETIME(3) NOT NULL,
  updated DATETIME(3) NOT NULL,
  PRIMARY KEY (work_date, employee),
  KEY dept_date_status (dept, work_date, status),
  KEY employee_date (employee, work_date)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;

-- What a late event or a correction changed in a closed day, and why.
CREATE TABLE IF NOT EXISTS attendance_revision (
  work_date DATE NOT NULL,
  employee VARBINARY(64) NOT NULL,
  revision INT UNSIGNED NOT NULL,
  at DATETIME(3) NOT NULL,
  cause VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  cause_ref VARBINARY(96) NOT NULL DEFAULT '',
  old_status VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  new_status VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  old_in DATETIME(3) NULL,
  new_in DATETIME(3) NULL,
  old_out DATETIME(3) NULL,
  new_out DATETIME(3) NULL,
  old_punch_set VARBINARY(16384) NOT NULL DEFAULT '',
  new_punch_set VARBINARY(16384) NOT NULL DEFAULT '',
  PRIMARY KEY (work_date, employee, revision),
  KEY cause_ref (cause_ref)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;

-- The reconciling ledger of the close: expected = written + failed when a department's day is finished.
CREATE TABLE IF NOT EXISTS day_close (
  work_date DATE NOT NULL,
  dept VARBINARY(64) NOT NULL,
  phase VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  daemon VARBINARY(96) NOT NULL DEFAULT '',
  marker TINYINT NOT NULL DEFAULT 0,
  expected INT UNSIGNED NOT NULL DEFAULT 0,
  written INT UNSIGNED NOT NULL DEFAULT 0,
  failed INT UNSIGNED NOT NULL DEFAULT 0,
  absent INT UNSIGNED NOT NULL DEFAULT 0,
  started DATETIME(3) NOT NULL,
  finished DATETIME(3) NULL,
  PRIMARY KEY (work_date, dept)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;

-- What could not be written, each row with its reason; kind and ref name it, so that a repeat does not add one.
CREATE TABLE IF NOT EXISTS persist_failure (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  kind VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  ref VARBINARY(192) NOT NULL,
  work_date DATE NULL,
  dept VARBINARY(64) NOT NULL DEFAULT '',
  employee VARBINARY(255) NOT NULL DEFAULT '',
  reason VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  detail VARCHAR(255) NOT NULL DEFAULT '',
  payload BLOB NULL,
  owner VARBINARY(64) NOT NULL DEFAULT '',
  state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'open',
  attempts INT NOT NULL DEFAULT 1,
  created DATETIME(3) NOT NULL,
  updated DATETIME(3) NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY kind_ref (kind, ref),
  KEY state_id (state, id),
  KEY date_dept (work_date, dept)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;
