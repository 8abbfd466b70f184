/*
 * The life of one lease: a row of the table, the workers that want it, the operator, the network between them, and clocks.
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
#define NEVER 9       /* an expiry so far ahead that no tick brings it nearer */
#ifdef TAKEOVER_WITHOUT_SKEW
#define WAIT 0
#else
#define WAIT SKEW     /* beyond the expiry, before others take over */
#endif

#define NOBODY 0
#define GHOST 7       /* all incarnations that are gone */

/* Of workers. Keeper::State in src/core/keeper.hpp. */
#define FREE 0
#define CLAIMING 1
#define HELD 2
#define RELEASING 3
#define DRAINING 4    /* releasing, and claims nothing more: what comes after has another name */

/* Requests. LeaseWrite::Kind, and what `holdfast conn release` sends. */
#define NONE 0
#define CLAIM 1
#define RENEW 2
#define RELEASE 3
#define SHORTEN 4

/* Replies, as far as a worker tells them apart. */
#define APPLIED 1
#define OWN_ATTEMPT 2 /* a conflict that shows our own attempt */
#define STILL_OURS 3  /* a conflict that shows our owner and epoch */
#define CONFLICT 4

/* An attempt's id is random, so all that counts of it is whether it is that of its sender's write which is not settled
 * yet: that is what is kept here instead. */
#define OPEN 1
#define EARLIER 8     /* it is that of an earlier try of the write: the variant A_NEW_ATTEMPT_PER_TRY only */

typedef Row {
  unsigned owner : 3;
  unsigned epoch : 3;
  byte renewal;       /* which renewal under this epoch was the last */
  unsigned attempt : 4;       /* the worker whose write that is not settled wrote it last (+ EARLIER), or 0 */
  short expiry;       /* 0 where nobody owns it */
}
typedef Request {
  unsigned kind : 3;
  unsigned from : 3;          /* of SHORTEN: nobody */
  unsigned epoch : 3;         /* of SHORTEN: that was seen */
  byte renewal;       /* of a renewal: its number. Of SHORTEN: that was seen */
  unsigned attempt : 4;       /* OPEN, EARLIER or 0 */
  short expiry;       /* to be written; of a release: 0 */
  unsigned seen_owner : 3;    /* of a claim, SHORTEN: the row as it was seen */
  short seen_expiry;
  bit awaited;        /* its sender still waits for an answer */
}
typedef Worker {
  unsigned state : 3;
  unsigned epoch : 3;         /* held, or to be held */
  byte renewal;       /* the highest number of a renewal that was sent, or seen, under this epoch */
  unsigned attempt : 4;       /* OPEN: it has a write that is not settled */
  unsigned seen_owner : 3;
  short seen_expiry;
  unsigned belief : 3;        /* ticks that are left of it, by the worker's own clock */
  unsigned by_first : 3;      /* what a belief counted from the first try of the write has left */
  unsigned by_latest : 3;     /* and from the latest try */
  bit waiting;        /* for an answer */
  unsigned reply : 3;         /* that is on its way or has arrived, or 0 */
#ifdef CALM
  bit rests;          /* it was confirmed so late that the next renewal is not due before the next tick */
#endif
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
bool S6_a_holder_is_refused_only_where_somebody_edited = true;
byte given = 0;       /* the highest epoch that a claim was given */
byte effective = 0;   /* the highest epoch of an effect that was accepted */
#ifdef CALM
bool progress_someone_believes_again = true;
bool progress_who_believes_goes_on_to = true;
bool progress_an_expiry_far_ahead_is_put_right = true;
bit calm = 0;         /* faults have stopped */
byte unowned = 0;     /* ticks since then, or since the last believer */
byte far_ahead = 0;   /* ticks for which what is believed in has had an expiry of NEVER */
#define UNOWNED_MAX (LEASE + 2 * SKEW + 1)
#define FAR_AHEAD_MAX BELIEF
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

byte i, j, k;         /* of loops; 0 between steps */
Request spare;        /* to swap; nothing in it between steps */

#if WORKERS == 2
#define BELIEVERS (believes(1) + believes(2))
#else
#define BELIEVERS (believes(1) + believes(2) + believes(3))
#endif

inline clear(n) {
  net[n].kind = NONE; net[n].from = 0; net[n].epoch = 0; net[n].renewal = 0; net[n].attempt = 0; net[n].expiry = 0;
  net[n].seen_owner = 0; net[n].seen_expiry = 0; net[n].awaited = 0
}

inline copy(source, target) {
  target.kind = source.kind; target.from = source.from; target.epoch = source.epoch; target.renewal = source.renewal;
  target.attempt = source.attempt; target.expiry = source.expiry; target.seen_owner = source.seen_owner;
  target.seen_expiry = source.seen_expiry; target.awaited = source.awaited
}

inline swap_requests(n, m) {
  copy(net[n], spare);
  copy(net[m], net[n]);
  copy(spare, net[m]);
  spare.kind = 0; spare.from = 0; spare.epoch = 0; spare.renewal = 0; spare.attempt = 0; spare.expiry = 0;
  spare.seen_owner = 0; spare.seen_expiry = 0; spare.awaited = 0
}

/* Requests stand at the front, in no order that means anything. */
inline take_out(n) {
  for (i : n .. NET - 2) { copy(net[i + 1], net[i]) }
  clear(NET - 1)
}

inline first_free() {
  i = 0;
  do
  :: net[i].kind != NONE -> i++
  :: else -> break
  od
}

/* ---- States that differ in nothing that matters are made one ---- */

/* The order of requests on their way means nothing: one order stands for all. */
#define RANK(n) ((((net[n].from * 8 + net[n].kind) * 2 + net[n].awaited) * 8 + net[n].renewal) * 16 + net[n].expiry + 2)
inline in_order_two(n) {
  if
  :: net[n + 1].kind != NONE && RANK(n) > RANK(n + 1) ->
       swap_requests(n, n + 1)
  :: else
  fi
}
inline in_order() {
  in_order_two(0)
#if NET > 2
  ; in_order_two(1); in_order_two(0)
#endif
}

/* It can never be applied any more: epochs rise, and so do the numbers under one of them. (Who has given back, or has
 * crashed, does not come back under the same epoch.) */
#define IS_PAST(n) (net[n].kind == CLAIM -> net[n].epoch <= row.epoch                                     \
                   : (net[n].epoch < row.epoch || net[n].epoch == row.epoch &&                           \
                      (net[n].kind == RENEW && (row.owner != net[n].from || net[n].renewal <= row.renewal) || \
                       net[n].kind == RELEASE && row.owner != net[n].from ||                             \
                       net[n].kind == SHORTEN && (row.owner != net[n].seen_owner || net[n].renewal < row.renewal))))

