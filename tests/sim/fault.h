/* SPDX-License-Identifier: MIT
 * tests/sim/fault.h - which store is simulated, and what may happen to it and around it.
 */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include <stdint.h>

enum sim_store {
    SIM_STORE_REDIS = 0,
    SIM_STORE_FILE = 1,
    SIM_STORE_POSTGRES = 2,
    SIM_STORES
};

/* What may happen in a schedule; each seed switches some of it on. */
enum sim_fault {
    SIM_FAULT_LOSS = 1 << 0,  /* requests and replies get lost */
    SIM_FAULT_SLOW = 1 << 1,  /* they take up to two attempts */
    SIM_FAULT_STALL = 1 << 2, /* a connection stands still, and delivers later */
    SIM_FAULT_TWICE = 1 << 3, /* a request is executed twice */
    SIM_FAULT_PAUSE = 1 << 4, /* SIGSTOP, SIGCONT */
    SIM_FAULT_STALE = 1 << 5, /* ... between reading the clock and using it */
    SIM_FAULT_KILL = 1 << 6,
    SIM_FAULT_WITHDRAW = 1 << 7,
    SIM_FAULT_STEP_DOWN = 1 << 8,
    SIM_FAULT_ASK = 1 << 9, /* step-down asked for from outside */
    SIM_FAULT_HEALTH = 1 << 10,
    SIM_FAULT_CANDIDACY = 1 << 11, /* pause and resume */
    SIM_FAULT_SLOW_HOST = 1 << 12, /* its work ends late, up to hard */
    SIM_FAULT_HUNG_HOST = 1 << 13, /* its work is ended by hard, and acknowledged much later */
    SIM_FAULT_RESTART = 1 << 14,   /* of the server: empty, from a snapshot, with everything */
    SIM_FAULT_FLUSH = 1 << 15,     /* FLUSHALL; the file is removed */
    SIM_FAULT_PROMOTE = 1 << 16,   /* a replica that lags becomes the primary */
    SIM_FAULT_JUMP = 1 << 17,      /* the server's clock steps */
    SIM_FAULT_NO_INFO = 1 << 18,   /* the run cannot be read */
    SIM_FAULT_LEASES = 1 << 19,    /* members with different leases */
    SIM_FAULT_RANKS = 1 << 20,
    SIM_FAULT_LATE = 1 << 21,      /* processes wake late */
    SIM_FAULT_TORN = 1 << 22,      /* file: reads beside a writer are torn */
    SIM_FAULT_COPY = 1 << 23,      /* file: replaced by a copy; postgres: an older row put back */
    SIM_FAULT_NAMESPACE = 1 << 24, /* file: a member of another time namespace */
    SIM_FAULT_REBOOT = 1 << 25,    /* file: the host starts anew */
    SIM_FAULT_CHURN = 1 << 26,     /* hosts end their terms as soon as they begin */
    SIM_FAULT_TERMINATE = 1 << 27, /* postgres: a session is ended */
    SIM_FAULT_WRITERS = 1 << 28,   /* postgres: hosts do guarded work */
    SIM_FAULT_COMMIT = 1 << 29,    /* postgres: a grant cannot be committed */
    SIM_FAULT_TABLE = 1 << 30      /* postgres: the table is locked for a while */
};

#endif /* SIM_FAULT_H */
