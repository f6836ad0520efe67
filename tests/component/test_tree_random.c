/* SPDX-License-Identifier: MIT */
/* Random changes by the real scripts, big ones as jobs whose steps are interleaved with everything else, and
 * pictures that are made meanwhile. A model that is fed by the journal is kept as of each entry: a new
 * picture must be exactly that of the entry that it says it is of; one that follows must be that of the last.
 */
#include "tests/component/tree_fixture.h"

#include "persist/forest.h"
#include "persist/team_change.h"
#include "persist/tree_journal.h"
#include "persist/tree_renew.h"

#define NODES_MOST 120 /* ids that are used: few, so that they come again and again */
#define CHANGES    400
#define ROUNDS     40
#define JOBS_MOST  3
#define STEP       "4" /* writes of a job's step */
#define AT_ONCE    "2" /* a move of more writes is a job */
#define TODAY      20000

struct moment {
	struct stream_id at;
	struct model model;
};

static struct moment *moments;
static size_t moment_count, moment_cap;
static struct redis *reader; /* of the pictures */
static struct team_changes *team_changes;
static unsigned seed;
static int nodes = NODES_MOST;
static char jobs[JOBS_MOST][24]; /* their numbers, "" = none */
static int made, stepped;

static int any(int below)
{
	seed = seed * 1103515245 + 12345;
	return (int)(seed >> 16 & 0x7fff) % below;
}

/* ---- the model, moment by moment ---- */

static struct moment *now(void)
{
	return &moments[moment_count - 1];
}

static struct moment *new_moment(struct stream_id at)
{
	if (moment_count == moment_cap) {
		moment_cap = moment_cap > 0 ? moment_cap * 2 : 64;
		moments = xrealloc(moments, moment_cap * sizeof(*moments));
	}
	moments[moment_count] = (struct moment){.at = at};
	return &moments[moment_count++];
}

/* Takes over what the journal has got. */
static void read_journal(void)
{
	char after[STREAM_ID_TEXT];

	stream_id_format(now()->at, after);
	ask("XRANGE @journal (%s +", after);
	const char *text = answer.data;
	for (int i = 0; i + 2 < answers; i += 3) {
		struct stream_id at;
		assert_true(stream_id_parse(bytes_of(text), &at));
		struct model before = now()->model;
		struct moment *m = new_moment(at);
		m->model = before;
		text += strlen(text) + 1; /* the id, then the field's name */
		text += strlen(text) + 1;
		model_apply(&m->model, text);
		text += strlen(text) + 1;
	}
}

/* ---- changes ---- */

/* A script that takes a job's number, behind the keys of these departments, and more arguments. */
static const char *run(enum script script, const char *const *departments, const char *const *args)
{
	struct redis_args a;
	struct buf text = BUF_INIT;
	int keys = 1;

	redis_args_init(&a);
	key_org(&text, "roots");
	redis_arg_key(&a, &text);
	for (; *departments != NULL; departments++)
		keys += team_day_keys(&a, bytes_of(*departments), TODAY);
	key_org(&text, "");
	redis_arg_key(&a, &text);
	buf_release(&text);
	for (; *args != NULL; args++)
		redis_arg_str(&a, *args);
	begin_answer();
	return wait_answer(redis_eval(admin, script, keys, &a, on_answer, NULL));
}

static void on_line(struct bytes line, const char *error, void *arg)
{
	(void)arg;
	if (error != NULL)
		fail_msg("%s", error);
	buf_add_bytes(&answer, line);
	buf_add_char(&answer, '\0');
	answers++;
	answered = true;
}

static const char *send_change(const struct team_change *change)
{
	begin_answer();
	team_change_send(team_changes, change, TODAY, on_line, NULL);
	return wait_answer(REDIS_SENT);
}

static void note(const char *line)
{
	if (line[0] == 'O' || line[0] == 'J')
		made++;
	for (int i = 0; line[0] == 'J' && i < JOBS_MOST; i++) {
		if (jobs[i][0] == '\0') {
			snprintf(jobs[i], sizeof(jobs[i]), "%s", line + 1);
			return;
		}
	}
	assert_true(line[0] != 'J');
}