/* The worker whose numbers are the row's. */
#define NUMBERS(w) (row.owner == w && worker[w].epoch == row.epoch && worker[w].state < RELEASING)

inline nothing_without_effect() {
  for (j : 0 .. NET - 1) {
    if
    :: net[NET - 1 - j].kind != NONE && IS_PAST(NET - 1 - j) ->
         if
         :: net[NET - 1 - j].awaited ->
              /* It can only be answered: what it would have written is of no interest. */
              net[NET - 1 - j].renewal = 0; net[NET - 1 - j].expiry = 0; net[NET - 1 - j].seen_owner = 0;
              net[NET - 1 - j].seen_expiry = 0
         :: else -> take_out(NET - 1 - j)   /* as well be lost now */
         fi
    :: else
    fi
  }
  for (j : 1 .. WORKERS) {
    if
    :: worker[j].state == CLAIMING && worker[j].epoch <= row.epoch ->
         worker[j].seen_owner = 0; worker[j].seen_expiry = 0
    :: else
    fi;
    if
    :: worker[j].state == HELD ->
         /* What is counted from then lasts no longer than what is believed anyway. */
         if :: worker[j].by_first <= worker[j].belief -> worker[j].by_first = 0 :: else fi;
         if :: worker[j].by_latest <= worker[j].belief -> worker[j].by_latest = 0 :: else fi
    :: else
    fi
  }
  if
  :: row.owner == NOBODY -> row.attempt = 0   /* a release ends the same, whatever its answer is */
  :: else
  fi
}

/* Of the numbers of renewals only the order counts: the row's, the requests' and the holder's become the least that
 * have it. */
