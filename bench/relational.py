# SPDX-License-Identifier: MIT
"""The same tree in MariaDB: a table of parents, asked by recursive queries, and one of paths as a second way to store
it. Lists are read by the `mariadb` client, so that no slow reader stands in their way; queries for one node are run by
`mariadb-slap`, as many as there are ids."""
import os
import subprocess
import time
from contextlib import contextmanager

from scene import BenchError

from forest import parent_of, path_of

END = b"--- that was all ---\n"
SCHEMA = """
DROP TABLE IF EXISTS team, team_path;
CREATE TABLE team (id BIGINT PRIMARY KEY, parent BIGINT NULL, name VARCHAR(255) NOT NULL, KEY (parent)) ENGINE=InnoDB;
CREATE TABLE team_path (id BIGINT PRIMARY KEY, path VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  KEY (path)) ENGINE=InnoDB;
"""
SUBTREE = ("WITH RECURSIVE t AS (SELECT id FROM team WHERE parent = {id} UNION ALL "
           "SELECT c.id FROM team c JOIN t ON c.parent = t.id) ")
DESCENDANTS = SUBTREE + "SELECT id FROM t"
COUNT = SUBTREE + "SELECT COUNT(*) FROM t"
ANCESTORS = ("WITH RECURSIVE up AS (SELECT id, parent, name FROM team WHERE id = {id} UNION ALL "
             "SELECT p.id, p.parent, p.name FROM team p JOIN up ON p.id = up.parent) SELECT id, name FROM up")
ISBELOW = ("WITH RECURSIVE up AS (SELECT id, parent FROM team WHERE id = {id} UNION ALL "
           "SELECT p.id, p.parent FROM team p JOIN up ON p.id = up.parent) SELECT COUNT(*) FROM up WHERE id = 2")
GET = "SELECT id, parent, name FROM team WHERE id = {id}"
PATH_DESCENDANTS = "SELECT id FROM team_path WHERE path LIKE '{path}:%'"


class MariaDB:
    def __init__(self, scene):
        self.scene, self.state = scene, scene.stack.state
        database = f"muster_b{scene.number}"
        self.address = ["--no-defaults", "--host=127.0.0.1", f"--port={scene.stack['mariadb'].port()}",
                        f"--user={self.state['mysql_user']}"]
        self.environment = {**os.environ, "MYSQL_PWD": self.state["mysql_password"]}
        self.database = database
        self.client = subprocess.Popen(
            ["mariadb", *self.address, "--quick", "--batch", "--skip-column-names", "--unbuffered", "--local-infile=1",
             database], env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def close(self):
        self.client.stdin.close()
        self.client.wait(60)
        self.client.stdout.close()

    def run(self, query):
        """(rows, seconds) of a query, or of several."""
        begun = time.monotonic()
        self.client.stdin.write(f"{query};\nSELECT '{END.decode().strip()}';\n".encode())
        self.client.stdin.flush()
        rows, tail = 0, b""
        while not tail.endswith(END):
            chunk = os.read(self.client.stdout.fileno(), 1 << 20)
            if not chunk:
                raise BenchError(f"mariadb gave up on: {query}")
            rows += chunk.count(b"\n")
            tail = (tail + chunk)[-len(END):]
        return rows - 1, time.monotonic() - begun

    def rows(self, query):
        return self.run(query)[0]

    def load(self, nodes):
        """Seconds to fill both tables."""
        path = self.scene.dir / "teams.tsv"
        seconds = self.run(SCHEMA.strip().rstrip(";"))[1]
        for table, line in (("team", lambda i: f"{i}\t{parent_of(i) or chr(92) + 'N'}\tTeam {i}\n"),
                            ("team_path", lambda i: f"{i}\t{path_of(i)}\n")):
            with open(path, "w", encoding="utf-8") as f:
                f.writelines(line(i) for i in range(1, nodes + 1))
            path.chmod(0o644)
            seconds += self.run(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE {table}; ANALYZE TABLE {table}")[1]
        path.unlink()
        return seconds

    def each(self, query, ids):
        """Seconds that a query takes, run once for each id."""
        path = self.scene.dir / "queries.sql"
        path.write_text("".join(query.format(id=id) + ";\n" for id in ids))
        begun = time.monotonic()
        done = subprocess.run(
            ["mariadb-slap", *self.address, f"--create-schema={self.database}", "--delimiter=;", "--concurrency=1",
             "--iterations=1", f"--query={path}"], env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BenchError(f"mariadb-slap: {done.stderr}")
        return (time.monotonic() - begun) / len(ids)

    def add_wide(self, id, parent, width):
        self.run(f"INSERT INTO team VALUES ({id}, {parent}, 'Wide'); "
                 f"INSERT INTO team SELECT {id} + seq, {id}, 'Team' FROM seq_1_to_{width}")

    def move(self, node, parent):
        return self.run(f"UPDATE team SET parent = {parent} WHERE id = {node}")[1]

    def move_path(self, old, new):
        """The paths of a whole subtree, in one statement."""
        return self.run(f"UPDATE team_path SET path = CONCAT('{new}', SUBSTR(path, {len(old) + 1})) "
                        f"WHERE path = '{old}' OR path LIKE '{old}:%'")[1]

    def remove(self, node):
        return self.run("CREATE OR REPLACE TEMPORARY TABLE going (id BIGINT PRIMARY KEY); INSERT INTO going "
                        + DESCENDANTS.format(id=node)
                        + f"; INSERT INTO going VALUES ({node}); DELETE team FROM team JOIN going USING (id)")[1]

    def lift(self, node, parent):
        return self.run(f"BEGIN; UPDATE team SET parent = {parent} WHERE parent = {node}; "
                        f"DELETE FROM team WHERE id = {node}; COMMIT")[1]


@contextmanager
def connected(scene):
    database = MariaDB(scene)
    try:
        yield database
    finally:
        database.close()
