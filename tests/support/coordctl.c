/* SPDX-License-Identifier: MIT
 * tests/support/coordctl.c - coordctl as tests run it.
 */
#include "tests/support/coordctl.h"

#include "tests/support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum {
    ARGUMENTS_MAX = 40
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void nap(void)
{
    const struct timespec time = {.tv_nsec = 1000000};
    nanosleep(&time, NULL);
}

/* A condition is waited for; the guard only turns a hang into a failure. */
struct guard {
    uint64_t until;
    const char *what;
};

static struct guard guard_for(const char *what)
{
    return (struct guard){.until = now_ns() + COORDCTL_PATIENCE_MS * 1000000ull, .what = what};
}

static void wait_on(const struct guard *guard)
{
    if (now_ns() > guard->until) {
        fail_msg("waited too long for %s", guard->what);
    }
    nap();
}

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
    snprintf(scene->folder, sizeof scene->folder, "/tmp/coordctl-test-XXXXXX");
    assert_non_null(mkdtemp(scene->folder));
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
    const char *const init[] = {"init", "--elector", scene->uri, "--name", "jobs", NULL};
    assert_int_equal(coordctl_call(scene, out, init), 0);
}

static size_t read_small(const char *path, char *out, size_t room)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = 0;
    size_t count = 0;
    while (fd >= 0 && count < room - 1 && (got = read(fd, out + count, room - 1 - count)) > 0) {
        count += (size_t)got;
    }
    if (fd >= 0) {
        close(fd);
    }
    out[count] = '\0';
    return count;
}

static pid_t first_child(pid_t pid)
{
    char path[COORDCTL_PATH];
    char text[COORDCTL_TEXT];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    return read_small(path, text, sizeof text) > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status;
    (void)kind;
    (void)where;
    return remove(path);
}

