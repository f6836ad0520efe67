/* SPDX-License-Identifier: MIT */
#include "persist/scripts.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>

#include "persist/embed.h"

/* In the order of the enum, which is the alphabet's. */
extern const struct embed_file lua_files[];

static char sha1_hex[SCRIPT_COUNT][41];

static void hash_all(void)
{
	for (int i = 0; i < SCRIPT_COUNT; i++) {
		unsigned char digest[EVP_MAX_MD_SIZE];
		unsigned int n = 0;
		struct bytes text = script_text((enum script)i);

		int ok = EVP_Digest(text.p, text.n, digest, &n, EVP_sha1(), NULL);
		assert(ok == 1 && n == 20);
		(void)ok;
		for (unsigned int j = 0; j < n; j++)
			snprintf(&sha1_hex[i][j * 2], 3, "%02x", digest[j]);
	}
}

struct bytes script_text(enum script script)
{
	return (struct bytes){lua_files[script].data, lua_files[script].size};
}

struct bytes script_sha1(enum script script)
{
	if (sha1_hex[0][0] == '\0')
		hash_all();
	return (struct bytes){sha1_hex[script], 40};
}