inline least_numbers() {
  k = row.renewal;
  for (i : 0 .. NET - 1) {
    if
    :: net[i].kind == RENEW && net[i].renewal > k -> k = net[i].renewal
    :: else
    fi
  }
  for (j : 1 .. WORKERS) {
    if
    :: !NUMBERS(j) -> worker[j].renewal = 0
    :: NUMBERS(j) && worker[j].renewal > k -> worker[j].renewal = k   /* the next is one more, so above all */
    :: else
    fi
  }
  /* k: the highest. Gaps are closed from above. */
  do
  :: k == 0 -> break
  :: else ->
       k--;
       j = (row.renewal == k);
       for (i : 0 .. NET - 1) { if :: net[i].kind == RENEW && !IS_PAST(i) && net[i].renewal == k -> j = 1 :: else fi }
       for (i : 1 .. WORKERS) { if :: NUMBERS(i) && worker[i].renewal == k -> j = 1 :: else fi }
       if
       :: j -> skip
       :: else ->
            if :: row.renewal > k -> row.renewal-- :: else fi;
            for (i : 0 .. NET - 1) {
              if :: net[i].renewal > k -> net[i].renewal-- :: else fi
            }
            for (i : 1 .. WORKERS) { if :: worker[i].renewal > k -> worker[i].renewal-- :: else fi }
       fi
  od
}

/* Workers are alike: of states that differ only in who is called 1 and who 2, one stands for all. */
#define STANDING(w)                                                                           \
  ((((((worker[w].state * 4 + worker[w].epoch) * 4 + worker[w].belief) * 4 + worker[w].by_first) * 4 + \
     worker[w].by_latest) * 8 + worker[w].reply) * 4 + worker[w].waiting * 2 + (row.owner == w))
#define OTHER_NAME(name, a, b) (name == a -> b : (name == b -> a : name))
#define swap_field(field, a, b) k = worker[a].field; worker[a].field = worker[b].field; worker[b].field = k

inline workers_in_order_two(a, b) {
  if
  :: STANDING(a) < STANDING(b) ->
       swap_field(state, a, b); swap_field(epoch, a, b); swap_field(renewal, a, b); swap_field(attempt, a, b);
       swap_field(seen_owner, a, b); swap_field(belief, a, b); swap_field(by_first, a, b);
       swap_field(by_latest, a, b); swap_field(waiting, a, b); swap_field(reply, a, b);
#ifdef CALM
       swap_field(rests, a, b);
#endif
       spare.seen_expiry = worker[a].seen_expiry; worker[a].seen_expiry = worker[b].seen_expiry;
       worker[b].seen_expiry = spare.seen_expiry; spare.seen_expiry = 0;
       for (i : 1 .. WORKERS) { worker[i].seen_owner = OTHER_NAME(worker[i].seen_owner, a, b) }
       for (i : 0 .. NET - 1) {
         net[i].from = OTHER_NAME(net[i].from, a, b); net[i].seen_owner = OTHER_NAME(net[i].seen_owner, a, b)
       }
       row.owner = OTHER_NAME(row.owner, a, b); row.attempt = OTHER_NAME(row.attempt, a, b)
  :: else
  fi
}
inline workers_in_order() {
  workers_in_order_two(1, 2)
#if WORKERS > 2
  ; workers_in_order_two(2, 3); workers_in_order_two(1, 2)
#endif
}

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
#ifndef NOTHING_IS_WITHOUT_EFFECT
  nothing_without_effect();
  least_numbers();
  workers_in_order();
#endif
  in_order();
  i = 0; j = 0; k = 0
}

inline waits_no_longer(w) {
  worker[w].waiting = 0; worker[w].reply = 0; worker[w].by_latest = 0;
  for (i : 0 .. NET - 1) {
    if
    :: net[i].from == w -> net[i].awaited = 0
    :: else
    fi
  }
}

/* The next write is another one, and has another attempt. Implemented by: Keeper::begin_write. */
inline settled(w) {
  worker[w].attempt = 0; worker[w].by_first = 0;
  for (i : 0 .. NET - 1) {
    if
    :: net[i].from == w -> net[i].attempt = 0
    :: else
    fi
  }
  if
  :: row.attempt == w || row.attempt == w + EARLIER -> row.attempt = 0
  :: else
  fi
}

inline forget(w) {
  settled(w);
  waits_no_longer(w);
  worker[w].state = FREE; worker[w].epoch = 0; worker[w].renewal = 0; worker[w].seen_owner = 0;
  worker[w].seen_expiry = 0; worker[w].belief = 0
#ifdef CALM
  ; worker[w].rests = 0
#endif
}

