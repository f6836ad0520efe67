/* SPDX-License-Identifier: MIT */
/* Writes musterd.conf(5) on stdout from the configuration table, at build time. */
#include <stdio.h>
#include <string.h>

#include "base/config.h"

static const char head[] =
	".\\\" Made from the configuration table by man/config_man.c.\n"
	".Dd November 30, 2026\n"
	".Dt MUSTERD.CONF 5\n"
	".Os\n"
	".Sh NAME\n"
	".Nm musterd.conf\n"
	".Nd configuration of the attendance daemon\n"
	".Sh DESCRIPTION\n"
	"An INI file: sections in brackets, a line\n"
	".Ar key = value\n"
	"for each setting; lines that begin with ; or # are comments.\n"
	"What is not set has its default.\n"
	".Ql musterd --check-config\n"
	"checks a file,\n"
	".Ql musterd --help-config\n"
	"prints one with every default.\n"
	"SIGHUP reads the file again; keys that need a restart say so.\n"
	".Pp\n"
	"Durations are written 250ms, 30s, 5m, 12h or 7d, a bare number is seconds; sizes 4096, 64k or 1m;\n"
	"times of day 04:00; a flag is yes or no.\n";

static const char tail[] = ".Sh FILES\n"
			   ".Pa /etc/muster/musterd.conf\n"
			   ".Sh SEE ALSO\n"
			   ".Xr muster 1 ,\n"
			   ".Xr musterd 8\n";

static const char *type_name(enum config_type type)
{
	static const char *const names[] = {
		[CONFIG_STRING] = "text",
		[CONFIG_SECRET] = "text, never shown",
		[CONFIG_INT] = "number",
		[CONFIG_BOOL] = "yes or no",
		[CONFIG_DURATION] = "duration",
		[CONFIG_SIZE] = "size",
		[CONFIG_TIME] = "time of day",
		[CONFIG_ENDS] = "words",
	};
	return names[type];
}

/* Text of the table as roff text: no escape of its own, no control line. */
static void put_text(const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", stdout);
	for (; *text != '\0'; text++)
		fputs(*text == '\\' ? "\\e" : *text == '-' ? "\\-" : (char[]){*text, '\0'}, stdout);
}

/* A number as the file would say it: the limits of a key are formatted as its value would be. */
static void put_limit(struct config *scratch, const struct config_key *key, int64_t n)
{
	struct buf text = BUF_INIT;

	memcpy((char *)scratch + key->offset, &n, sizeof(n));
	config_value(scratch, key, &text);
	put_text(text.data);
	buf_release(&text);
}

static bool has_range(enum config_type type)
{
	return type == CONFIG_INT || type == CONFIG_DURATION || type == CONFIG_SIZE || type == CONFIG_TIME;
}

static void put_key(struct config *scratch, const struct config_key *key)
{
	printf(".It Cm %s\n", key->name);
	put_text(key->help);
	printf("\n.br\n%s", type_name(key->type));
	if (has_range(key->type)) {
		fputs(", ", stdout);
		put_limit(scratch, key, key->min);
		fputs(" to ", stdout);
		put_limit(scratch, key, key->max);
	}
	fputs("; default ", stdout);
	put_text(key->type == CONFIG_SECRET || key->fallback[0] == '\0' ? "none" : key->fallback);
	puts(key->reload ? "." : "; a change needs a restart.");
}

static void put_keys(void)
{
	size_t count;
	const struct config_key *keys = config_keys(&count);
	struct config scratch;
	const char *section = "";

	config_init(&scratch);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(section, keys[i].section) != 0) {
			if (i > 0)
				puts(".El");
			printf(".Ss [%s]\n.Bl -tag -width Ds\n", keys[i].section);
		}
		section = keys[i].section;
		put_key(&scratch, &keys[i]);
	}
	puts(".El");
	config_release(&scratch);
}

int main(void)
{
	fputs(head, stdout);
	puts(".Sh KEYS");
	put_keys();
	fputs(tail, stdout);
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
