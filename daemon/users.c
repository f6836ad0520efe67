/* SPDX-License-Identifier: MIT */
#include "daemon/users.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"

#define ALL_RIGHTS                                                                                           \
	(1u << PRIV_PUNCH | 1u << PRIV_READ | 1u << PRIV_WRITE | 1u << PRIV_TASK | 1u << PRIV_ADMIN)
#define RIGHTS "punch, read, write, task, admin"
#define BLANKS " \t\r\n"

struct users {
	bool required;
	size_t count;
	struct user *list; /* owned */
};

const struct user user_anyone = {.name = "default", .rights = ALL_RIGHTS};

static void hash(struct bytes token, unsigned char out[32])
{
	unsigned size = 32;

	if (EVP_Digest(token.p, token.n, out, &size, EVP_sha256(), NULL) != 1)
		abort(); /* out of memory, or a libcrypto without SHA-256 */
}

void token_hash(struct bytes token, char text[TOKEN_HASH_TEXT])
{
	unsigned char digest[32];

	hash(token, digest);
	for (int i = 0; i < 32; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

static bool parse_hash(const char *word, unsigned char out[32])
{
	if (strlen(word) != 64 || strspn(word, "0123456789abcdefABCDEF") != 64)
		return false;
	for (int i = 0; i < 32; i++) {
		char pair[3] = {word[2 * i], word[2 * i + 1], '\0'};
		out[i] = (unsigned char)strtoul(pair, NULL, 16);
	}
	return true;
}

/* Cuts the next word out of *at, or NULL at the end. */
static char *next_word(char **at, const char *separators)
{
	char *word;

	do
		word = strsep(at, separators);
	while (word != NULL && word[0] == '\0');
	return word;
}

/* One word of the rights, commas allowed within. */
static const char *parse_rights(char *word, struct user *user)
{
	static const char *const names[] = {[PRIV_PUNCH] = "punch",
		[PRIV_READ] = "read",
		[PRIV_WRITE] = "write",
		[PRIV_TASK] = "task",
		[PRIV_ADMIN] = "admin"};
	char *name;

	while ((name = next_word(&word, ",")) != NULL) {
		unsigned right = PRIV_PUNCH;
		while (right <= PRIV_ADMIN && strcmp(name, names[right]) != 0)
			right++;
		if (right > PRIV_ADMIN)
			return "expected the rights " RIGHTS;
		user->rights |= 1u << right;
	}
	return NULL;
}

static const char *parse_employee(const char *id, struct user *user)
{
	if (!person_id_valid(bytes_of(id)))
		return "expected an employee's id behind employee=";
	snprintf(user->employee, sizeof(user->employee), "%s", id);
	return NULL;
}

/* NULL, or what was expected. */
static const char *parse_line(char *line, struct user *user)
{
	char *name = next_word(&line, BLANKS);
	char *digest = next_word(&line, BLANKS);
	const char *fault = NULL;
	char *word;

	*user = (struct user){.rights = 0};
	if (!person_id_valid(bytes_of(name)))
		return "expected a name of at most 64 letters, digits, '_', '-', '.' and '@'";
	if (digest == NULL || !parse_hash(digest, user->hash))
		return "expected the 64 hexadecimal digits of the token's SHA-256 behind the name";
	snprintf(user->name, sizeof(user->name), "%s", name);
	while (fault == NULL && (word = next_word(&line, BLANKS)) != NULL) {
		if (strncmp(word, "employee=", 9) == 0)
			fault = parse_employee(word + 9, user);
		else
			fault = parse_rights(word, user);
	}
	if (fault == NULL && user->rights == 0)
		fault = "expected at least one right: " RIGHTS;
	return fault;
}

static const struct user *find_name(const struct users *u, struct bytes name)
{
	for (size_t i = 0; i < u->count; i++) {
		if (bytes_eq(bytes_of(u->list[i].name), name))
			return &u->list[i];
	}
	return NULL;
}

static int read_lines(struct users *u, FILE *f, const char *path, struct buf *errors)
{
	char *line = NULL;
	size_t cap = 0;
	int number = 0, faults = 0;

	while (getline(&line, &cap, f) >= 0) {
		struct user user;
		number++;
		line[strcspn(line, "#")] = '\0';
		if (line[strspn(line, BLANKS)] == '\0')
			continue;
		const char *fault = parse_line(line, &user);
		if (fault == NULL && find_name(u, bytes_of(user.name)) != NULL)
			fault = "expected every name once";
		if (fault != NULL) {
			buf_addf(errors, "%s: line %d: %s\n", path, number, fault);
			faults++;
			continue;
		}
		u->list = xrealloc(u->list, (u->count + 1) * sizeof(*u->list));
		u->list[u->count++] = user;
	}
	free(line);
	return faults;
}

struct users *users_load(const char *path, struct buf *errors)
{
	struct users *u = xcalloc(1, sizeof(*u));
	struct stat st;

	if (path[0] == '\0')
		return u;
	u->required = true;
	FILE *f = fopen(path, "re");
	if (f == NULL) {
		buf_addf(errors, "%s: can't read the users file: %s\n", path, strerror(errno));
		users_free(u);
		return NULL;
	}
	if (fstat(fileno(f), &st) == 0 && (st.st_mode & S_IWOTH) != 0)
		log_warning("users - event=file_writable path=%s", path);
	int faults = read_lines(u, f, path, errors);
	fclose(f);
	if (faults == 0)
		return u;
	users_free(u);
	return NULL;
}

void users_free(struct users *u)
{
	if (u == NULL)
		return;
	free(u->list);
	free(u);
}

bool users_required(const struct users *u)
{
	return u->required;
}

const struct user *users_check(const struct users *u, const struct bytes *name, struct bytes token)
{
	const struct user *found = NULL;
	unsigned char digest[32];

	hash(token, digest);
	for (size_t i = 0; i < u->count; i++) {
		const struct user *user = &u->list[i];
		bool same_token = CRYPTO_memcmp(user->hash, digest, sizeof(digest)) == 0;
		bool same_name = name == NULL || bytes_eq(bytes_of(user->name), *name);
		if (same_token && same_name)
			found = user;
	}
	return found;
}

const struct user *users_same(const struct users *u, const struct user *old)
{
	const struct user *user = find_name(u, bytes_of(old->name));
	return user != NULL && memcmp(user->hash, old->hash, sizeof(old->hash)) == 0 ? user : NULL;
}

bool user_may(const struct user *user, enum privilege privilege)
{
	return privilege == PRIV_NONE || (user != NULL && (user->rights & 1u << privilege) != 0);
}