/* What comes after it has another name, as its id has its incarnation in it. What it sent is still on its way. */
inline vanish(w) {
  forget(w);
  if
  :: row.owner == w -> row.owner = GHOST
  :: else
  fi;
  for (i : 0 .. NET - 1) {
    if
    :: net[i].from == w -> net[i].from = GHOST
    :: else
    fi;
    if
    :: (net[i].kind == CLAIM || net[i].kind == SHORTEN) && net[i].seen_owner == w -> net[i].seen_owner = GHOST
    :: else
    fi
  }
  for (i : 1 .. WORKERS) {
    if
    :: worker[i].state == CLAIMING && worker[i].seen_owner == w -> worker[i].seen_owner = GHOST
    :: else
    fi
  }
}

#ifdef CLAIMS_AGAIN_WHAT_IT_GAVE_BACK_UNSEEN
inline over(w) { forget(w) }
#else
inline over(w) {
  if
  :: worker[w].state == DRAINING -> vanish(w)
  :: else -> forget(w)
  fi
}
#endif

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

#ifdef CALM
#define DUE(w) (!worker[w].rests || !calm)
#else
#ifdef RENEWALS       /* so many tries under one epoch and no more: it is finite then, though numbers are as they are */
#define DUE(w) (worker[w].renewal < RENEWALS)
#else
#define DUE(w) true
#endif
#endif

/* A try of the write that its state asks for, stamped before it leaves; `offset` is what its wall clock shows beyond
 * true time. Implemented by: Keeper::make_write, Keeper::take_write, claimable_from. */
#define MAY_SEND(w, offset)                                                                   \
  (net[NET - 1].kind == NONE && !worker[w].waiting &&                                         \
   ((worker[w].state == CLAIMING && CLAIMABLE_AT(worker[w].seen_owner, worker[w].seen_expiry, offset)) || \
    (worker[w].state == HELD && worker[w].belief > 0 && DUE(w)) || worker[w].state >= RELEASING))

inline send(w, offset) {
  if
  :: worker[w].state == FREE -> look(w)
  :: else
  fi;
  if
  :: worker[w].attempt == 0 ->
       worker[w].attempt = OPEN;
       if :: worker[w].state < RELEASING -> worker[w].by_first = BELIEF :: else fi;
       if :: worker[w].state == HELD -> worker[w].renewal++ :: else fi
  :: else ->
#ifndef ONE_NUMBER_FOR_ALL_TRIES
       if :: worker[w].state == HELD -> worker[w].renewal++ :: else fi
#endif
  fi;
  first_free();
  net[i].from = w;
  net[i].epoch = worker[w].epoch;
  net[i].attempt = OPEN;
  net[i].awaited = 1;
  worker[w].waiting = 1;
  if
  :: worker[w].state >= RELEASING -> net[i].kind = RELEASE
  :: else ->
       worker[w].by_latest = BELIEF;
       net[i].expiry = LEASE + (offset);
       if
       :: worker[w].state == HELD -> net[i].kind = RENEW; net[i].renewal = worker[w].renewal
       :: else ->
            net[i].kind = CLAIM;
            net[i].seen_owner = worker[w].seen_owner;
            net[i].seen_expiry = worker[w].seen_expiry
       fi
  fi;
  check()
}

#ifdef CALM
/* The next renewal is due an interval after the instant that the belief is counted from.
 * Implemented by: Keeper::next_phase. */
inline rest(w, counted) { worker[w].rests = (counted == BELIEF) }
#else
inline rest(w, counted) { skip }
#endif

/* The belief may begin, or go on. `counted` is what a belief counted from before has left. */
inline won(w, counted) {
  /* Implemented by: Keeper::won. A grant that came too late is given back (F8). */
#ifdef BELIEF_FROM_THE_REPLY
  worker[w].belief = BELIEF;
#else
  worker[w].belief = counted;
#endif
  rest(w, counted);
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
#ifdef DUE_AFTER_THE_LATEST_TRY
  rest(w, worker[w].by_latest);
#else
  rest(w, counted);
#endif
  settled(w)
}

#ifdef SETTLED_BY_THE_LATEST_TRY
#define CLAIM_SETTLED by_latest
#else
#define CLAIM_SETTLED by_first
#endif
#ifdef RENEWAL_SETTLED_BY_THE_LATEST_TRY
#define RENEWAL_SETTLED by_latest
#else
#define RENEWAL_SETTLED by_first
#endif

