/* SPDX-License-Identifier: MIT */
/* FAILURE.LIST, RETRY and DISCARD: what could not be written, for the people in charge. */
#ifndef HANDLERS_FAILURE_H
#define HANDLERS_FAILURE_H

#include "handlers/command.h"

enum verdict failure_list_exec(struct call *call);
enum verdict failure_retry_exec(struct call *call);
enum verdict failure_discard_exec(struct call *call);

#endif
