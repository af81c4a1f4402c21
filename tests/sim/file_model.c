/* SPDX-License-Identifier: MIT
 * tests/sim/file_model.c - see file_model.h.
 */
#include "tests/sim/file_model.h"

#include <string.h>

#include "tests/sim/plant.h"

enum {
    FIRST_INODE = 100
};

static void clear(struct sim_inode *inode)
{
    for (unsigned i = 0; i < COORD__FILE_BLOCKS; i++) {
        if (inode->used[i]) {
            memset(inode->bytes[i], 0, COORD__FILE_BLOCK);
            inode->used[i] = false;
        }
    }
}

static void copy(struct sim_inode *to, const struct sim_inode *from)
{
    clear(to);
    for (unsigned i = 0; i < COORD__FILE_BLOCKS; i++) {
        if (from->used[i]) {
            memcpy(to->bytes[i], from->bytes[i], COORD__FILE_BLOCK);
            to->used[i] = true;
        }
    }
}

/* An empty file that nobody has heard of before; -1: too many. */
static int new_inode(struct sim_disk *disk)
{
    if (disk->inode_count == SIM_INODES) {
        return -1;
    }
    struct sim_inode *inode = &disk->inodes[disk->inode_count];
    clear(inode);
    inode->number = FIRST_INODE + disk->inode_count;
    return (int)disk->inode_count++;
}

void sim_disk_init(struct sim_disk *disk)
{
    disk->boot = 1;
    disk->linked = -1;
    disk->inode_count = 0;
    disk->lock_count = 0;
    disk->one_lock_of = -1;
    disk->kept = false;
    for (unsigned i = 0; i < SIM_OPENS; i++) {
        disk->opens[i].inode = -1;
        disk->opens[i].half = false;
        disk->opens[i].buffer = NULL;
    }
}

/* ---------------------------------------------------------------- locks */

static bool planted_one_lock(void)
{
    return sim_planted(SIM_PLANT_ONE_LOCK);
}

bool sim_disk_lock(struct sim_disk *disk, unsigned process, uint64_t number)
{
    const uint8_t inode = (uint8_t)disk->opens[process].inode;
    for (unsigned i = 0; i < disk->lock_count && !planted_one_lock(); i++) {
        const struct sim_lock *lock = &disk->locks[i];
        if (lock->inode == inode && lock->number == number) {
            return lock->process == process;
        }
    }
    if (disk->one_lock_of < 0) {
        disk->one_lock_of = (int)process;
    }
    COORD_ASSERT(disk->lock_count < SIM_LOCKS);
    disk->locks[disk->lock_count++] =
        (struct sim_lock){.number = number, .inode = inode, .process = (uint8_t)process};
    return true;
}

static void drop_lock(struct sim_disk *disk, unsigned index)
{
    if (disk->one_lock_of == (int)disk->locks[index].process) {
        disk->one_lock_of = -1;
    }
    disk->locks[index] = disk->locks[--disk->lock_count];
}

void sim_disk_unlock(struct sim_disk *disk, unsigned process, uint64_t number)
{
    for (unsigned i = disk->lock_count; i-- > 0;) {
        const struct sim_lock *lock = &disk->locks[i];
        if (lock->process == process && lock->number == number) {
            drop_lock(disk, i);
        }
    }
}

uint64_t sim_disk_locked(const struct sim_disk *disk, unsigned process, uint64_t first,
                         uint64_t last, unsigned skip)
{
    const int inode = disk->opens[process].inode;
    uint64_t found = 0;
    if (planted_one_lock()) {
        const bool held = disk->one_lock_of >= 0 && disk->one_lock_of != (int)process;
        return held && first == last ? first : 0;
    }
    for (unsigned i = 0; i < disk->lock_count; i++) {
        const struct sim_lock *lock = &disk->locks[i];
        if (lock->inode == inode && lock->process != process && lock->number >= first &&
            lock->number <= last) {
            found = lock->number;
            if (skip-- == 0) {
                break;
            }
        }
    }
    return found;
}

void sim_disk_close(struct sim_disk *disk, unsigned process)
{
    for (unsigned i = disk->lock_count; i-- > 0;) {
        if (disk->locks[i].process == process) {
            drop_lock(disk, i);
        }
    }
    disk->opens[process].inode = -1;
    disk->opens[process].half = false;
    disk->opens[process].buffer = NULL;
}

