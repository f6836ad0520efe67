/* SPDX-License-Identifier: MIT */
/* uthash as the house uses it: intrusive hash tables, the key's bytes hashed by FNV (uthash's own default
 * function does not compile without warnings everywhere). Out of memory ends the process, as in mem.h. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#define HASH_FUNCTION HASH_FNV
#include <uthash.h>

#endif
