-- SPDX-License-Identifier: MIT
-- What Muster's tables are asked most often: mariadb muster < report.sql (or mysql). Dates are work dates; times in
-- daily_sheet are local, in the tables UTC.

-- Who was not simply present on the newest closed day, department by department.
SELECT dept, dept_name, employee, name, status, local_in, local_out, late_minutes
FROM exceptions_today
ORDER BY dept, status, employee;

-- The last seven closed days of the company, a line a day.
SELECT work_date, SUM(employees) AS employees, SUM(present) AS present, SUM(late + late_early) AS late,
  SUM(absent) AS absent, ROUND(100 * SUM(absent) / SUM(employees), 1) AS absent_percent
FROM daily_department
GROUP BY work_date
ORDER BY work_date DESC
LIMIT 7;

-- This month's people with three absences or more.
SELECT employee, name, dept_now, days, absent, late + late_early AS late
FROM monthly_employee
WHERE month = (SELECT DATE_FORMAT(MAX(work_date), '%Y-%m') FROM day_close) AND absent >= 3
ORDER BY absent DESC, employee;

-- One department and all below it; a path holds the ids from the top down, with ':' between them.
SELECT s.work_date, s.dept, s.status, COUNT(*) AS people
FROM daily_sheet s
JOIN department d ON d.id = s.dept
WHERE CONCAT(':', d.path, ':') LIKE '%:research:%' AND s.work_date = (SELECT MAX(work_date) FROM day_close)
GROUP BY s.work_date, s.dept, s.status
ORDER BY s.dept, s.status;

-- Closes that do not add up, or are not finished: always empty on a healthy system.
SELECT work_date, dept, phase, expected, written, failed
FROM day_close
WHERE finished IS NULL OR expected <> written + failed;

-- What a late event changed after the close.
SELECT work_date, employee, revision, cause, old_status, new_status, at
FROM attendance_revision
ORDER BY at DESC
LIMIT 20;