/* Whatever a failed test left: it comes to us, as the subreaper, level by level. */
void scene_close(struct scene *scene)
{
    for (pid_t child = first_child(getpid()); child != 0; child = first_child(getpid())) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    munmap(scene->work, sizeof *scene->work);
    nftw(scene->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
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

const char *coordctl_output(const char *path, char out[COORDCTL_TEXT])
{
    read_small(path, out, COORDCTL_TEXT);
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

bool has_child(pid_t pid)
{
    return first_child(pid) != 0;
}

pid_t wait_for_child(pid_t pid)
{
    const struct guard guard = guard_for("a child");
    pid_t child = first_child(pid);
    while (child == 0) {
        wait_on(&guard);
        child = first_child(pid);
    }
    return child;
}

pid_t guardian_of(const struct coordctl *coordctl)
{
    return wait_for_child(coordctl->pid);
}

struct process {
    char state;       /* its letter; 0: gone */
    uint64_t started; /* ticks since boot: tells it from a later one of the same number */
};

static struct process look_at(pid_t pid)
{
    char path[COORDCTL_PATH];
    char text[COORDCTL_TEXT];
    struct process process = {.state = 0};
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (read_small(path, text, sizeof text) == 0) {
        return process;
    }
    /* "PID (NAME) STATE ...": the state is field 3, the start field 22. */
    const char *at = strrchr(text, ')');
    assert_non_null(at);
    process.state = at[2];
    for (int field = 2; field < 22 && at != NULL; field++) {
        at = strchr(at + 1, ' ');
    }
    assert_non_null(at);
    process.started = strtoull(at + 1, NULL, 10);
    return process;
}

static void wait_for_end_of(pid_t pid, uint64_t started)
{
    const struct guard guard = guard_for("a process to be gone");
    for (;;) {
        const struct process now = look_at(pid);
        if (now.state == 0 || now.started != started) {
            return;
        }
        waitpid(pid, NULL, WNOHANG); /* it may have come to us */
        if (now_ns() > guard.until) {
            print_error("still there: %d, state %c\n", (int)pid, now.state);
        }
        wait_on(&guard);
    }
}

void wait_for_end(pid_t pid)
{
    wait_for_end_of(pid, look_at(pid).started);
}

void wait_for_stop(pid_t pid)
{
    const struct guard guard = guard_for("a process to be stopped");
    while (look_at(pid).state != 'T') {
        wait_on(&guard);
    }
}

/* ---------------------------------------------------------------- work */

static struct work_beat *own_beat;

static void note_signal(int signal)
{
    atomic_store(&own_beat->signal, signal);
}

static struct work_beat *begin_beat(struct work_log *log)
{
    const unsigned mine = atomic_fetch_add(&log->count, 1);
    const char *fence = getenv("COORD_FENCE");
    if (mine >= WORK_BEATS) {
        _exit(98);
    }
    struct work_beat *beat = &log->beats[mine];
    atomic_store(&beat->pid, (int)getpid());
    atomic_store(&beat->started, look_at(getpid()).started);
    atomic_store(&beat->first, now_ns());
    atomic_store(&beat->last, now_ns());
    atomic_store(&beat->fence, fence != NULL ? strtoull(fence, NULL, 10) : 0);
    return beat;
}

static void beat_on(struct work_beat *beat)
{
    const struct timespec time = {.tv_nsec = 200000};
    for (;;) {
        atomic_store(&beat->last, now_ns());
        nanosleep(&time, NULL);
    }
}

static void be_deaf(struct work_log *log)
{
    for (int signal = 1; signal < 32; signal++) {
        if (signal != SIGKILL && signal != SIGSTOP) {
            struct sigaction ignore = {.sa_handler = SIG_IGN};
            sigaction(signal, &ignore, NULL);
        }
    }
    beat_on(begin_beat(log));
}

/* Not in COMMAND's group, not in its session, and not its child any more. */
static void leave_daemon(struct work_log *log)
{
    const unsigned before = atomic_load(&log->count);
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            be_deaf(log);
        }
        _exit(0);
    }
    while (atomic_load(&log->count) == before) {
        nap();
    }
}

_Noreturn static void work(struct work_log *log, const char *mode)
{
    if (strcmp(mode, "deaf") == 0) {
        be_deaf(log);
    }
    if (strcmp(mode, "daemon") == 0 || strcmp(mode, "leave") == 0) {
        leave_daemon(log);
    }
    own_beat = begin_beat(log);
    if (strcmp(mode, "leave") == 0 || strcmp(mode, "exit") == 0) {
        _exit(7);
    }
    if (strcmp(mode, "polite") == 0) {
        struct sigaction note = {.sa_handler = note_signal};
        sigaction(SIGTERM, &note, NULL);
        sigaction(SIGHUP, &note, NULL);
        sigaction(SIGUSR1, &note, NULL);
        sigaction(SIGUSR2, &note, NULL);
        while (atomic_load(&own_beat->signal) != SIGTERM) {
            atomic_store(&own_beat->last, now_ns());
            nap();
        }
        _exit(0);
    }
    beat_on(own_beat);
    _exit(0);
}

void work_if_asked(int argc, char **argv)
{
    if (argc != 4 || strcmp(argv[1], "--work") != 0) {
        return;
    }
    const int fd = open(argv[2], O_RDWR | O_CLOEXEC);
    struct work_log *log = mmap(NULL, sizeof *log, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (log == MAP_FAILED) {
        _exit(97);
    }
    work(log, argv[3]);
}

static unsigned beats_above(const struct scene *scene, uint64_t above, uint64_t *fence)
{
    const unsigned count = atomic_load(&scene->work->count);
    unsigned found = 0;
    for (unsigned i = 0; i < count && i < WORK_BEATS; i++) {
        const uint64_t its = atomic_load(&scene->work->beats[i].fence);
        if (its > above) {
            *fence = its;
            found++;
        }
    }
    return found;
}

uint64_t work_wait(const struct scene *scene, uint64_t above, unsigned count)
{
    const struct guard guard = guard_for("work to begin");
    uint64_t fence = 0;
    while (beats_above(scene, above, &fence) < count) {
        wait_on(&guard);
    }
    return fence;
}

static void check_pair(const struct work_beat *former, const struct work_beat *later)
{
    if (atomic_load(&former->fence) == 0 ||
        atomic_load(&former->fence) >= atomic_load(&later->fence)) {
        return;
    }
    const uint64_t last = atomic_load(&former->last);
    const uint64_t first = atomic_load(&later->first);
    if (last >= first) {
        fail_msg("work of fence %" PRIu64 " (pid %d) ran %" PRIu64
                 " us after that of fence %" PRIu64 " (pid %d) had begun",
                 atomic_load(&former->fence), atomic_load(&former->pid), (last - first) / 1000,
                 atomic_load(&later->fence), atomic_load(&later->pid));
    }
}

void work_check(const struct scene *scene)
{
    const unsigned count = atomic_load(&scene->work->count);
    for (unsigned a = 0; a < count; a++) {
        for (unsigned b = 0; b < count; b++) {
            check_pair(&scene->work->beats[a], &scene->work->beats[b]);
        }
    }
}

void work_wait_gone(const struct scene *scene, uint64_t fence)
{
    const unsigned count = atomic_load(&scene->work->count);
    for (unsigned i = 0; i < count; i++) {
        const uint64_t its = atomic_load(&scene->work->beats[i].fence);
        const bool begins = its == 0 && fence != UINT64_MAX; /* ... and may be of a later term */
        if (its <= fence && !begins) {
            wait_for_end_of(atomic_load(&scene->work->beats[i].pid),
                            atomic_load(&scene->work->beats[i].started));
        }
    }
}

bool work_got(const struct scene *scene, uint64_t fence, int signal)
{
    const unsigned count = atomic_load(&scene->work->count);
    for (unsigned i = 0; i < count; i++) {
        if (atomic_load(&scene->work->beats[i].fence) == fence &&
            atomic_load(&scene->work->beats[i].signal) == signal) {
            return true;
        }
    }
    return false;
}
