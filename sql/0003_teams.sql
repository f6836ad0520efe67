-- SPDX-License-Identifier: MIT
-- Teams as trees: paths of any depth, found by their beginning; who has joined which team; reports by subtree.

-- A path of 1,000 levels takes 65 kB. The one statement that can't be told to run only once asks first.
SET @ddl = IF((SELECT COUNT(*) FROM information_schema.statistics
    WHERE table_schema = DATABASE() AND table_name = 'department' AND index_name = 'path') = 0,
  'ALTER TABLE department MODIFY path BLOB NOT NULL, ADD KEY path (path(1024))', 'DO 0');
PREPARE ddl FROM @ddl;
EXECUTE ddl;
DEALLOCATE PREPARE ddl;

-- Who has joined which team, as of now; home departments are in `employee`.
CREATE TABLE IF NOT EXISTS team_member (
  team VARBINARY(64) NOT NULL,
  employee VARBINARY(64) NOT NULL,
  since DATETIME(3) NOT NULL,
  PRIMARY KEY (team, employee),
  KEY employee (employee)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;

-- Up to which record a journal is in these tables, where a record must not be applied twice.
CREATE TABLE IF NOT EXISTS journal_position (
  journal VARBINARY(16) NOT NULL,
  ref VARBINARY(96) NOT NULL,
  PRIMARY KEY (journal)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;

-- Each department with itself and all below it, by where they stand now; one that was removed counts to where it stood.
CREATE OR REPLACE VIEW department_below AS
SELECT a.id AS top, b.id AS dept
FROM department a
JOIN department b ON b.id = a.id
UNION ALL
SELECT a.id, b.id
FROM department a
JOIN department b ON b.path >= CONCAT(a.path, ':') AND b.path < CONCAT(a.path, ';');

-- One row per work date and department, with all below it as the tree is now.
CREATE OR REPLACE VIEW daily_subtree AS
SELECT d.work_date, s.top AS dept, MAX(p.name) AS dept_name,
  COUNT(DISTINCT d.dept) AS departments,
  COUNT(*) AS employees,
  SUM(d.status = 'present') AS present,
  SUM(d.status = 'late') AS late,
  SUM(d.status = 'early') AS early,
  SUM(d.status = 'late_early') AS late_early,
  SUM(d.status = 'missing_in') AS missing_in,
  SUM(d.status = 'missing_out') AS missing_out,
  SUM(d.status = 'absent') AS absent,
  SUM(d.status IN ('holiday', 'rest', 'leave', 'not_employed')) AS off,
  SUM(d.late_ms) AS late_ms,
  SUM(d.early_ms) AS early_ms,
  SUM(d.worked_ms) AS worked_ms
FROM department_below s
JOIN department p ON p.id = s.top
JOIN attendance_day d ON d.dept = s.dept
GROUP BY d.work_date, s.top;