/* The row has a higher number, since somebody edited it; the next try goes on from there. (What was edited once more
 * since that answer is as if it had been edited after it.) */
inline adopt(w) {
#ifdef REFUSED_BY_ITS_NUMBER_IS_ALL
  rest(w, BELIEF);
  settled(w)
#else
  if
  :: row.owner == w && row.epoch == worker[w].epoch && row.renewal > worker[w].renewal ->
       worker[w].renewal = row.renewal
  :: else
  fi
#endif
}

/* An answer arrives. Implemented by: Keeper::on_write, Keeper::settle. */
inline receive(w) {
  if
  :: worker[w].state == CLAIMING ->
       /* Implemented by: Keeper::claim_answered. */
       if
       :: worker[w].reply == APPLIED -> won(w, worker[w].by_latest)
       :: worker[w].reply == OWN_ATTEMPT -> won(w, worker[w].CLAIM_SETTLED)
       :: else -> forget(w)
       fi
  :: worker[w].state == HELD && worker[w].belief > 0 ->
       /* Implemented by: Keeper::renewal_answered. */
       if
       :: worker[w].reply == APPLIED -> renewed(w, worker[w].by_latest)
       :: worker[w].reply == OWN_ATTEMPT -> renewed(w, worker[w].RENEWAL_SETTLED)
       :: worker[w].reply == STILL_OURS -> adopt(w)
       :: else ->
            S6_only_a_conflict_proves_loss = (row.owner != w || row.epoch != worker[w].epoch);
            assert(S6_only_a_conflict_proves_loss);
            forget(w)
       fi
  :: else ->
       /* A release: applied, its own earlier try, or no longer its own (F4). A belief that has ended stays so (S7).
        * Implemented by: Keeper::release_answered. */
       over(w)
  fi;
  waits_no_longer(w);       /* a second answer, to a duplicate, is ignored */
  check()
}

/* No answer came in time, whatever became of the request and its reply: a lost request, a lost reply, a slow one,
 * throttling. Implemented by: Keeper::settle, Keeper::retry. */
