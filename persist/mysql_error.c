/* SPDX-License-Identifier: MIT */
#include "persist/mysql_error.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

/* The names are those of the servers' manuals. Keep it sorted: it is searched by halves. */
static const struct sql_code codes[] = {
	{1020, SQL_RETRY},    /* CHECKREAD: the row changed under a snapshot (MariaDB 11.6 and later) */
	{1021, SQL_BUSY},     /* DISK_FULL */
	{1037, SQL_BUSY},     /* OUTOFMEMORY */
	{1038, SQL_BUSY},     /* OUT_OF_SORTMEMORY */
	{1040, SQL_BUSY},     /* CON_COUNT_ERROR */
	{1041, SQL_BUSY},     /* OUT_OF_RESOURCES */
	{1044, SQL_SCHEMA},   /* DBACCESS_DENIED */
	{1045, SQL_SCHEMA},   /* ACCESS_DENIED */
	{1046, SQL_SCHEMA},   /* NO_DB */
	{1047, SQL_BUSY},     /* UNKNOWN_COM: also a Galera node that is not ready */
	{1048, SQL_DATA},     /* BAD_NULL */
	{1049, SQL_SCHEMA},   /* BAD_DB */
	{1053, SQL_LOST},     /* SERVER_SHUTDOWN */
	{1054, SQL_SCHEMA},   /* BAD_FIELD */
	{1062, SQL_DATA},     /* DUP_ENTRY */
	{1064, SQL_SCHEMA},   /* PARSE_ERROR */
	{1114, SQL_BUSY},     /* RECORD_FILE_FULL */
	{1129, SQL_BUSY},     /* HOST_IS_BLOCKED */
	{1130, SQL_SCHEMA},   /* HOST_NOT_PRIVILEGED */
	{1135, SQL_BUSY},     /* CANT_CREATE_THREAD */
	{1136, SQL_SCHEMA},   /* WRONG_VALUE_COUNT_ON_ROW */
	{1142, SQL_SCHEMA},   /* TABLEACCESS_DENIED */
	{1143, SQL_SCHEMA},   /* COLUMNACCESS_DENIED */
	{1146, SQL_SCHEMA},   /* NO_SUCH_TABLE */
	{1152, SQL_LOST},     /* ABORTING_CONNECTION */
	{1153, SQL_DATA},     /* NET_PACKET_TOO_LARGE: halving the batch finds the row */
	{1158, SQL_LOST},     /* NET_READ_ERROR */
	{1159, SQL_LOST},     /* NET_READ_INTERRUPTED */
	{1160, SQL_LOST},     /* NET_ERROR_ON_WRITE */
	{1161, SQL_LOST},     /* NET_WRITE_INTERRUPTED */
	{1184, SQL_LOST},     /* NEW_ABORTING_CONNECTION */
	{1203, SQL_BUSY},     /* TOO_MANY_USER_CONNECTIONS */
	{1205, SQL_RETRY},    /* LOCK_WAIT_TIMEOUT: only the statement was rolled back */
	{1206, SQL_BUSY},     /* LOCK_TABLE_FULL */
	{1213, SQL_RETRY},    /* LOCK_DEADLOCK: the transaction was rolled back */
	{1223, SQL_READONLY}, /* CANT_UPDATE_WITH_READLOCK */
	{1226, SQL_BUSY},     /* USER_LIMIT_REACHED */
	{1227, SQL_SCHEMA},   /* SPECIFIC_ACCESS_DENIED */
	{1264, SQL_DATA},     /* WARN_DATA_OUT_OF_RANGE */
	{1265, SQL_DATA},     /* WARN_DATA_TRUNCATED */
	{1290, SQL_READONLY}, /* OPTION_PREVENTS_STATEMENT: --read-only */
	{1292, SQL_DATA},     /* TRUNCATED_WRONG_VALUE */
	{1300, SQL_DATA},     /* INVALID_CHARACTER_STRING */
	{1305, SQL_SCHEMA},   /* SP_DOES_NOT_EXIST */
	{1317, SQL_RETRY},    /* QUERY_INTERRUPTED: KILL QUERY */
	{1356, SQL_SCHEMA},   /* VIEW_INVALID */
	{1364, SQL_SCHEMA},   /* NO_DEFAULT_FOR_FIELD */
	{1365, SQL_DATA},     /* DIVISION_BY_ZERO */
	{1366, SQL_DATA},     /* TRUNCATED_WRONG_VALUE_FOR_FIELD */
	{1367, SQL_DATA},     /* ILLEGAL_VALUE_FOR_TYPE */
	{1370, SQL_SCHEMA},   /* PROCACCESS_DENIED */
	{1406, SQL_DATA},     /* DATA_TOO_LONG */
	{1411, SQL_DATA},     /* WRONG_VALUE_FOR_TYPE */
	{1412, SQL_RETRY},    /* TABLE_DEF_CHANGED */
	{1441, SQL_DATA},     /* DATETIME_FUNCTION_OVERFLOW */
	{1451, SQL_DATA},     /* ROW_IS_REFERENCED */
	{1452, SQL_DATA},     /* NO_REFERENCED_ROW */
	{1525, SQL_DATA},     /* WRONG_VALUE */
	{1637, SQL_BUSY},     /* TOO_MANY_CONCURRENT_TRXS */
	{1690, SQL_DATA},     /* DATA_OUT_OF_RANGE */
	{1792, SQL_READONLY}, /* CANT_EXECUTE_IN_READ_ONLY_TRANSACTION */
	{1836, SQL_READONLY}, /* READ_ONLY_MODE */
	{1874, SQL_READONLY}, /* INNODB_READ_ONLY */
	{1927, SQL_LOST},     /* CONNECTION_KILLED */
	{1932, SQL_SCHEMA},   /* NO_SUCH_TABLE_IN_ENGINE */
	{1969, SQL_RETRY},    /* STATEMENT_TIMEOUT (MariaDB) */
	{2006, SQL_LOST},     /* CR_SERVER_GONE: also the answer to a statement above max_allowed_packet */
	{2013, SQL_LOST},     /* CR_SERVER_LOST */
	{2055, SQL_LOST},     /* CR_SERVER_LOST_EXTENDED */
	{3024, SQL_RETRY},    /* QUERY_TIMEOUT (MySQL) */
	{3058, SQL_RETRY},    /* USER_LOCK_DEADLOCK */
	{3101, SQL_RETRY},    /* TRANSACTION_ROLLBACK_DURING_COMMIT (group replication) */
	{3140, SQL_DATA},     /* INVALID_JSON_TEXT */
	{3572, SQL_RETRY},    /* LOCK_NOWAIT */
	{3819, SQL_DATA},     /* CHECK_CONSTRAINT_VIOLATED (MySQL) */
	{4025, SQL_DATA},     /* CONSTRAINT_FAILED (MariaDB) */
	{4031, SQL_LOST},     /* CLIENT_INTERACTION_TIMEOUT */
};

static int by_code(const void *key, const void *entry)
{
	unsigned code = *(const unsigned *)key;
	unsigned other = ((const struct sql_code *)entry)->code;

	return code < other ? -1 : code > other;
}

enum sql_outcome sql_classify(unsigned code)
{
	const struct sql_code *found = bsearch(&code, codes, ARRAY_LEN(codes), sizeof(codes[0]), by_code);

	if (found != NULL)
		return found->outcome;
	if (code == 0)
		return SQL_OK;
	bool client = (code >= 2000 && code < 3000) || (code >= 5000 && code < 6000);
	return client ? SQL_LOST : SQL_OTHER;
}

const char *sql_outcome_name(enum sql_outcome outcome)
{
	static const char *const names[] = {
		[SQL_OK] = "ok",
		[SQL_LOST] = "lost",
		[SQL_RETRY] = "retry",
		[SQL_DATA] = "data",
		[SQL_BUSY] = "busy",
		[SQL_READONLY] = "readonly",
		[SQL_SCHEMA] = "schema",
		[SQL_OTHER] = "other",
	};
	return names[outcome];
}

const struct sql_code *sql_codes(size_t *ret_count)
{
	*ret_count = ARRAY_LEN(codes);
	return codes;
}
