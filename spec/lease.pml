/*
 * The life of one lease: a row of the table, the workers that want it, the network between them, and clocks.
 *
 * README.md beside this file explains how to read it, what is left out, and how to run it (./dev spec). Every
 * action names the function that does it in the program; a lint checks that they exist.
 *
 * Variants that are wrong on purpose are chosen with -D; each must be refuted. What changes is in #ifdef where the
 * mistake would be made.
 *
 * Times are whole ticks, relative to true time: an expiry of 2 is two ticks ahead, whenever "now" is. So time has no
 * end here, and the states are finitely many. A wall clock is read as true time + an offset from 0 to SKEW, drawn
 * anew at each reading: any two clocks differ by at most the skew, and each may be set back within it. A belief is
 * counted on a monotonic clock that falls behind true time by SLOW ticks while it lasts: the slowest that is allowed,
 * since a faster one only ends beliefs earlier, which a worker that stops or crashes does as well.
 */

#ifndef WORKERS
#define WORKERS 2     /* at once; each may crash and come back as a new incarnation, as often as it likes */
#endif
#ifndef NET
#define NET 2         /* requests on their way at once, late and duplicated ones included */
#endif
#ifndef EPOCHS
#define EPOCHS 3      /* ownerships that are followed */
#endif
#ifndef LEASE
#define LEASE 2
#endif
#define SKEW 1
#define SLOW 1        /* ticks that a monotonic clock falls behind during a belief */
#ifdef NO_MARGIN
#define MARGIN 0
#else
#define MARGIN SLOW
#endif
#define BELIEF (LEASE - MARGIN + SLOW)   /* lease - margin by that clock, in ticks of true time */

#ifdef WILD           /* wall clocks that break the promise: S2, S3, S5 and S6 must hold still */
#define FAST 3        /* what a wall clock shows beyond true time, or nothing: more than a lease apart */
#else
#define FAST SKEW     /* with a skew of one tick there is nothing between the two */
#endif
#define SLOWEST 0
#define PAST (-SKEW - 1)  /* an expiry further back than this is kept as this */
#ifdef TAKEOVER_WITHOUT_SKEW
#define WAIT 0
#else
#define WAIT SKEW     /* beyond the expiry, before others take over */
#endif

#define NOBODY 0
#define GHOST 9       /* all incarnations that are gone */

/* Of workers. Keeper::State in src/core/keeper.hpp. */
#define FREE 0
#define CLAIMING 1
#define HELD 2
#define RELEASING 3

/* Requests. LeaseWrite::Kind. */
#define NONE 0
#define CLAIM 1
#define RENEW 2
#define RELEASE 3

/* Replies, as far as a worker tells them apart. */
#define APPLIED 1
#define OWN_ATTEMPT 2 /* a conflict that shows our own attempt */
#define STILL_OURS 3  /* a conflict that shows our owner and epoch */
#define CONFLICT 4

typedef Row {
  byte owner;
  byte epoch;
  byte attempt;       /* of the claim that wrote it last; 0: it was another write */
  short expiry;       /* 0 where nobody owns it */
}
typedef Request {
  byte kind;
  byte from;
  byte epoch;
  byte attempt;       /* claim. (Of other writes nobody else can have left what they leave: not told apart here.) */
  short expiry;       /* claim, renewal: to be written */
  byte seen_owner;    /* claim: the row as it was seen */
  short seen_expiry;
  bit awaited;        /* its sender still waits for an answer */
}
typedef Worker {
  byte state;
  byte epoch;         /* held, or to be held */
  byte attempt;       /* of the claim that is not settled; 0: there is none */
  byte seen_owner;
  short seen_expiry;
  short written;      /* the highest expiry sent under this epoch, if it still matters */
  byte belief;        /* ticks that are left of it, by the worker's own clock */
  byte by_first;      /* what a belief counted from the first try of the claim has left */
  byte by_latest;     /* and from the latest try */
  bit waiting;        /* for an answer */
  byte reply;         /* that is on its way or has arrived, or 0 */
  byte earlier;       /* for S5: an attempt by which an earlier try of the same claim went */
}

Row row;
Request net[NET];
Worker worker[WORKERS + 1];   /* [0] is not used */