static void any_id(char id[16])
{
	snprintf(id, 16, "n%d", any(nodes));
}

/* One that is there, as often as one is found; sometimes "" for the top. */
static void any_parent(char id[16])
{
	any_id(id);
	for (int i = 0; i < 8 && model_find(&now()->model, id) == NULL; i++)
		any_id(id);
	if (any(8) == 0)
		id[0] = '\0';
}

static bool has_room_for_a_job(void)
{
	for (int i = 0; i < JOBS_MOST; i++) {
		if (jobs[i][0] == '\0')
			return true;
	}
	return false;
}

static void add(void)
{
	char id[16], parent[16], name[16];

	any_id(id);
	for (int i = 0; i < 8 && model_find(&now()->model, id) != NULL; i++)
		any_id(id);
	any_parent(parent);
	snprintf(name, sizeof(name), "x%d", any(1000));
	struct team_change c = {.verb = TEAM_ADD,
		.id = bytes_of(id),
		.parent = bytes_of(parent),
		.name = bytes_of(name),
		.fold = bytes_of(name),
		.manager = bytes_of(any(2) ? "boss" : "")};
	note(send_change(&c));
}

static void set(void)
{
	static const enum team_verb verbs[] = {TEAM_RENAME, TEAM_MANAGER, TEAM_RETIRE, TEAM_RESTORE};
	char id[16], value[16];

	any_parent(id);
	snprintf(value, sizeof(value), "y%d", any(1000));
	struct bytes v = bytes_of(value);
	struct team_change c = {
		.verb = verbs[any(4)], .id = bytes_of(id), .name = v, .fold = v, .manager = v};
	note(send_change(&c));
}

static void move(void)
{
	char id[16], parent[16], seen[64];

	any_parent(id);
	any_parent(parent);
	struct team_change c = {.verb = TEAM_MOVE, .id = bytes_of(id), .parent = bytes_of(parent)};
	const char *line = send_change(&c);
	if (line[0] == 'H') {
		snprintf(seen, sizeof(seen), "%s", line + 1);
		c.height = BYTES_LIT("1");
		c.seen = bytes_of(seen);
		line = send_change(&c);
	}
	note(line);
}

static void take_away(void)
{
	static const char *const modes[] = {"", "cascade", "lift", "lift"};
	char id[16];

	any_parent(id);
	struct team_change c = {.verb = TEAM_REMOVE, .id = bytes_of(id), .mode = bytes_of(modes[any(4)])};
	note(send_change(&c));
}

/* What a step has answered: "bury", where their employees go to, departments. */
static void bury(const char *job)
{
	const char *args[128] = {job, "1"};
	struct buf texts = answer;
	const char *at = texts.data;
	int count = 2;

	answer = BUF_INIT;
	for (int i = 0, all = answers; i < all; i++, at += strlen(at) + 1) {
		if (i >= 2)
			args[count++] = at;
	}
	args[count] = NULL;
	run(SCRIPT_TEAM_BURY, args + 2, args);
	buf_release(&texts);
}

static void step_job(char *job)
{
	static const char *const no_departments[] = {NULL};
	const char *const args[] = {job, STEP, NULL};
	const char *word = run(SCRIPT_TEAM_JOB, no_departments, args);

	stepped++;
	if (strcmp(word, "bury") == 0)
		bury(job);
	else if (strcmp(word, "end") == 0)
		job[0] = '\0';
	else
		assert_string_equal(word, "go");
}

static void change(void)
{
	int which = any(14), job = any(JOBS_MOST);

	if (which < 4 && jobs[job][0] != '\0')
		step_job(jobs[job]);
	else if (which < 7)
		add();
	else if (which < 8)
		set();
	else if (!has_room_for_a_job())
		return;
	else if (which < 11)
		move();
	else
		take_away();
	read_journal();
}

static void end_jobs(void)
{
	for (int i = 0; i < JOBS_MOST; i++) {
		while (jobs[i][0] != '\0')
			step_job(jobs[i]);
	}
	read_journal();
}

