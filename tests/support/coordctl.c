/* SPDX-License-Identifier: MIT
 * tests/support/coordctl.c - coordctl as tests run it.
 */
#include "tests/support/coordctl.h"

#include "tests/support/guard.h"
#include "tests/support/scratch.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
    ARGUMENTS_MAX = 40
};

/* ---------------------------------------------------------------- scenes */

const char *scene_path(const struct scene *scene, const char *name, char out[COORDCTL_PATH])
{
    const int length = snprintf(out, COORDCTL_PATH, "%s/%s", scene->folder, name);
    assert_in_range(length, 1, COORDCTL_PATH - 1);
    return out;
}

void scene_open(struct scene *scene, const char *options)
{
    memset(scene, 0, sizeof *scene);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    scratch_make("scene", scene->folder, sizeof scene->folder);
    snprintf(scene->uri, sizeof scene->uri, "file:%s/store%s%s", scene->folder,
             options[0] != '\0' ? "?" : "", options);
    scene_path(scene, "work", scene->log);
    const int fd = open(scene->log, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, sizeof(struct work_log)), 0);
    scene->work = mmap(NULL, sizeof *scene->work, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(scene->work, MAP_FAILED);
    close(fd);
    char out[COORDCTL_TEXT];
    assert_int_equal(coordctl_ask(scene, out, "init", NULL, NULL), 0);
}

/* Whatever a failed test left: it comes to us, as the subreaper, level by level. */
void scene_close(struct scene *scene)
{
    for (pid_t child = first_child_of(getpid()); child != 0; child = first_child_of(getpid())) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    munmap(scene->work, sizeof *scene->work);
    scratch_remove(scene->folder);
}

int scene_set_up(void **state)
{
    static struct scene scene;
    scene_open(&scene, "coord.ttl=1s");
    *state = &scene;
    return 0;
}

int scene_tear_down(void **state)
{
    scene_close(*state);
    return 0;
}

/* ---------------------------------------------------------------- coordctl */

static void become_coordctl(const struct coordctl *coordctl, int input,
                            const char *const *environment, const char *const *arguments)
{
    char *argv[ARGUMENTS_MAX];
    static char program[] = COORD_BUILD "/coordctl";
    int count = 0;
    argv[count++] = program;
    for (; *arguments != NULL && count < ARGUMENTS_MAX - 1; arguments++) {
        argv[count++] = strdup(*arguments);
    }
    argv[count] = NULL;
    for (; environment != NULL && *environment != NULL; environment++) {
        putenv(strdup(*environment));
    }
    const int out = open(coordctl->out, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int err = open(coordctl->err, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int in = input >= 0 ? input : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && setpgid(0, 0) == 0 && dup2(in, 0) == 0 &&
        dup2(out, 1) == 1 && dup2(err, 2) == 2) {
        execv(program, argv);
    }
    _exit(99);
}

void coordctl_start_with(const struct scene *scene, struct coordctl *out, int input,
                         const char *const *environment, const char *const *arguments)
{
    static unsigned number;
    char name[32];
    number++;
    snprintf(name, sizeof name, "out.%u", number);
    scene_path(scene, name, out->out);
    snprintf(name, sizeof name, "err.%u", number);
    scene_path(scene, name, out->err);
    out->pid = fork();
    assert_true(out->pid >= 0);
    if (out->pid == 0) {
        become_coordctl(out, input, environment, arguments);
    }
}

void coordctl_start(const struct scene *scene, struct coordctl *out, const char *const *arguments)
{
    coordctl_start_with(scene, out, -1, NULL, arguments);
}

void coordctl_run(const struct scene *scene, struct coordctl *out, const char *id, const char *work,
                  const char *const *options)
{
    char self[COORDCTL_PATH];
    const char *arguments[ARGUMENTS_MAX] = {"run",  "--elector", scene->uri, "--name",
                                            "jobs", "--id",      id};
    size_t count = 7;
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = '\0';
    for (; options != NULL && *options != NULL; options++) {
        arguments[count++] = *options;
    }
    arguments[count++] = "--";
    arguments[count++] = self;
    arguments[count++] = "--work";
    arguments[count++] = scene->log;
    arguments[count++] = work;
    arguments[count] = NULL;
    coordctl_start(scene, out, arguments);
}

int coordctl_wait(struct coordctl *coordctl)
{
    const struct guard guard = guard_for("coordctl to end");
    int status = 0;
    while (waitpid(coordctl->pid, &status, WNOHANG) != coordctl->pid) {
        wait_on(&guard);
    }
    coordctl->pid = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int coordctl_call(const struct scene *scene, char out[COORDCTL_TEXT], const char *const *arguments)
{
    struct coordctl coordctl;
    coordctl_start(scene, &coordctl, arguments);
    const int status = coordctl_wait(&coordctl);
    coordctl_output(coordctl.out, out);
    return status;
}

int coordctl_ask(const struct scene *scene, char out[COORDCTL_TEXT], const char *verb,
                 const char *option, const char *value)
{
    return coordctl_call(scene, out,
                         WORDS(verb, "--elector", scene->uri, "--name", "jobs", option, value));
}

const char *coordctl_output(const char *path, char out[COORDCTL_TEXT])
{
    read_whole(path, out, COORDCTL_TEXT);
    return out;
}

void wait_for_text(const char *path, const char *text)
{
    const struct guard guard = guard_for(text);
    char out[COORDCTL_TEXT];
    while (strstr(coordctl_output(path, out), text) == NULL) {
        wait_on(&guard);
    }
}

bool coordctl_ended(const struct coordctl *coordctl)
{
    siginfo_t info = {.si_pid = 0};
    assert_int_equal(waitid(P_PID, (id_t)coordctl->pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    return info.si_pid != 0;
}

pid_t guardian_of(const struct coordctl *coordctl)
{
    const struct guard guard = guard_for("the guardian");
    pid_t child = first_child_of(coordctl->pid);
    while (child == 0) {
        if (coordctl_ended(coordctl)) {
            char text[COORDCTL_TEXT];
            fail_msg("coordctl has ended: %s", coordctl_output(coordctl->err, text));
        }
        wait_on(&guard);
        child = first_child_of(coordctl->pid);
    }
    return child;
}
