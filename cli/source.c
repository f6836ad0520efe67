/* SPDX-License-Identifier: MIT */
#include "cli/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

/* The descriptor of a copy, or -1 after a message. */
static int spool(int from, const char *name)
{
	static char chunk[65536];
	FILE *copy = tmpfile();
	ssize_t n = 0;

	while (copy != NULL && (n = read(from, chunk, sizeof(chunk))) > 0 &&
		fwrite(chunk, 1, (size_t)n, copy) == (size_t)n)
		;
	bool copied = copy != NULL && n == 0 && fflush(copy) == 0;
	int fd = copied ? fcntl(fileno(copy), F_DUPFD_CLOEXEC, 0) : -1;
	if (fd < 0)
		cli_error("%s: can't copy it to a temporary file: %s", name, strerror(errno));
	if (copy != NULL)
		fclose(copy);
	return fd;
}

int source_open(struct source *s, const char *name)
{
	struct stat st;
	bool standard_input = strcmp(name, "-") == 0;

	*s = (struct source){.name = standard_input ? "stdin" : name};
	s->fd = standard_input ? dup(STDIN_FILENO) : open(name, O_RDONLY | O_CLOEXEC);
	if (s->fd < 0 || fstat(s->fd, &st) != 0) {
		cli_error("%s: can't open it: %s", s->name, strerror(errno));
		return -1;
	}
	if (!S_ISREG(st.st_mode)) {
		int copy = spool(s->fd, s->name);
		if (copy < 0)
			return -1;
		close(s->fd);
		s->fd = copy;
	} else {
		s->start = lseek(s->fd, 0, SEEK_CUR);
	}
	s->size = fstat(s->fd, &st) == 0 && st.st_size > s->start ? st.st_size - s->start : 0;
	return 0;
}

void source_close(struct source *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}