inline give_up_waiting(w) {
  waits_no_longer(w);
#ifdef A_NEW_ATTEMPT_PER_TRY
  worker[w].attempt = 0; worker[w].by_first = 0;
  for (i : 0 .. NET - 1) { if :: net[i].from == w && net[i].attempt == OPEN -> net[i].attempt = EARLIER :: else fi }
  if :: row.attempt == w -> row.attempt = w + EARLIER :: else fi;
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

/* Desired state changed, or the worker is to end, and the resource has ended. (The program lets a renewal that is on
 * its way be answered first, F5; here the two may race.) Or the worker is to end while the fate of a claim is unknown: it
 * may be applied, so it is given back. A copy of that release can arrive later than the same worker's next claim, which
 * could well be under the same epoch; so there must be no next one.
 * Implemented by: Keeper::stopped, Keeper::give_back, Keeper::drain, Keeper::stop. */
#define MAY_GIVE_BACK(w)                                                                      \
  (worker[w].state == HELD && worker[w].belief > 0 ||                                         \
   worker[w].state == CLAIMING && worker[w].attempt == OPEN && !worker[w].waiting)

inline give_back(w) {
  j = worker[w].epoch;
  k = (worker[w].state == HELD -> RELEASING : DRAINING);
  forget(w);
  worker[w].state = k;
  worker[w].epoch = j;
  check()
}

/* Its belief has ended. (The program claims nothing on that row until the write that is on its way has been settled; here
 * it may.) Or a claim, or a release, is not worth another try. Implemented by: Keeper::fire, Keeper::lose, Keeper::end. */
#define BELIEF_IS_OVER(w) (worker[w].state == HELD && worker[w].belief == 0)
#define MAY_ABANDON(w) ((worker[w].state == CLAIMING || worker[w].state >= RELEASING) && !worker[w].waiting)

inline leave_off(w) { over(w); check() }

/* It is killed. Implemented by: nothing. */
inline crash(w) { vanish(w); check() }

/* ---- What people do ---- */

/* `holdfast conn release`: a lease that ends later than one that began now would is made to end when that one does.
 * `offset` is what the wall clock there shows beyond true time. Implemented by: run_release, release_one, release. */
#define MAY_SHORTEN(offset) (net[NET - 1].kind == NONE && row.owner != NOBODY && row.expiry > LEASE + (offset))

inline shorten(offset) {
  first_free();
  net[i].kind = SHORTEN;
  net[i].epoch = row.epoch;
  net[i].renewal = row.renewal;
  net[i].seen_owner = row.owner;
  net[i].seen_expiry = row.expiry;
#ifdef SHORTENED_TO_LESS_THAN_A_LEASE
  net[i].expiry = LEASE - 1 + (offset);
#else
  net[i].expiry = LEASE + (offset);
#endif
  check()
}

/* Somebody edits the row of a lease, by hand or with a program of his own: its expiry is far ahead, its number is
 * higher. (To any higher number: more than one higher is the same done more than once.) Implemented by: nothing. */
inline edit_expiry() { row.expiry = NEVER; check() }
inline edit_number() {
#ifdef THE_NUMBER_IS_REMOVED
  row.renewal = 0;
#else
  row.renewal++;
#endif
  check()
}

/* ---- What the table does ---- */

inline accept_effect(epoch_) {
  S2_no_effect_below_an_accepted_epoch = (epoch_ >= effective && epoch_ >= given);
  assert(S2_no_effect_below_an_accepted_epoch);
  effective = epoch_
}

/* `j`: it was applied. Implemented by: Keeper::own_attempt, Keeper::still_ours (of the row that a conflict carries). */
inline answer(n) {
  if
  :: net[n].awaited && worker[net[n].from].reply == 0 ->
       i = net[n].from;
       if
       :: j -> worker[i].reply = APPLIED
       :: !j && row.attempt == i && row.epoch == net[n].epoch &&
            row.owner == (net[n].kind == RELEASE -> NOBODY : i) -> worker[i].reply = OWN_ATTEMPT
       :: else ->
            if
            :: net[n].kind != CLAIM && row.owner == i && row.epoch == net[n].epoch ->
                 worker[i].reply = STILL_OURS;
#ifndef EDITS
                 S6_a_holder_is_refused_only_where_somebody_edited = false;
                 assert(S6_a_holder_is_refused_only_where_somebody_edited)
#endif
            :: else ->
                 worker[i].reply = CONFLICT;
                 /* The claimer will take it for somebody else's: then no earlier try of this claim has made it. */
                 S5_a_lost_success_is_recognised =
                   !(net[n].kind == CLAIM && row.owner == i && row.epoch == net[n].epoch && row.attempt == i + EARLIER);
                 assert(S5_a_lost_success_is_recognised)
            fi
       fi
  :: else
  fi
}

/* An expiry up to this has passed by the clock that stamped the claim: the wall clock then - WAIT. */
#define FREE_BEFORE(n) (net[n].expiry - LEASE - WAIT > PAST -> net[n].expiry - LEASE - WAIT : PAST)

#ifdef CLAIM_WITHOUT_WHAT_WAS_SEEN
#define AS_SEEN(n) true
#else
#define AS_SEEN(n) (row.epoch == net[n].epoch - 1 && row.owner == net[n].seen_owner && row.expiry == net[n].seen_expiry)
#endif
#ifdef A_CLAIM_APPLIED_ONCE_MAY_BE_AGAIN
#define SAME_CLAIM(n) (row.owner == net[n].from && row.epoch == net[n].epoch)
#else
#define SAME_CLAIM(n) false
#endif

/* Implemented by: render_claim, as_seen. */
inline serve_claim(n) {
  j = (AS_SEEN(n) && (row.owner == NOBODY || row.expiry <= FREE_BEFORE(n)) || SAME_CLAIM(n));
  if
  :: j ->
       S3_every_epoch_is_given_once_and_rising = (net[n].epoch > given || SAME_CLAIM(n));
       assert(S3_every_epoch_is_given_once_and_rising);
       given = net[n].epoch;
       row.owner = net[n].from; row.epoch = net[n].epoch; row.expiry = net[n].expiry;
#ifndef A_CLAIM_LEAVES_THE_NUMBER
       row.renewal = 0;
#endif
       row.attempt = (net[n].attempt == 0 -> 0 : net[n].from + (net[n].attempt == OPEN -> 0 : EARLIER))
  :: else
  fi
}

#ifdef RENEWAL_WITHOUT_EPOCH
#define HELD_BY(n) (row.owner == net[n].from)
#else
#define HELD_BY(n) (row.owner == net[n].from && row.epoch == net[n].epoch)
#endif
#ifdef RENEWAL_WITHOUT_NUMBER
#define IS_NEWER(n) true
#else
#ifdef EQUAL_NUMBERS_PASS
#define IS_NEWER(n) (row.renewal <= net[n].renewal)
#else
#define IS_NEWER(n) (row.renewal < net[n].renewal)
#endif
#endif

/* It carries a checkpoint (last_seq), which is the effect that S2 is about. Implemented by: render_renewal, fence. */
inline serve_renewal(n) {
  j = (HELD_BY(n) && IS_NEWER(n));
  if
  :: j ->
       accept_effect(net[n].epoch);
#ifdef RENEWAL_NEVER_LOWERS
       row.expiry = (row.expiry > net[n].expiry -> row.expiry : net[n].expiry);
#else
       row.expiry = net[n].expiry;
#endif
       row.renewal = net[n].renewal;
       row.attempt = (net[n].attempt == OPEN -> net[n].from : 0)
  :: else ->
#ifdef NO_FENCE
       accept_effect(net[n].epoch)
#else
       skip
#endif
  fi
}

/* It carries a checkpoint, too. Implemented by: render_release, fence. */
inline serve_release(n) {
#ifdef RELEASE_WITHOUT_CONDITION
  j = (row.owner != NOBODY);
#else
  j = (row.owner == net[n].from && row.epoch == net[n].epoch);
#endif
  if
  :: j ->
#ifndef RELEASE_WITHOUT_CONDITION
       accept_effect(net[n].epoch);
#endif
       row.owner = NOBODY; row.expiry = 0;
       row.attempt = (net[n].attempt == OPEN -> net[n].from : 0)
#ifdef RELEASE_RESETS_THE_EPOCH
       ; row.epoch = 0
#endif
  :: else
  fi
}

#ifdef SHORTENED_WHATEVER_IS_THERE
#define STILL_AS_SEEN(n) (row.owner == net[n].seen_owner)
#else
#ifdef SHORTENED_WITHOUT_THE_NUMBER
#define STILL_AS_SEEN(n) (row.owner == net[n].seen_owner && row.expiry == net[n].seen_expiry)
#else
#define STILL_AS_SEEN(n) (row.owner == net[n].seen_owner && row.expiry == net[n].seen_expiry && \
                          row.epoch == net[n].epoch && row.renewal == net[n].renewal)