/* For the properties only: always true, so they cost no states. The name of the one that breaks is reported. */
bool S1_one_believer = true;
bool S2_no_effect_below_an_accepted_epoch = true;
bool S3_every_epoch_is_given_once_and_rising = true;
bool S4_nobody_can_take_over_what_is_believed_in = true;
bool S5_a_lost_success_is_recognised = true;
bool S6_only_a_conflict_proves_loss = true;
byte given = 0;       /* the highest epoch that a claim was given */
byte effective = 0;   /* the highest epoch of an effect that was accepted */
#ifdef CALM
bool progress_someone_believes_again = true;
bit calm = 0;         /* faults have stopped */
byte unowned = 0;     /* ticks since then, or since the last believer */
#define UNOWNED_MAX (LEASE + 2 * SKEW + 1)
#define FAULTS (!calm)
#else
#define FAULTS true
#endif

/* A paused process is one that takes no step while others and the clock do. It looks at its clock before its next
 * effect, so what counts is the clock, not whether it has noticed. Implemented by: LeaseGuard::holds. */
#ifdef BELIEF_ENDS_ON_A_TIMER_ONLY
#define believes(w) (worker[w].state == HELD)
#else
#define believes(w) (worker[w].state == HELD && worker[w].belief > 0)
#endif

byte i, j;            /* of loops; 0 between steps */
Request spare;        /* for in_order, nothing in it between steps */

#if WORKERS == 2
#define BELIEVERS (believes(1) + believes(2))
#else
#define BELIEVERS (believes(1) + believes(2) + believes(3))
#endif

inline clear(n) {
  net[n].kind = NONE; net[n].from = 0; net[n].epoch = 0; net[n].attempt = 0; net[n].expiry = 0;
  net[n].seen_owner = 0; net[n].seen_expiry = 0; net[n].awaited = 0
}

inline copy(source, target) {
  net[target].kind = net[source].kind; net[target].from = net[source].from; net[target].epoch = net[source].epoch;
  net[target].attempt = net[source].attempt; net[target].expiry = net[source].expiry;
  net[target].seen_owner = net[source].seen_owner; net[target].seen_expiry = net[source].seen_expiry;
  net[target].awaited = net[source].awaited
}

/* Requests stand at the front, in no order that means anything. */
inline take_out(n) {
  for (i : n .. NET - 2) { copy(i + 1, i) }
  clear(NET - 1)
}

/* The order of requests on their way means nothing: one order stands for all. */
#define RANK(n) (net[n].from * 256 + net[n].kind * 64 + net[n].expiry + 16)
inline in_order_two(n) {
  if
  :: net[n + 1].kind != NONE && RANK(n) > RANK(n + 1) ->
       spare.kind = net[n].kind; spare.from = net[n].from; spare.epoch = net[n].epoch;
       spare.attempt = net[n].attempt; spare.expiry = net[n].expiry; spare.seen_owner = net[n].seen_owner;
       spare.seen_expiry = net[n].seen_expiry; spare.awaited = net[n].awaited;
       copy(n + 1, n);
       net[n + 1].kind = spare.kind; net[n + 1].from = spare.from; net[n + 1].epoch = spare.epoch;
       net[n + 1].attempt = spare.attempt; net[n + 1].expiry = spare.expiry; net[n + 1].seen_owner = spare.seen_owner;
       net[n + 1].seen_expiry = spare.seen_expiry; net[n + 1].awaited = spare.awaited;
       spare.kind = 0; spare.from = 0; spare.epoch = 0; spare.attempt = 0; spare.expiry = 0; spare.seen_owner = 0;
       spare.seen_expiry = 0; spare.awaited = 0
  :: else
  fi
}
inline in_order() {
  in_order_two(0)
#if NET > 2
  ; in_order_two(1); in_order_two(0)
#endif
  ; i = 0; j = 0
}

#define WITHOUT_EFFECT(n)                                                                     \
  (net[n].kind != NONE && !net[n].awaited &&                                                  \
   (net[n].kind == CLAIM -> net[n].epoch <= row.epoch                                         \
                         : (net[n].epoch < row.epoch || row.owner == NOBODY && net[n].epoch == row.epoch ||     \
                            net[n].kind == RENEW && net[n].epoch == row.epoch && net[n].expiry <= row.expiry)))

