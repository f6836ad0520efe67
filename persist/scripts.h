/* SPDX-License-Identifier: MIT */
/* The Lua scripts of persist/lua/, embedded at build time. Each file's head says its keys, arguments and
 * reply. */
#ifndef PERSIST_SCRIPTS_H
#define PERSIST_SCRIPTS_H

#include "base/bytes.h"

enum script {
	SCRIPT_CHECKIN,
	SCRIPT_CLOSE_BEGIN,
	SCRIPT_CLOSE_FINISH,
	SCRIPT_CURSOR,
	SCRIPT_DAY_INIT,
	SCRIPT_EMPLOYEE_REMOVE,
	SCRIPT_EMPLOYEE_SET,
	SCRIPT_LEASE,
	SCRIPT_TEAM_ADD,
	SCRIPT_TEAM_BURY,
	SCRIPT_TEAM_CANCEL,
	SCRIPT_TEAM_CHECK,
	SCRIPT_TEAM_CHECK_KEYS,
	SCRIPT_TEAM_JOB,
	SCRIPT_TEAM_MEMBER,
	SCRIPT_TEAM_MEMBERS,
	SCRIPT_TEAM_MOVE,
	SCRIPT_TEAM_PAGE,
	SCRIPT_TEAM_READ,
	SCRIPT_TEAM_REMOVE,
	SCRIPT_TEAM_SET,
	SCRIPT_TRIM,
	SCRIPT_COUNT
};

struct bytes script_text(enum script script);
/* 40 hex digits. */
struct bytes script_sha1(enum script script);

#endif
