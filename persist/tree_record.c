/* SPDX-License-Identifier: MIT */
#include "persist/tree_record.h"

#include "base/mem.h"

static const char *const change_names[] = {
	"add", "rename", "manager", "retire", "restore", "move", "lift", "remove"};

static bool parse_change(struct bytes word, enum tree_change *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(change_names); i++) {
		if (bytes_eq(word, bytes_of(change_names[i]))) {
			*ret = (enum tree_change)i;
			return true;
		}
	}
	return false;
}

static struct bytes optional(struct bytes field)
{
	return bytes_eq(field, BYTES_LIT("-")) ? (struct bytes){"", 0} : field;
}

bool tree_record_parse(struct bytes text, struct tree_record *ret)
{
	struct bytes f[10];
	struct tree_record r;

	if (bytes_eq(text, BYTES_LIT("Z|repaired"))) {
		*ret = (struct tree_record){.change = TREE_REPAIRED};
		return true;
	}
	if (bytes_split(text, '|', f, 10) != 10 || !bytes_eq(f[0], BYTES_LIT("T")) ||
		!parse_change(f[1], &r.change) || !id_valid(f[2]) || !bytes_to_i64(f[5], &r.fields.version))
		return false;
	r.fields.id = f[2];
	r.fields.parent = optional(f[3]);
	r.fields.manager = optional(f[4]);
	r.fields.retired = bytes_eq(f[6], BYTES_LIT("retired"));
	r.fields.name = f[9];
	r.path = f[7];
	r.old_path = optional(f[8]);
	*ret = r;
	return true;
}

struct bytes path_root(struct bytes path)
{
	struct bytes part[2] = {{"", 0}};

	bytes_split(path, ':', part, 2);
	return part[0];
}

struct bytes path_above(struct bytes path)
{
	const char *colon = path.n > 0 ? memrchr(path.p, ':', path.n) : NULL;

	return colon != NULL ? (struct bytes){path.p, (size_t)(colon - path.p)} : (struct bytes){"", 0};
}

struct bytes path_parent(struct bytes path)
{
	struct bytes up = path_above(path);
	const char *colon = up.n > 0 ? memrchr(up.p, ':', up.n) : NULL;

	return colon != NULL ? (struct bytes){colon + 1, (size_t)(up.p + up.n - colon) - 1} : up;
}
