/* SPDX-License-Identifier: MIT
 * docs/model/file_terms.pml - the order of steps of the file elector, for the model checker spin.
 *
 * Term g owns byte g, a lock that the kernel drops at death, and slot g, which only its holder
 * writes. Write first, then look for a higher term. A shared clock of small steps; processes may be
 * stopped between any two steps, which the interleaving does, and die DEATHS times in all.
 *
 *   spin -run -DNOREDUCE -DCOLLAPSE -m2000000 docs/model/file_terms.pml
 *                                  exhaustive, 3.0e7 states, some minutes: clean
 *   spin -DNODEBT -run ...         without the wait for earlier terms: two leaders
 *   spin -DUNLOCKFIRST -run ...    the byte freed before the answer is "no": two leaders
 */
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef TTL
#define TTL 2
#endif
#ifndef LAST
#define LAST 4 /* the clock ends here; more takes hours */
#endif
#define SLOTS 6
#define FREE 255

byte now;
byte lock[SLOTS];         /* who holds the byte of a term */
byte valid_until[SLOTS];  /* what its slot says; 0: no slot yet */
byte leads_until[2];      /* what each process believes, by its own deadline */
byte deaths = DEATHS;

/* The newest term that shows a lock or a slot. */
inline newest(x)
{
    x = SLOTS - 1;
    do
    :: x > 0 && lock[x] == FREE && valid_until[x] == 0 -> x--
    :: else -> break
    od
}

inline die()
{
    leads_until[me] = 0;
    if
    :: mine > 0 && lock[mine] == me -> lock[mine] = FREE
    :: else
    fi;
    mine = 0; top = 0; seen = 0; sent = 0; earlier = 0
}

/* It is not ours any more: first say no, then free the byte. */
inline lose()
{
#ifdef UNLOCKFIRST
    lock[mine] = FREE; mine = 0
#else
    atomic { leads_until[me] = 0; lock[mine] = FREE; mine = 0 }
#endif
}

proctype candidate(byte me)
{
    byte mine = 0, top = 0, seen = 0, sent = 0, earlier = 0;
start:
    if
    :: now >= LAST -> goto end
    :: atomic { now < LAST -> newest(top) }
    fi;
    /* Takeover: the newest is free or past, or has had its byte without a slot for a lease. */
    if
    :: atomic { top == 0 || lock[top] == FREE || (valid_until[top] > 0 && now >= valid_until[top]) ->
                skip }
    :: atomic { top > 0 && lock[top] != FREE && valid_until[top] == 0 -> seen = now };
       atomic { now >= seen + TTL ->
                if
                :: valid_until[top] > 0 -> top = SLOTS
                :: else
                fi }
    :: now >= LAST -> goto end
    fi;
    if
    :: top >= SLOTS - 1 -> goto start
    :: else
    fi;
    atomic {
        if
        :: lock[top + 1] == FREE && valid_until[top + 1] == 0 -> mine = top + 1; lock[mine] = me
        :: else
        fi
    };
    if
    :: mine == 0 -> goto start
    :: else
    fi;
    sent = now;
    valid_until[mine] = sent + TTL;
    atomic { newest(top) };
    if
    :: top > mine -> lose(); goto start
    :: else
    fi;
#ifndef NODEBT
    earlier = 1;
    do
    :: earlier < mine ->
        if
        :: atomic { lock[earlier] == FREE || now >= valid_until[earlier] -> earlier++ }
        :: now >= LAST -> goto end
        :: atomic { deaths > 0 -> deaths--; die() }; goto start
        fi
    :: else -> break
    od;
#endif
    do
    :: atomic { now < LAST -> sent = now };
       valid_until[mine] = sent + TTL;
       atomic { newest(top) };
       if
       :: top > mine -> lose(); goto start
       :: else
       fi;
       atomic {
           if
           :: sent + TTL > leads_until[me] -> leads_until[me] = sent + TTL
           :: else
           fi
       }
    :: atomic { leads_until[me] = 0; lock[mine] = FREE; mine = 0 }; goto start /* resigns */
    :: atomic { deaths > 0 -> deaths--; die() }; goto start
    :: now >= LAST -> goto end
    od;
end:
    skip
}

proctype clock()
{
    do
    :: now < LAST -> now++
    :: else -> break
    od
}

init
{
    atomic {
        byte i = 0;
        do
        :: i < SLOTS -> lock[i] = FREE; i++
        :: else -> break
        od;
        run candidate(0);
        run candidate(1);
        run clock()
    }
}

never
{
    do
    :: now < leads_until[0] && now < leads_until[1] -> break
    :: else
    od
}
