/* SPDX-License-Identifier: MIT */
/* Handlers of the commands that the daemon answers alone: the connection, the client, the table, the daemon.
 */
#ifndef DAEMON_SERVER_COMMANDS_H
#define DAEMON_SERVER_COMMANDS_H

#include "handlers/command.h"

/* connection_commands.c */
enum verdict auth_exec(struct call *call);
enum verdict echo_exec(struct call *call);
enum verdict hello_exec(struct call *call);
enum verdict ping_exec(struct call *call);
enum verdict quit_exec(struct call *call);
enum verdict readonly_exec(struct call *call);
enum verdict reset_exec(struct call *call);
enum verdict select_exec(struct call *call);

/* client_commands.c */
enum verdict client_getname_exec(struct call *call);
enum verdict client_help_exec(struct call *call);
enum verdict client_id_exec(struct call *call);
enum verdict client_info_exec(struct call *call);
enum verdict client_kill_exec(struct call *call);
enum verdict client_list_exec(struct call *call);
enum verdict client_no_evict_exec(struct call *call);
enum verdict client_setinfo_exec(struct call *call);
enum verdict client_setname_exec(struct call *call);

/* table_commands.c */
enum verdict command_count_exec(struct call *call);
enum verdict command_docs_exec(struct call *call);
enum verdict command_exec(struct call *call);
enum verdict command_help_exec(struct call *call);
enum verdict command_info_exec(struct call *call);
enum verdict command_list_exec(struct call *call);
enum verdict help_exec(struct call *call);

/* server_commands.c */
enum verdict clock_set_exec(struct call *call);
enum verdict config_get_exec(struct call *call);
enum verdict config_help_exec(struct call *call);
enum verdict info_exec(struct call *call);
enum verdict reload_exec(struct call *call);

/* The sections of INFO that come from the daemon itself. */
struct server;
void server_info_register(struct server *s);

/* The usage lines of a container's subcommands, as CLIENT HELP. */
enum verdict reply_help_of(struct call *call, const char *container);

#endif