#endif
#endif

/* Owner, epoch and number stay: a holder that lives goes on, with its next renewal. Implemented by: release. */
inline serve_shorten(n) {
  if
  :: STILL_AS_SEEN(n) ->
#ifdef SHORTENED_TO_NOTHING
       row.owner = NOBODY; row.expiry = 0; row.attempt = 0
#else
       row.expiry = net[n].expiry
#endif
  :: else
  fi
}

/* A request arrives. It stays on its way, as a duplicate that may arrive at any later time, until it is lost. */
inline serve(n) {
  if
  :: net[n].kind == CLAIM -> serve_claim(n)
  :: net[n].kind == RENEW -> serve_renewal(n)
  :: net[n].kind == RELEASE -> serve_release(n)
  :: else -> serve_shorten(n)
  fi;
  answer(n);
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
  :: time > PAST && time != NEVER -> time = time - 1
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
#ifdef CALM
  for (i : 1 .. WORKERS) {
    progress_who_believes_goes_on_to = (!calm || !believes(i) || worker[i].belief > 1);
    assert(progress_who_believes_goes_on_to);
    worker[i].rests = 0
  }
#endif
  if
  :: row.owner != NOBODY -> later(row.expiry)
  :: else
  fi;
  for (i : 0 .. NET - 1) {
    if
    :: net[i].kind != NONE && net[i].kind != RELEASE ->
         later(net[i].expiry);
         if
         :: net[i].seen_owner != NOBODY -> later(net[i].seen_expiry)
         :: else
         fi
    :: else
    fi
  }
  for (i : 1 .. WORKERS) {
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
  if
  :: calm && BELIEVERS > 0 && row.expiry == NEVER -> far_ahead++
  :: else -> far_ahead = 0
  fi;
  progress_an_expiry_far_ahead_is_put_right = (far_ahead <= FAR_AHEAD_MAX);
  assert(progress_an_expiry_far_ahead_is_put_right);
#endif
  check()
}

/* ---- Who may do what, when ---- */

#ifdef CALM
/* Faults have stopped: whatever can be done is done before the next tick. */
#define RESTS(w)                                                                              \
  (worker[w].state == FREE && !MAY_CLAIM(w, 0) ||                                             \
   worker[w].state == HELD && !worker[w].waiting && worker[w].belief > 0 &&                   \
     (worker[w].belief > 1 && worker[w].attempt == 0 || !DUE(w)) ||                           \
   worker[w].state == CLAIMING && !worker[w].waiting && !MAY_SEND(w, 0))
#if WORKERS == 2
#define ALL_REST (RESTS(1) && RESTS(2))
#else
#define ALL_REST (RESTS(1) && RESTS(2) && RESTS(3))
#endif
#ifdef EDITS
#define OPERATOR_RESTS (BELIEVERS > 0 || row.owner == NOBODY || row.expiry != NEVER)
#else
#define OPERATOR_RESTS true
#endif
#define MAY_TICK (!calm || net[0].kind == NONE && ALL_REST && OPERATOR_RESTS)
#define UNANSWERABLE(w) (worker[w].waiting && worker[w].reply == 0 && net[0].kind == NONE)
#else
#define MAY_TICK true
#define UNANSWERABLE(w) false
#endif

proctype A_worker(byte w) {
end:
  do
  :: d_step { MAY_CLAIM(w, SLOWEST) || MAY_SEND(w, SLOWEST) ->
       printf("worker %d sends a try of what it wants, its clock at now + %d\n", w, SLOWEST); send(w, SLOWEST) }
  :: d_step { MAY_CLAIM(w, FAST) || MAY_SEND(w, FAST) ->
       printf("worker %d sends a try of what it wants, its clock at now + %d\n", w, FAST); send(w, FAST) }
  :: d_step { worker[w].reply != 0 ->
       printf("worker %d gets answer %d (1 applied, 2 own attempt, 3 still ours, 4 conflict)\n", w, worker[w].reply);
       receive(w) }
  :: d_step { worker[w].reply != 0 && FAULTS ->   /* it may still hear of the same try by the reply to a duplicate */
       printf("worker %d is not reached by its answer\n", w); worker[w].reply = 0 }
  :: d_step { worker[w].waiting && (FAULTS || UNANSWERABLE(w)) ->
       printf("worker %d waits no longer for an answer\n", w); give_up_waiting(w) }
  :: d_step { MAY_GIVE_BACK(w) && FAULTS -> printf("worker %d gives the lease back\n", w); give_back(w) }
  :: d_step { BELIEF_IS_OVER(w) || MAY_ABANDON(w) && FAULTS ->
       printf("worker %d notices that its belief has ended, or tries no longer\n", w); leave_off(w) }
#ifdef CRASHES
  :: d_step { worker[w].state != FREE && FAULTS ->
       printf("worker %d crashes and comes back as another\n", w); crash(w) }
#endif
  od
}

#define REQUEST "request %d (1 claim, 2 renew, 3 release, 4 conn release) of worker %d under epoch %d, number %d\n"

/* A request waits as long as it likes, overtakes others, arrives at the table again and again (see serve), and is lost. */
proctype A_request(byte n) {
end:
  do
  :: d_step { net[n].kind != NONE ->
       printf("the table is reached by "); printf(REQUEST, net[n].kind, net[n].from, net[n].epoch, net[n].renewal);
       serve(n) }
  :: d_step { net[n].kind != NONE && FAULTS ->
       printf("the network loses "); printf(REQUEST, net[n].kind, net[n].from, net[n].epoch, net[n].renewal);
       take_out(n); check() }
  od
}

#ifdef EDITS
proctype The_people() {
end:
  do
  :: d_step { MAY_SHORTEN(SLOWEST) ->
       printf("people: conn release, the clock at now + %d\n", SLOWEST); shorten(SLOWEST) }
  :: d_step { MAY_SHORTEN(FAST) ->
       printf("people: conn release, the clock at now + %d\n", FAST); shorten(FAST) }
  :: d_step { FAULTS && row.owner != NOBODY && row.expiry != NEVER ->
       printf("people: the row's expiry is edited to be far ahead\n"); edit_expiry() }
  :: d_step { FAULTS && row.owner != NOBODY -> printf("people: the row's number is edited\n"); edit_number() }
  od
}
#endif

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
    run A_request(0);
    run A_request(1);
#if NET > 2
    run A_request(2);
#endif
#ifdef EDITS
    run The_people();
#endif
    run The_clock()
  }
}
