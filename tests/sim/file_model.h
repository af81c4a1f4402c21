/* SPDX-License-Identifier: MIT
 * tests/sim/file_model.h - one folder with an election's file in it: inodes, blocks, locked bytes.
 *
 * It stands in for electors/file_io.c under the file protocol that ships. A file that was removed
 * lives on for those who have it open; a write may be seen half done; locks belong to the open
 * file and go with it.
 */
#ifndef SIM_FILE_MODEL_H
#define SIM_FILE_MODEL_H

#include "electors/file_terms.h"
#include "tests/sim/clock.h"

enum {
    SIM_INODES = 6,
    SIM_LOCKS = 512,
    SIM_OPENS = 5 /* one for each process */
};

struct sim_inode {
    uint64_t number;
    bool used[COORD__FILE_BLOCKS]; /* the others are zero */
    uint8_t bytes[COORD__FILE_BLOCKS][COORD__FILE_BLOCK];
};

struct sim_lock {
    uint64_t number;
    uint8_t inode;
    uint8_t process;
};

/* The open file of a process. */
struct sim_open {
    int inode;      /* index, -1: none */
    bool half;      /* it was stopped inside a write */
    unsigned block; /* ... of this one */
    size_t done;
    size_t bytes;
    uint8_t rest[COORD__FILE_TEXTS_BLOCKS * COORD__FILE_BLOCK];
    const uint8_t *buffer;          /* where it reads to, and writes from */
    bool filled[COORD__FILE_CHUNK]; /* which blocks there may be other than zero */
};

struct sim_disk {
    struct sim_clock wall;
    uint8_t boot;
    int linked; /* the inode under the path, -1: none */
    unsigned inode_count;
    unsigned lock_count;
    int one_lock_of; /* with that fault planted: who has the one lock, -1: nobody */
    bool kept;       /* a copy of what the disk held at some time */
    struct sim_lock locks[SIM_LOCKS];
    struct sim_open opens[SIM_OPENS];
    struct sim_inode inodes[SIM_INODES];
    struct sim_inode saved;
};

void sim_disk_init(struct sim_disk *disk);

/* Make sure that a file lies under the path, and that the process has it open. @return false: none
 * is there and none is to be made. */
bool sim_disk_open(struct sim_disk *disk, unsigned process, bool create);

/* Does the path still lead to what the process has open? */
bool sim_disk_is_linked(const struct sim_disk *disk, unsigned process);

bool sim_disk_lock(struct sim_disk *disk, unsigned process, uint64_t number);
void sim_disk_unlock(struct sim_disk *disk, unsigned process, uint64_t number);

/* A byte from first to last that another one has locked, the skip-th of them; 0: none. */
uint64_t sim_disk_locked(const struct sim_disk *disk, unsigned process, uint64_t first,
                         uint64_t last, unsigned skip);

void sim_disk_read(struct sim_disk *disk, unsigned process, unsigned block, unsigned count,
                   uint8_t *bytes);

/* Write, or only the first `now` bytes of it: then the process has to be stopped, and
 * sim_disk_finish() does the rest. */
void sim_disk_write(struct sim_disk *disk, unsigned process, unsigned block, const uint8_t *from,
                    size_t bytes, size_t now);
void sim_disk_finish(struct sim_disk *disk, unsigned process);

/* The process is gone, and its open file with it. */
void sim_disk_close(struct sim_disk *disk, unsigned process);

/* What is done to the file behind everybody's back. @return false: too often in this schedule. */
bool sim_disk_remove(struct sim_disk *disk);
bool sim_disk_copy(struct sim_disk *disk);

/* What a crash of the host brings back. */
void sim_disk_save(struct sim_disk *disk);
void sim_disk_restore(struct sim_disk *disk);

#endif /* SIM_FILE_MODEL_H */