/* ---------------------------------------------------------------- the path */

bool sim_disk_open(struct sim_disk *disk, unsigned process, bool create)
{
    struct sim_open *open = &disk->opens[process];
    if (disk->linked < 0 && create) {
        disk->linked = new_inode(disk);
    }
    if (disk->linked < 0) {
        return false;
    }
    if (open->inode != disk->linked) {
        sim_disk_close(disk, process);
        open->inode = disk->linked;
    }
    return true;
}

bool sim_disk_is_linked(const struct sim_disk *disk, unsigned process)
{
    return disk->opens[process].inode == disk->linked;
}

/* ---------------------------------------------------------------- blocks */

/* Most blocks were never written, and are zero already where they are read to. */
void sim_disk_read(struct sim_disk *disk, unsigned process, unsigned block, unsigned count,
                   uint8_t *bytes)
{
    struct sim_open *open = &disk->opens[process];
    const struct sim_inode *inode = &disk->inodes[open->inode];
    COORD_ASSERT(block + count <= COORD__FILE_BLOCKS);
    COORD_ASSERT(count <= COORD__FILE_CHUNK);
    if (open->buffer != bytes) {
        open->buffer = bytes;
        memset(open->filled, true, sizeof open->filled);
    }
    for (unsigned i = 0; i < count; i++) {
        const bool used = inode->used[block + i];
        if (used) {
            memcpy(bytes + (size_t)i * COORD__FILE_BLOCK, inode->bytes[block + i],
                   COORD__FILE_BLOCK);
        } else if (open->filled[i]) {
            memset(bytes + (size_t)i * COORD__FILE_BLOCK, 0, COORD__FILE_BLOCK);
        }
        open->filled[i] = used;
    }
}

static void put(struct sim_inode *inode, unsigned block, size_t at, const uint8_t *from,
                size_t bytes)
{
    COORD_ASSERT(block + (at + bytes + COORD__FILE_BLOCK - 1) / COORD__FILE_BLOCK <=
                 COORD__FILE_BLOCKS);
    memcpy(&inode->bytes[0][0] + (size_t)block * COORD__FILE_BLOCK + at, from, bytes);
    for (size_t i = 0; i < at + bytes; i += COORD__FILE_BLOCK) {
        inode->used[block + i / COORD__FILE_BLOCK] = true;
    }
}

void sim_disk_write(struct sim_disk *disk, unsigned process, unsigned block, const uint8_t *from,
                    size_t bytes, size_t now)
{
    struct sim_open *open = &disk->opens[process];
    COORD_ASSERT(!open->half);
    COORD_ASSERT(bytes <= sizeof open->rest);
    put(&disk->inodes[open->inode], block, 0, from, now);
    memset(open->filled, true, (bytes + COORD__FILE_BLOCK - 1) / COORD__FILE_BLOCK);
    if (now < bytes) {
        open->half = true;
        open->block = block;
        open->done = now;
        open->bytes = bytes;
        memcpy(open->rest, from, bytes);
    }
}

void sim_disk_finish(struct sim_disk *disk, unsigned process)
{
    struct sim_open *open = &disk->opens[process];
    if (open->half) {
        open->half = false;
        put(&disk->inodes[open->inode], open->block, open->done, open->rest + open->done,
            open->bytes - open->done);
    }
}

/* ---------------------------------------------------------------- behind everybody's back */

bool sim_disk_remove(struct sim_disk *disk)
{
    if (disk->linked < 0 || disk->inode_count == SIM_INODES) {
        return false;
    }
    disk->linked = -1;
    return true;
}

bool sim_disk_copy(struct sim_disk *disk)
{
    const int former = disk->linked;
    if (former < 0 || disk->inode_count == SIM_INODES) {
        return false;
    }
    disk->linked = new_inode(disk);
    copy(&disk->inodes[disk->linked], &disk->inodes[former]);
    return true;
}

void sim_disk_save(struct sim_disk *disk)
{
    if (disk->linked >= 0) {
        copy(&disk->saved, &disk->inodes[disk->linked]);
        disk->saved.number = disk->inodes[disk->linked].number;
        disk->kept = true;
    }
}

void sim_disk_restore(struct sim_disk *disk)
{
    if (disk->kept && disk->linked >= 0 &&
        disk->saved.number == disk->inodes[disk->linked].number) {
        copy(&disk->inodes[disk->linked], &disk->saved);
    }
}