/* After every step. With wild clocks S1 and S4 are not promised. */
inline check() {
#ifndef WILD
  S1_one_believer = (BELIEVERS <= 1);
  assert(S1_one_believer);
#ifndef S1_ONLY
  for (j : 1 .. WORKERS) {
    S4_nobody_can_take_over_what_is_believed_in =
      (!believes(j) || (row.owner == j && row.epoch == worker[j].epoch && row.expiry > 0));
    assert(S4_nobody_can_take_over_what_is_believed_in)
  }
#endif
#endif
#ifdef NOTHING_IS_WITHOUT_EFFECT
  skip;
#else
  /* What nobody waits for, and what can never change anything any more, may as well be lost now. */
  for (j : 0 .. NET - 1) {
    if
    :: WITHOUT_EFFECT(NET - 1 - j) -> take_out(NET - 1 - j)
    :: net[NET - 1 - j].kind == CLAIM && net[NET - 1 - j].epoch <= row.epoch ->
         /* It can only be answered: what it would have written is of no interest. */
         net[NET - 1 - j].expiry = 0; net[NET - 1 - j].seen_owner = 0; net[NET - 1 - j].seen_expiry = 0
    :: else
    fi
  }
  for (j : 1 .. WORKERS) {
    if
    :: worker[j].state == CLAIMING && worker[j].epoch <= row.epoch ->
         worker[j].seen_owner = 0; worker[j].seen_expiry = 0; worker[j].written = 0
    :: else
    fi
  }
  if
  :: row.attempt != 0 && (row.owner == NOBODY || row.owner == GHOST) -> row.attempt = 0
  :: else ->
       if
       :: row.attempt != 0 -> if :: worker[row.owner].state != CLAIMING -> row.attempt = 0 :: else fi
       :: else
       fi
  fi;
#endif
  in_order()
}

inline forget(w) {
  worker[w].state = FREE; worker[w].epoch = 0; worker[w].attempt = 0; worker[w].seen_owner = 0;
  worker[w].seen_expiry = 0; worker[w].written = 0; worker[w].belief = 0; worker[w].by_first = 0;
  worker[w].by_latest = 0; worker[w].waiting = 0; worker[w].reply = 0; worker[w].earlier = 0;
  for (i : 0 .. NET - 1) {
    if
    :: net[i].from == w -> net[i].awaited = 0
    :: else
    fi
  }
}

inline settled(w) { worker[w].attempt = 0; worker[w].by_first = 0 }

/* ---- What a worker does ---- */

#define CLAIMABLE_AT(owner_, expiry_, offset) (owner_ == NOBODY || expiry_ + WAIT <= (offset))
#ifdef CLAIM_ONLY_WHAT_IS_FREE
#define MAY_LOOK(offset) (row.owner == NOBODY)
#else
#define MAY_LOOK(offset) CLAIMABLE_AT(row.owner, row.expiry, offset)
#endif
#define MAY_CLAIM(w, offset) \
  (worker[w].state == FREE && row.epoch < EPOCHS && net[NET - 1].kind == NONE && MAY_LOOK(offset))

/* It sees an orphan; the first try of the claim follows at once. (A try may be late, and a later one goes by what was
 * seen at first: so what was seen may be old by the time of the write.)
 * Implemented by: candidate_from, Planner::take, Keeper::claim. */
inline look(w) {
  worker[w].state = CLAIMING;
  worker[w].epoch = row.epoch + 1;
  worker[w].seen_owner = row.owner;
  worker[w].seen_expiry = row.expiry
}

/* A try of the write that its state asks for, stamped before it leaves; `offset` is what its wall clock shows beyond
 * true time. Implemented by: Keeper::make_write, Keeper::take_write, claimable_from. */
#define MAY_SEND(w, offset)                                                                   \
  (net[NET - 1].kind == NONE && !worker[w].waiting && worker[w].reply == 0 &&                 \
   ((worker[w].state == CLAIMING && CLAIMABLE_AT(worker[w].seen_owner, worker[w].seen_expiry, offset)) || \
    (worker[w].state == HELD && worker[w].belief > 0) || worker[w].state == RELEASING))

