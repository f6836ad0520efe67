/* SPDX-License-Identifier: MIT */
/* The TEAM commands. team.c changes the tree, team_jobs.c shows the big changes under way, team_read.c looks
 * at single teams, team_list.c at many, team_members.c is about people, team_check.c about the tree's health.
 */
#ifndef HANDLERS_TEAM_H
#define HANDLERS_TEAM_H

#include "handlers/command.h"

struct buf;
struct config;

/* team.c */
enum verdict team_add_exec(struct call *call);
enum verdict team_rename_exec(struct call *call);
enum verdict team_manager_exec(struct call *call);
enum verdict team_move_exec(struct call *call);
enum verdict team_remove_exec(struct call *call);
enum verdict team_restore_exec(struct call *call);

/* team_jobs.c */
enum verdict team_jobs_exec(struct call *call);
enum verdict team_cancel_exec(struct call *call);

/* team_read.c */
enum verdict team_get_exec(struct call *call);
enum verdict team_path_exec(struct call *call);
enum verdict team_ancestors_exec(struct call *call);
enum verdict team_isbelow_exec(struct call *call);
enum verdict team_count_exec(struct call *call);

/* team_list.c */
enum verdict team_children_exec(struct call *call);
enum verdict team_descendants_exec(struct call *call);

/* team_members.c */
enum verdict team_join_exec(struct call *call);
enum verdict team_leave_exec(struct call *call);
enum verdict team_members_exec(struct call *call);
enum verdict team_ismember_exec(struct call *call);
enum verdict team_of_exec(struct call *call);
enum verdict team_supervisors_exec(struct call *call);

/* team_check.c */
enum verdict team_check_exec(struct call *call);

/* The error for what a script of the tree has answered: its first letter says what is wrong with the team
 * `id`, the rest is a detail. */
void team_write_refusal(struct buf *out, const struct config *config, struct bytes id, struct bytes line);
/* Answers with it. Always CALL_DONE. */
enum verdict team_refuse(struct call *call, struct bytes id, struct bytes line);

#endif
