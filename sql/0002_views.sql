-- SPDX-License-Identifier: MIT
-- The views for reports; doc/reporting.md explains them to those who use them.

-- One row per work date and department, with the department of that day.
CREATE OR REPLACE VIEW daily_department AS
SELECT d.work_date, d.dept, MAX(p.name) AS dept_name,
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
FROM attendance_day d
LEFT JOIN department p ON p.id = d.dept
GROUP BY d.work_date, d.dept;

-- The months that have a closed day: month as text, its first day and the next month's, and whether it is one of the
-- two newest. Small, since day_close has one row per department and day.
CREATE OR REPLACE VIEW closed_month AS
SELECT DATE_FORMAT(c.work_date, '%Y-%m') AS month,
  CAST(DATE_FORMAT(MIN(c.work_date), '%Y-%m-01') AS DATE) AS first_day,
  CAST(DATE_FORMAT(MIN(c.work_date), '%Y-%m-01') AS DATE) + INTERVAL 1 MONTH AS next_month,
  MIN(c.work_date) >= (SELECT CAST(DATE_FORMAT(MAX(n.work_date), '%Y-%m-01') AS DATE) - INTERVAL 1 MONTH
    FROM day_close n WHERE n.finished IS NOT NULL) AS recent
FROM day_close c
WHERE c.finished IS NOT NULL
GROUP BY DATE_FORMAT(c.work_date, '%Y-%m');

-- One row per month and employee. Someone without a single row in a month appears too, with zeros, in the two newest
-- months, as long as he is on the roster; someone who left appears in the months in which he has rows.
CREATE OR REPLACE VIEW monthly_employee AS
SELECT m.month, e.id AS employee, e.name, e.dept AS dept_now,
  COUNT(DISTINCT d.dept) AS depts,
  COUNT(d.work_date) AS days,
  COALESCE(SUM(d.status = 'present'), 0) AS present,
  COALESCE(SUM(d.status = 'late'), 0) AS late,
  COALESCE(SUM(d.status = 'early'), 0) AS early,
  COALESCE(SUM(d.status = 'late_early'), 0) AS late_early,
  COALESCE(SUM(d.status = 'missing_in'), 0) AS missing_in,
  COALESCE(SUM(d.status = 'missing_out'), 0) AS missing_out,
  COALESCE(SUM(d.status = 'absent'), 0) AS absent,
  COALESCE(SUM(d.status IN ('holiday', 'rest', 'leave', 'not_employed')), 0) AS off,
  COALESCE(SUM(d.late_ms), 0) AS late_ms,
  COALESCE(SUM(d.early_ms), 0) AS early_ms,
  COALESCE(SUM(d.worked_ms), 0) AS worked_ms
FROM closed_month m
JOIN employee e
LEFT JOIN attendance_day d ON d.employee = e.id AND d.work_date >= m.first_day AND d.work_date < m.next_month
GROUP BY m.month, m.recent, e.id, e.name, e.dept, e.state
HAVING COUNT(d.work_date) > 0 OR (m.recent = 1 AND e.state = 'active');

-- One row per month and department, with the department of each day.
CREATE OR REPLACE VIEW monthly_department AS
SELECT DATE_FORMAT(d.work_date, '%Y-%m') AS month, d.dept, MAX(p.name) AS dept_name,
  COUNT(DISTINCT d.employee) AS employees,
  COUNT(*) AS days,
  SUM(d.status = 'present') AS present,
  SUM(d.status IN ('late', 'late_early')) AS late,
  SUM(d.status IN ('early', 'late_early')) AS early,
  SUM(d.status IN ('missing_in', 'missing_out')) AS missing,
  SUM(d.status = 'absent') AS absent,
  SUM(d.late_ms) AS late_ms,
  SUM(d.worked_ms) AS worked_ms
FROM attendance_day d
LEFT JOIN department p ON p.id = d.dept
GROUP BY DATE_FORMAT(d.work_date, '%Y-%m'), d.dept;

-- The newest closed day of each department; a department that was not closed on the newest date or the one before it
-- is left out, so that one that was dissolved does not show its last day for ever.
CREATE OR REPLACE VIEW latest_close AS
SELECT c.dept, MAX(c.work_date) AS work_date
FROM day_close c
WHERE c.finished IS NOT NULL
  AND c.work_date >= (SELECT MAX(n.work_date) - INTERVAL 1 DAY FROM day_close n WHERE n.finished IS NOT NULL)
GROUP BY c.dept;

-- Rows as people read them: names, local times, minutes.
CREATE OR REPLACE VIEW daily_sheet AS
SELECT d.work_date, d.employee, e.name, d.dept, p.name AS dept_name, d.status,
  d.first_in + INTERVAL d.utc_offset MINUTE AS local_in,
  d.last_out + INTERVAL d.utc_offset MINUTE AS local_out,
  d.utc_offset,
  FLOOR(d.late_ms / 60000) AS late_minutes,
  FLOOR(d.early_ms / 60000) AS early_minutes,
  FLOOR(d.worked_ms / 60000) AS worked_minutes,
  d.punches, d.reason, d.revision
FROM attendance_day d
LEFT JOIN employee e ON e.id = d.employee
LEFT JOIN department p ON p.id = d.dept;

-- Who was not simply present on the newest closed day of his department: a supervisor's morning view.
CREATE OR REPLACE VIEW exceptions_today AS
SELECT s.work_date, s.dept, s.dept_name, s.employee, s.name, s.status, s.local_in, s.local_out, s.utc_offset,
  s.late_minutes, s.early_minutes, s.reason, s.revision
FROM latest_close c
JOIN daily_sheet s ON s.dept = c.dept AND s.work_date = c.work_date
WHERE s.status NOT IN ('present', 'holiday', 'rest', 'leave', 'not_employed');

-- Per employee, over the 90 days up to the newest closed one.
CREATE OR REPLACE VIEW late_90_days AS
SELECT t.employee, e.name, e.dept AS dept_now, t.days, t.late, t.early, t.missing, t.absent, t.late_ms
FROM (
  SELECT d.employee,
    COUNT(*) AS days,
    SUM(d.status IN ('late', 'late_early')) AS late,
    SUM(d.status IN ('early', 'late_early')) AS early,
    SUM(d.status IN ('missing_in', 'missing_out')) AS missing,
    SUM(d.status = 'absent') AS absent,
    SUM(d.late_ms) AS late_ms
  FROM attendance_day d
  WHERE d.work_date > (SELECT MAX(c.work_date) - INTERVAL 90 DAY FROM day_close c WHERE c.finished IS NOT NULL)
  GROUP BY d.employee
) t
LEFT JOIN employee e ON e.id = t.employee;

-- The ledger of the close against the rows that are there. balanced = 0 needs a person; rows_found may exceed
-- written, since a late punch of someone who was not expected that day adds his row after the close.
CREATE OR REPLACE VIEW close_check AS
SELECT c.work_date, c.dept, c.phase, c.expected, c.written, c.failed, c.absent,
  (SELECT COUNT(*) FROM attendance_day d WHERE d.dept = c.dept AND d.work_date = c.work_date) AS rows_found,
  (SELECT COUNT(*) FROM persist_failure f
    WHERE f.work_date = c.work_date AND f.dept = c.dept AND f.state = 'open') AS open_failures,
  c.finished IS NOT NULL AND c.expected = c.written + c.failed
    AND (SELECT COUNT(*) FROM attendance_day d WHERE d.dept = c.dept AND d.work_date = c.work_date) >= c.written
    AS balanced
FROM day_close c;