inline send(w, offset) {
  if
  :: worker[w].state == CLAIMING && worker[w].attempt == 0 ->
       /* An id that no trace is left of. */
       worker[w].attempt = 1;
       do
       :: worker[w].attempt == row.attempt -> worker[w].attempt++
       :: else ->
            j = 0;
            for (i : 0 .. NET - 1) {
              if
              :: net[i].kind != NONE && net[i].attempt == worker[w].attempt -> j = 1
              :: else
              fi
            }
            if
            :: j == 1 -> worker[w].attempt++
            :: else -> break
            fi
       od;
       worker[w].by_first = BELIEF
  :: else
  fi;
  worker[w].by_latest = BELIEF;
  i = 0;
  do
  :: net[i].kind != NONE -> i++
  :: else -> break
  od;
  net[i].from = w;
  net[i].epoch = worker[w].epoch;
  net[i].attempt = worker[w].attempt;
  net[i].awaited = 1;
  worker[w].waiting = 1;
  if
  :: worker[w].state == RELEASING -> net[i].kind = RELEASE
  :: else ->
       /* Never below an earlier try's. (The program adds a millisecond, which is no tick.) */
       if
       :: worker[w].written < LEASE + (offset) -> worker[w].written = LEASE + (offset)
       :: else
       fi;
       net[i].expiry = worker[w].written;
       if
       :: worker[w].state == HELD -> net[i].kind = RENEW
       :: else ->
            net[i].kind = CLAIM;
            net[i].seen_owner = worker[w].seen_owner;
            net[i].seen_expiry = worker[w].seen_expiry
       fi
  fi;
  check()
}

/* The belief may begin, or go on. `counted` is what a belief counted from before has left. */
inline won(w, counted) {
  /* Implemented by: Keeper::won. A grant that came too late is given back (F8). */
#ifdef BELIEF_FROM_THE_REPLY
  worker[w].belief = BELIEF;
#else
  worker[w].belief = counted;
#endif
  settled(w);
  if
  :: worker[w].belief > 0 -> worker[w].state = HELD
  :: else -> worker[w].state = RELEASING
  fi
}

inline renewed(w, counted) {
  /* Implemented by: Keeper::renewed. */
#ifdef BELIEF_FROM_THE_REPLY
  worker[w].belief = BELIEF;
#else
  if
  :: counted > worker[w].belief -> worker[w].belief = counted
  :: else
  fi;
#endif
  settled(w)
}

#ifdef SETTLED_BY_THE_LATEST_TRY
#define SETTLED by_latest
#else
#define SETTLED by_first
#endif

/* An answer arrives. Implemented by: Keeper::on_write, Keeper::settle. */
inline receive(w) {
  worker[w].waiting = 0;
  for (i : 0 .. NET - 1) {     /* a second answer, to a duplicate, is ignored */
    if
    :: net[i].from == w -> net[i].awaited = 0
    :: else
    fi
  }
  if
  :: worker[w].state == CLAIMING ->
       /* Implemented by: Keeper::claim_answered. */
       if
       :: worker[w].reply == APPLIED -> won(w, worker[w].by_latest)
       :: worker[w].reply == OWN_ATTEMPT -> won(w, worker[w].SETTLED)
       :: else -> forget(w)
       fi
  :: worker[w].state == HELD && worker[w].belief > 0 ->
       /* Implemented by: Keeper::renewal_answered. */
       if
       :: worker[w].reply == APPLIED -> renewed(w, worker[w].by_latest)
       :: worker[w].reply == OWN_ATTEMPT || worker[w].reply == STILL_OURS -> skip
       :: else ->
            S6_only_a_conflict_proves_loss = (row.owner != w || row.epoch != worker[w].epoch);
            assert(S6_only_a_conflict_proves_loss);
            forget(w)
       fi
  :: worker[w].state == RELEASING ->
       /* Applied, its own earlier try, or no longer its own (F4). Implemented by: Keeper::release_answered. */
       forget(w)
  :: else -> forget(w)
  fi;
  if
  :: worker[w].state != FREE -> worker[w].reply = 0; worker[w].by_latest = 0
  :: else
  fi;
  check()
}

/* No answer came in time, whatever became of the request and its reply: a lost request, a lost reply, a slow one,
 * throttling. Implemented by: Keeper::settle, Keeper::retry. */