static int begin(void **state)
{
	(void)state;
	forget_all();
	moment_count = 0;
	new_moment((struct stream_id){0, 0});
	return 0;
}

/* ---- tests ---- */

static int renewed; /* 1 = a picture, -1 = none */

static void on_renewed(bool ok, void *arg)
{
	(void)arg;
	renewed = ok ? 1 : -1;
}

static void expect_moment(const struct forest *f, struct stream_id at)
{
	const struct dept *top = forest_top(f);

	for (size_t i = 0; i < moment_count; i++) {
		if (stream_id_compare(moments[i].at, at) != 0)
			continue;
		expect_model(&moments[i].model, top->children, top->child_count);
		assert_int_equal(top->below, moments[i].model.count);
		assert_int_equal(forest_size(f), moments[i].model.count);
		return;
	}
	fail_msg("there is no such moment");
}

/* A picture that is made while everything changes. Changes end at some time: before that it may never be
 * quiet. */
static bool renew_once(int changes)
{
	struct stream_id at;

	renewed = 0;
	struct tree_renew *r = tree_renew_new(loop, reader, on_renewed, NULL);
	for (int i = 0; i < changes && renewed == 0; i++) {
		change();
		for (int turns = any(4); turns > 0 && renewed == 0; turns--)
			event_base_loop(loop, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	}
	wait_for(renewed != 0);
	size_t stray = tree_renew_stray(r);
	struct forest *f = tree_renew_end(r, &at);
	if (renewed > 0) {
		read_journal();
		expect_moment(f, at);
		assert_int_equal(stray, 0);
	}
	forest_free(f);
	return renewed > 0;
}

static void test_made_meanwhile(void **state)
{
	static const int nodes_of_round[] = {NODES_MOST, 30, 9};
	int good = 0;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		seed = (unsigned)round + 1;
		nodes = nodes_of_round[round % 3];
		begin(state);
		for (int i = 0; i < CHANGES / 4; i++)
			change();
		for (int i = 0; i < 6; i++)
			good += renew_once(20 + any(200));
		end_jobs();
		assert_true(renew_once(0));
	}
	/* The others were begun again, since a root was lifted. */
	assert_true(good > ROUNDS * 3);
	assert_true(made > ROUNDS * 20 && stepped > ROUNDS * 10);
}

static void on_change(void *arg)
{
	(void)arg;
}

static int synced;

static void on_sync(bool ok, void *arg)
{
	(void)arg;
	synced = ok ? 1 : -1;
}

static void test_follows(void **state)
{
	struct redis *own = redis_new(loop, &config, REDIS_MAIN);
	struct tree *tree = tree_new(loop, own, on_change, NULL);
	char last[STREAM_ID_TEXT];
	uint32_t count;

	(void)state;
	redis_start(own);
	seed = 4711;
	nodes = NODES_MOST;
	for (int round = 0; round < ROUNDS * 4; round++) {
		for (int i = any(20); i > 0; i--)
			change();
		synced = 0;
		wait_for(tree_loaded(tree));
		tree_sync(tree, bytes_of(stream_id_format(now()->at, last)), on_sync, NULL);
		wait_for(synced != 0);
		assert_int_equal(synced, 1);
		struct dept *const *roots = tree_roots(tree, &count);
		expect_model(&now()->model, roots, count);
	}
	end_jobs();
	redis_free(own);
	tree_free(tree);
}

static int setup(void **state)
{
	struct buf errors = BUF_INIT;

	fixture_setup(state);
	assert_int_equal(config_set(&config, "team", "inline_max", AT_ONCE, &errors), 0);
	log_set_level(LOG_LEVEL_ERROR);
	reader = new_link();
	team_changes = team_changes_new(admin, &config);
	return 0;
}

static int teardown(void **state)
{
	redis_free(reader);
	team_changes_free(team_changes);
	free(moments);
	return fixture_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_made_meanwhile, begin),
		cmocka_unit_test_setup(test_follows, begin),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
