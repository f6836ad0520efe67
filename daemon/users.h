/* SPDX-License-Identifier: MIT */
/* Who may do what. The users file has one user a line:
 *
 *     name sha256-of-token right… [employee=ID]
 *
 * with the rights punch, read, write, task and admin, and the hash as `musterd --hash-token` prints it. '#'
 * begins a comment. A user bound to an employee may only call commands about that employee. Tokens are long
 * random strings and not passwords, so a plain hash is enough. */
#ifndef DAEMON_USERS_H
#define DAEMON_USERS_H

#include <stdbool.h>

#include "base/bytes.h"
#include "handlers/command.h"

struct buf;

#define TOKEN_HASH_TEXT 65 /* 64 hexadecimal digits and the NUL */

struct user {
	char name[ID_MAX + 1];
	char employee[ID_MAX + 1]; /* empty: not bound */
	unsigned char hash[32];
	unsigned rights; /* 1 << privilege */
};

struct users;

/* May everything; stands for every client when there is no users file. */
extern const struct user user_anyone;

/* An empty path gives a set in which nobody has to say who he is. NULL, with one line a fault in `errors`,
 * when the file can't be read or is wrong. */
struct users *users_load(const char *path, struct buf *errors) __attribute__((warn_unused_result));
void users_free(struct users *u);

bool users_required(const struct users *u);
/* The user of that name (NULL: of any name) whose token it is, or NULL. Takes as long whether it is right or
 * not. */
const struct user *users_check(const struct users *u, const struct bytes *name, struct bytes token);
/* The user of that name and hash, or NULL: whom a client of an older set still is. */
const struct user *users_same(const struct users *u, const struct user *old);
bool user_may(const struct user *user, enum privilege privilege);

/* Writes the hash of a token as the file wants it. */
void token_hash(struct bytes token, char text[TOKEN_HASH_TEXT]);

#endif