inline give_up_waiting(w) {
  worker[w].waiting = 0;
  worker[w].reply = 0;
  worker[w].by_latest = 0;
  for (i : 0 .. NET - 1) {
    if
    :: net[i].from == w -> net[i].awaited = 0
    :: else
    fi
  }
#ifdef A_NEW_ATTEMPT_PER_TRY
  worker[w].earlier = worker[w].attempt;
  settled(w);
#endif
#ifdef UNKNOWN_IS_LOSS
  if
  :: worker[w].state == HELD && worker[w].belief > 0 ->
       S6_only_a_conflict_proves_loss = (row.owner != w || row.epoch != worker[w].epoch);
       assert(S6_only_a_conflict_proves_loss);
       forget(w)
  :: else
  fi;
#endif
  check()
}

/* It notices that the belief has ended. (The program claims nothing on that row until the write that is on its way has
 * been settled; here it may.) Implemented by: Keeper::fire, Keeper::lose. */
inline lose(w) { forget(w); check() }

/* Desired state changed, or it drains: the resource has ended, the lease is given back.
 * (The program lets a renewal that is on its way be answered first, F5; here the two may race.)
 * Implemented by: Keeper::stopped, Keeper::give_back. */
inline stop(w) {
  j = worker[w].epoch;
  forget(w);
  worker[w].state = RELEASING;
  worker[w].epoch = j;
  check()
}

/* What is left of a claim or release that is not worth another try. Implemented by: Keeper::fire, Keeper::end. */
inline abandon(w) { forget(w); check() }

/* It is killed. What it sent is still on its way; what comes after has another name. Implemented by: nothing; a
 * worker's id has its incarnation in it. */
inline crash(w) {
  forget(w);
  if
  :: row.owner == w -> row.owner = GHOST
  :: else
  fi;
  for (i : 0 .. NET - 1) {
    if
    :: net[i].from == w -> net[i].from = GHOST; net[i].awaited = 0
    :: else
    fi;
    if
    :: net[i].kind == CLAIM && net[i].seen_owner == w -> net[i].seen_owner = GHOST
    :: else
    fi
  }
  for (i : 1 .. WORKERS) {
    if
    :: worker[i].state == CLAIMING && worker[i].seen_owner == w -> worker[i].seen_owner = GHOST
    :: else
    fi
  }
  check()
}

/* ---- What the table does ---- */

inline accept_effect(epoch_) {
  S2_no_effect_below_an_accepted_epoch = (epoch_ >= effective && epoch_ >= given);
  assert(S2_no_effect_below_an_accepted_epoch);
  effective = epoch_
}

/* `j`: it was applied. A reply that is never read is a lost one.
 * Implemented by: Keeper::own_attempt, Keeper::still_ours (of the row that a conflict carries). */
inline answer(n) {
  if
  :: net[n].awaited && worker[net[n].from].reply == 0 ->
       i = net[n].from;
       if
       :: j -> worker[i].reply = APPLIED
       :: !j && row.attempt == net[n].attempt && row.epoch == net[n].epoch &&
            row.owner == (net[n].kind == RELEASE -> NOBODY : i) -> worker[i].reply = OWN_ATTEMPT
       :: !j && net[n].kind != CLAIM && row.owner == i && row.epoch == net[n].epoch -> worker[i].reply = STILL_OURS
       :: else ->
            worker[i].reply = CONFLICT;
            /* The claimer will take it for somebody else's: then no earlier try of this claim has made it. */
            S5_a_lost_success_is_recognised =
              !(net[n].kind == CLAIM && row.owner == i && row.epoch == net[n].epoch &&
                row.attempt == worker[i].earlier);
            assert(S5_a_lost_success_is_recognised)
       fi;
       net[n].awaited = 0
  :: else
  fi
}

/* An expiry up to this has passed by the clock that stamped the claim: the wall clock then - WAIT. */
#define FREE_BEFORE(n) (net[n].expiry - LEASE - WAIT > PAST -> net[n].expiry - LEASE - WAIT : PAST)

/* A request arrives. A renewal and a release carry a checkpoint (last_seq), which is the effect that S2 is about.
 * Implemented by: render_claim, as_seen, render_renewal, render_release, held_by, holds. */
inline serve(n) {
  if
  :: net[n].kind == CLAIM ->
#ifdef CLAIM_WITHOUT_WHAT_WAS_SEEN
       j = (row.owner == NOBODY || row.expiry <= FREE_BEFORE(n));
#else
       j = (row.epoch == net[n].epoch - 1 && row.owner == net[n].seen_owner && row.expiry == net[n].seen_expiry &&
            (row.owner == NOBODY || row.expiry <= FREE_BEFORE(n)));
#endif
       if
       :: j ->
            S3_every_epoch_is_given_once_and_rising = (net[n].epoch > given);
            assert(S3_every_epoch_is_given_once_and_rising);
            given = net[n].epoch;
            row.owner = net[n].from; row.epoch = net[n].epoch; row.attempt = net[n].attempt;
            row.expiry = net[n].expiry
       :: else
       fi
  :: net[n].kind == RENEW ->
       j = (row.owner == net[n].from
#ifndef RENEW_WITHOUT_EPOCH
            && row.epoch == net[n].epoch
#endif
#ifndef RENEW_TAKES_BACK
            && row.expiry <= net[n].expiry
#endif
           );
       if
       :: j ->
            accept_effect(net[n].epoch);
            row.attempt = 0; row.expiry = net[n].expiry
       :: else ->
#ifdef NO_FENCE
            accept_effect(net[n].epoch)
#else
            skip
#endif
       fi
  :: net[n].kind == RELEASE ->
#ifdef RELEASE_WITHOUT_CONDITION
       j = 1;
       if
       :: row.owner != NOBODY -> row.owner = NOBODY; row.attempt = 0; row.expiry = 0
       :: else
       fi
#else
       j = (row.owner == net[n].from && row.epoch == net[n].epoch);
       if
       :: j ->
            accept_effect(net[n].epoch);
            row.owner = NOBODY; row.attempt = 0; row.expiry = 0
#ifdef RELEASE_RESETS_THE_EPOCH
            ; row.epoch = 0
#endif
       :: else
       fi
#endif
  fi;
  answer(n);
  /* It stays on its way, as a duplicate that may arrive at any later time, until it is lost. */
#ifdef CALM
  if
  :: calm -> take_out(n)
  :: else
  fi;
#endif
  check()
}

/* ---- Time ---- */

inline later(time) {
  if
  :: time > PAST -> time = time - 1
  :: else
  fi
}
inline count_down(left) {
  if
  :: left > 0 -> left = left - 1
  :: else
  fi
}

inline tick() {
  if
  :: row.owner != NOBODY -> later(row.expiry)
  :: else
  fi;
  for (i : 0 .. NET - 1) {
    if
    :: net[i].kind == CLAIM ->
         later(net[i].expiry);
         if
         :: net[i].seen_owner != NOBODY -> later(net[i].seen_expiry)
         :: else
         fi
    :: net[i].kind == RENEW -> later(net[i].expiry)
    :: else
    fi
  }
  for (i : 1 .. WORKERS) {
    if
    :: worker[i].written > LEASE + SLOWEST + 1 -> worker[i].written = worker[i].written - 1
    :: else -> worker[i].written = 0   /* below what any clock asks for from now on */
    fi;
    if
    :: worker[i].state == CLAIMING && worker[i].seen_owner != NOBODY -> later(worker[i].seen_expiry)
    :: else
    fi;
    count_down(worker[i].belief);
    count_down(worker[i].by_first);
    count_down(worker[i].by_latest)
  }
#ifdef CALM
  if
  :: !calm || BELIEVERS > 0 || row.epoch == EPOCHS -> unowned = 0
  :: else -> unowned++
  fi;
  progress_someone_believes_again = (unowned <= UNOWNED_MAX);
  assert(progress_someone_believes_again);
#endif
  check()
}

/* ---- Who may do what, when ---- */

#ifdef CALM
/* Faults have stopped: whatever can be done is done before the next tick. */
#define RESTS(w)                                                                              \
  (worker[w].state == FREE && !MAY_CLAIM(w, 0) ||                                             \
   worker[w].state == HELD && worker[w].belief > 1 && !worker[w].waiting ||                   \
   worker[w].state == CLAIMING && !worker[w].waiting && !MAY_SEND(w, 0))
#if WORKERS == 2
#define ALL_REST (RESTS(1) && RESTS(2))
#else
#define ALL_REST (RESTS(1) && RESTS(2) && RESTS(3))
#endif
#define MAY_TICK (!calm || net[0].kind == NONE && ALL_REST)
#define UNANSWERABLE(w) (worker[w].waiting && worker[w].reply == 0 && net[0].kind == NONE)
#else
#define MAY_TICK true
#define UNANSWERABLE(w) false
#endif

proctype A_worker(byte w) {
end:
  do
  :: d_step { MAY_CLAIM(w, SLOWEST) ->
       printf("worker %d sees an orphan and claims, its clock at now + %d\n", w, SLOWEST); look(w); send(w, SLOWEST) }
  :: d_step { MAY_CLAIM(w, FAST) ->
       printf("worker %d sees an orphan and claims, its clock at now + %d\n", w, FAST); look(w); send(w, FAST) }
  :: d_step { MAY_SEND(w, SLOWEST) ->
       printf("worker %d sends a try, its clock at now + %d\n", w, SLOWEST); send(w, SLOWEST) }
  :: d_step { MAY_SEND(w, FAST) ->
       printf("worker %d sends a try, its clock at now + %d\n", w, FAST); send(w, FAST) }
  :: d_step { worker[w].reply != 0 -> printf("worker %d gets answer %d\n", w, worker[w].reply); receive(w) }
  :: d_step { worker[w].waiting && (FAULTS || UNANSWERABLE(w)) ->
       printf("worker %d waits no longer for an answer\n", w); give_up_waiting(w) }
  :: d_step { worker[w].state == HELD && worker[w].belief == 0 ->
       printf("worker %d notices that its belief has ended\n", w); lose(w) }
  :: d_step { believes(w) && worker[w].belief > 0 && FAULTS ->
       printf("worker %d stops and will give the lease back\n", w); stop(w) }
  :: d_step { (worker[w].state == CLAIMING || worker[w].state == RELEASING) && !worker[w].waiting &&
              worker[w].reply == 0 && FAULTS -> printf("worker %d tries no longer\n", w); abandon(w) }
#ifdef CRASHES
  :: d_step { worker[w].state != FREE && FAULTS ->
       printf("worker %d crashes and comes back as another\n", w); crash(w) }
#endif
  od
}

proctype The_table() {
end:
  do
  :: d_step { net[0].kind != NONE ->
       printf("the table is reached by request %d (1 claim, 2 renew, 3 release) of worker %d under epoch %d\n",
              net[0].kind, net[0].from, net[0].epoch); serve(0) }
  :: d_step { net[1].kind != NONE ->
       printf("the table is reached by request %d (1 claim, 2 renew, 3 release) of worker %d under epoch %d\n",
              net[1].kind, net[1].from, net[1].epoch); serve(1) }
#if NET > 2
  :: d_step { net[2].kind != NONE ->
       printf("the table is reached by request %d (1 claim, 2 renew, 3 release) of worker %d under epoch %d\n",
              net[2].kind, net[2].from, net[2].epoch); serve(2) }
#endif
  od
}

/* Requests wait as long as they like, overtake one another, arrive again and again (see serve), and are lost. */
proctype The_network() {
end:
  do
  :: d_step { FAULTS && net[0].kind != NONE ->
       printf("the network loses request %d of worker %d\n", net[0].kind, net[0].from); take_out(0); check() }
  :: d_step { FAULTS && net[1].kind != NONE ->
       printf("the network loses request %d of worker %d\n", net[1].kind, net[1].from); take_out(1); check() }
#if NET > 2
  :: d_step { FAULTS && net[2].kind != NONE ->
       printf("the network loses request %d of worker %d\n", net[2].kind, net[2].from); take_out(2); check() }
#endif
  od
}

proctype The_clock() {
end:
  do
  :: d_step { MAY_TICK -> printf("a tick passes\n"); tick() }
#ifdef CALM
  :: d_step { !calm -> printf("faults stop\n"); calm = 1 }
#endif
  od
}

init {
  atomic {
#ifdef ORPHANED_BY_A_CRASH
    row.owner = GHOST; row.epoch = 1; row.expiry = LEASE + SKEW; given = 1; effective = 1;
#endif
    run A_worker(1);
    run A_worker(2);
#if WORKERS > 2
    run A_worker(3);
#endif
    run The_table();
    run The_network();
    run The_clock()
  }
}
