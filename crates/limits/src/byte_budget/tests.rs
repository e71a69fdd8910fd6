use futures::FutureExt;

use super::{state::REVOKE_AFTER, *};

const KIB: u64 = 1024;
const MIB: u64 = 1 << 20;

async fn grow(share: &mut Share, bytes: u64) -> Result<(), ByteBudgetError> {
    share.reserve(bytes).await?;
    share.try_grow(bytes)
}

/// Returns a share of work that can be revoked, and the token that ends it.
fn revocable(memory: &ByteBudget, tenant: &str) -> (Share, CancellationToken) {
    let token = CancellationToken::new();
    (memory.tenant(tenant).revoked_by(&token).share(), token)
}

#[tokio::test(start_paused = true)]
async fn tenant_leaves_a_part_to_the_others() {
    let memory = ByteBudget::new(100 * KIB);
    let mut share = memory.tenant("a").share();
    let limit = 75 * KIB;
    assert_eq!(
        grow(&mut share, limit + 1).await,
        Err(ByteBudgetError::TooMuch { limit })
    );
    grow(&mut share, limit).await.unwrap();
    let (mut second, mut other) = (memory.tenant("a").share(), memory.tenant("b").share());
    assert_eq!(grow(&mut second, 1).await, Err(ByteBudgetError::Busy(WAIT)));
    grow(&mut other, 18 * KIB).await.unwrap();
    assert_eq!((memory.in_use(), share.bytes()), (93 * KIB, limit));
    drop(share);
    assert_eq!(memory.in_use(), 18 * KIB);
    grow(&mut second, 1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn shares_of_the_same_work_have_one_limit() {
    let memory = ByteBudget::new(100 * KIB);
    let tenant = memory.tenant("a").revoked_by(&CancellationToken::new());
    let mut share = tenant.share();
    grow(&mut share, 50 * KIB).await.unwrap();
    let mut more = share.beside();
    grow(&mut more, 20 * KIB).await.unwrap();
    let limit = 75 * KIB;
    assert_eq!(
        grow(&mut more, 6 * KIB).await,
        Err(ByteBudgetError::TooMuch { limit })
    );
    share.merge(&mut more).unwrap();
    assert_eq!(
        (share.bytes(), more.bytes(), memory.in_use()),
        (70 * KIB, 0, 70 * KIB)
    );
    drop(more);
    assert_eq!(memory.in_use(), 70 * KIB);
    let mut empty = tenant.share();
    empty.merge(&mut share).unwrap();
    drop(share);
    assert_eq!(
        (memory.in_use(), memory.inner.state.lock().holders()),
        (70 * KIB, (1, 1, 1))
    );
    drop(empty);
    assert_eq!(
        (memory.in_use(), memory.inner.state.lock().holders()),
        (0, (0, 0, 0))
    );
}

#[tokio::test(start_paused = true)]
async fn small_pieces_are_counted_together() {
    let memory = ByteBudget::new(100 * KIB);
    let mut share = memory.tenant("a").share();
    for _ in 0..KIB {
        grow(&mut share, 10).await.unwrap();
    }
    assert_eq!((share.bytes(), memory.in_use()), (10 * KIB, 10 * KIB));
    let _ = memory.tenant("b").share();
    assert_eq!(memory.inner.state.lock().holders(), (1, 1, 0));
    drop(share);
    assert_eq!(memory.inner.state.lock().holders(), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn reserved_bytes_are_used_first_and_others_are_not_waited_for() {
    let memory = ByteBudget::new(100 * KIB);
    let (mut share, mut other) = (memory.tenant("a").share(), memory.tenant("b").share());
    share.reserve(50 * KIB).await.unwrap();
    assert_eq!((share.bytes(), memory.in_use()), (0, 50 * KIB));
    other.try_grow(20 * KIB).unwrap();
    share.try_grow(60 * KIB).unwrap();
    assert_eq!((share.bytes(), memory.in_use()), (60 * KIB, 80 * KIB));
    assert_eq!(other.try_grow(20 * KIB), Err(ByteBudgetError::InUse));
    let limit = 75 * KIB;
    assert_eq!(share.try_grow(16 * KIB), Err(ByteBudgetError::TooMuch { limit }));
    drop(share);
    other.try_grow(55 * KIB).unwrap();
    assert_eq!(memory.in_use(), 75 * KIB);
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_given_back_go_to_others() {
    let memory = ByteBudget::new(100 * KIB);
    let (mut share, mut other) = (memory.tenant("a").share(), memory.tenant("b").share());
    share.reserve(70 * KIB).await.unwrap();
    share.try_grow(50 * KIB + 1).unwrap();
    assert_eq!(other.try_grow(40 * KIB), Err(ByteBudgetError::InUse));
    share.shrink(20 * KIB);
    assert_eq!(
        (share.bytes(), share.reserved(), memory.in_use()),
        (30 * KIB + 1, 31 * KIB, 31 * KIB)
    );
    other.try_grow(40 * KIB).unwrap();
    drop(other);
    let mut second = memory.tenant("a").share();
    second.try_grow(44 * KIB).unwrap();
    share.shrink(100 * KIB);
    assert_eq!((share.bytes(), memory.in_use()), (0, 44 * KIB));
    share.try_grow(31 * KIB).unwrap();
}

#[tokio::test(start_paused = true)]
async fn tenants_that_take_all_they_get_leave_a_part_to_the_next_one() {
    let memory = ByteBudget::new(MIB);
    let mut shares = Vec::new();
    for number in 0..4 {
        let mut share = memory.tenant(&number.to_string()).share();
        while share.try_grow(KIB).is_ok() {}
        let mut second = share.tenant.share();
        assert_eq!(second.reserve(KIB).await, Err(ByteBudgetError::Busy(WAIT)));
        shares.push(share);
    }
    let sizes: Vec<u64> = shares.iter().map(|share| share.bytes() / KIB).collect();
    assert_eq!(sizes, [768, 192, 48, 12]);
    shares.remove(0);
    let mut late = memory.tenant("late").share();
    late.try_grow(500 * KIB).unwrap();
}

#[tokio::test(start_paused = true)]
async fn waits_end_with_the_bytes_of_others() {
    let memory = ByteBudget::new(100 * KIB);
    let (mut first, mut second) = (memory.tenant("a").share(), memory.tenant("a").share());
    first.try_grow(75 * KIB).unwrap();
    let mut other = memory.tenant("b").share();
    let mut waiting = Box::pin(other.reserve(50 * KIB));
    assert!((&mut waiting).now_or_never().is_none());
    first.shrink(30 * KIB);
    assert!(
        (&mut waiting).now_or_never().is_none(),
        "55 are left, and three quarters of them are a part"
    );
    first.shrink(20 * KIB);
    assert_eq!((&mut waiting).now_or_never(), Some(Ok(())));
    drop(waiting);
    assert_eq!(second.try_grow(25 * KIB), Err(ByteBudgetError::InUse));
    let mut waiting = Box::pin(second.reserve(25 * KIB));
    assert!((&mut waiting).now_or_never().is_none());
    drop(other);
    assert_eq!((&mut waiting).now_or_never(), Some(Ok(())));
}

#[tokio::test(start_paused = true)]
async fn cancelled_reservation_leaves_all_bytes_to_others() {
    let memory = ByteBudget::new(100 * KIB);
    let (mut first, mut share) = (memory.tenant("a").share(), memory.tenant("b").share());
    first.try_grow(75 * KIB).unwrap();
    assert!(Box::pin(share.reserve(50 * KIB)).now_or_never().is_none());
    assert_eq!((share.reserved(), memory.in_use()), (0, 75 * KIB));
    drop(first);
    share.try_grow(75 * KIB).unwrap();
}

#[tokio::test(start_paused = true)]
async fn nothing_is_granted_at_once_and_too_much_never() {
    let memory = ByteBudget::new(100 * KIB);
    let (mut first, mut share) = (memory.tenant("a").share(), memory.tenant("b").share());
    first.try_grow(75 * KIB).unwrap();
    let mut rest = memory.tenant("c").share();
    while rest.try_grow(KIB).is_ok() {}
    share.reserve(0).await.unwrap();
    share.try_grow(0).unwrap();
    let too_much = Err(ByteBudgetError::TooMuch { limit: 75 * KIB });
    assert_eq!(share.reserve(u64::MAX).await, too_much);
    assert_eq!(share.try_grow(u64::MAX), too_much);
    assert_eq!((share.bytes(), share.reserved()), (0, 0));
    let mut none = ByteBudget::new(0).tenant("a").share();
    none.try_grow(0).unwrap();
    assert_eq!(none.try_grow(1), Err(ByteBudgetError::TooMuch { limit: 0 }));
    let mut all = ByteBudget::new(u64::MAX).tenant("a").share();
    all.try_grow(u64::MAX / 2).unwrap();
}

#[test]
fn one_tenant_may_hold_all_bytes_of_an_undivided_budget() {
    let memory = ByteBudget::undivided(4 * KIB);
    let (mut share, mut other) = (memory.tenant("a").share(), memory.tenant("b").share());
    share.try_grow(4 * KIB).unwrap();
    let limit = 4 * KIB;
    assert_eq!(share.try_grow(1), Err(ByteBudgetError::TooMuch { limit }));
    assert_eq!(other.try_grow(1), Err(ByteBudgetError::InUse));
    drop(share);
    other.try_grow(1).unwrap();
    assert_eq!(memory.in_use(), KIB, "bytes are held in units");
}

#[tokio::test(start_paused = true)]
async fn newest_large_share_of_the_greediest_is_revoked_when_it_is_old_enough() {
    let memory = ByteBudget::new(100 * KIB);
    let mut held = Vec::new();
    for (tenant, kib) in [("greedy", 20), ("greedy", 30), ("greedy", 5), ("modest", 20)] {
        let (mut share, token) = revocable(&memory, tenant);
        share.try_grow(kib * KIB).unwrap();
        held.push((share, token));
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    let revoked = |held: &[(Share, CancellationToken)]| -> Vec<bool> {
        held.iter().map(|(_, token)| token.is_cancelled()).collect()
    };
    let mut late = memory.tenant("late").share();
    assert_eq!(late.try_grow(24 * KIB), Err(ByteBudgetError::InUse));
    assert_eq!(revoked(&held), [false; 4], "they are too new");
    tokio::time::advance(REVOKE_AFTER).await;
    assert_eq!(late.try_grow(24 * KIB), Err(ByteBudgetError::InUse));
    assert_eq!(revoked(&held), [false, true, false, false]);
    assert_eq!(late.try_grow(24 * KIB), Err(ByteBudgetError::InUse));
    assert_eq!(
        revoked(&held),
        [false, true, false, false],
        "its bytes are enough"
    );
    assert_eq!(held[1].0.try_grow(1), Err(ByteBudgetError::Revoked));
    assert_eq!(held[1].0.reserve(KIB).await, Err(ByteBudgetError::Revoked));
    drop(held.remove(1));
    let mut again = memory.tenant("greedy").share();
    assert_eq!(
        again.try_grow(20 * KIB),
        Err(ByteBudgetError::InUse),
        "the bytes are reserved"
    );
    late.try_grow(24 * KIB).unwrap();
    again.try_grow(KIB).unwrap();
}

#[tokio::test(start_paused = true)]
async fn tenants_with_as_much_lose_nothing_beyond_the_floor() {
    let memory = ByteBudget::new(100 * KIB);
    let (mut one, revoked_one) = revocable(&memory, "one");
    one.try_grow(60 * KIB).unwrap();
    let (mut two, revoked_two) = revocable(&memory, "two");
    two.try_grow(30 * KIB).unwrap();
    tokio::time::advance(REVOKE_AFTER).await;
    assert_eq!(
        two.try_grow(30 * KIB),
        Err(ByteBudgetError::InUse),
        "it would have as much"
    );
    assert_eq!(one.try_grow(10 * KIB), Err(ByteBudgetError::InUse), "it has more");
    let mut third = memory.tenant("third").share();
    assert_eq!(third.try_grow(60 * KIB), Err(ByteBudgetError::InUse));
    assert!(!revoked_one.is_cancelled() && !revoked_two.is_cancelled());
    assert_eq!(third.try_grow(59 * KIB), Err(ByteBudgetError::InUse));
    assert!(revoked_one.is_cancelled() && !revoked_two.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn shares_without_a_token_are_passed_over() {
    let memory = ByteBudget::new(100 * KIB);
    let mut fixed = memory.tenant("fixed").share();
    fixed.try_grow(70 * KIB).unwrap();
    let (mut other, token) = revocable(&memory, "other");
    other.try_grow(20 * KIB).unwrap();
    tokio::time::advance(REVOKE_AFTER).await;
    let mut late = memory.tenant("late").share();
    let mut waiting = Box::pin(late.reserve(12 * KIB));
    assert!((&mut waiting).now_or_never().is_none() && token.is_cancelled());
    drop(other);
    assert_eq!(waiting.now_or_never(), Some(Ok(())));
}

/// Takes all that `count` tenants get, and takes it again whenever it is revoked, until it is dropped.
fn greedy(memory: &ByteBudget, count: usize, pieces: u64) -> tokio::task::JoinSet<()> {
    let mut tenants = tokio::task::JoinSet::new();
    for number in 0..count {
        let memory = memory.clone();
        tenants.spawn(async move {
            let name = format!("greedy-{number}");
            loop {
                let mut shares = Vec::new();
                loop {
                    let (mut share, token) = revocable(&memory, &name);
                    while share.bytes() < pieces && share.try_grow(4 * KIB).is_ok() {}
                    let is_full = share.bytes() < pieces;
                    shares.push((share, token));
                    if is_full {
                        break;
                    }
                }
                let revoked = shares.iter().map(|(_, token)| Box::pin(token.cancelled()));
                futures::future::select_all(revoked).await;
                // The work needs a second to stop.
                tokio::time::sleep(Duration::from_secs(1)).await;
                shares.retain(|(_, token)| !token.is_cancelled());
            }
        });
    }
    tenants
}

#[tokio::test(start_paused = true)]
async fn newcomer_gets_its_floor_however_many_tenants_have_taken_all_they_get() {
    for pieces in [MIB / 16, MIB / 4, 4 * MIB] {
        for count in 1..=50 {
            let memory = ByteBudget::new(4 * MIB);
            let tenants = greedy(&memory, count, pieces);
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(memory.in_use() >= 2 * MIB, "{count}: {}", memory.in_use());
            let mut late = memory.tenant("late").share();
            let start = Instant::now();
            let served = late.reserve(MIB / 2).await;
            assert_eq!(served, Ok(()), "{count} tenants, pieces of {pieces}");
            assert!(
                start.elapsed() <= 2 * REVOKE_AFTER,
                "{count}: {:?}",
                start.elapsed()
            );
            drop(tenants);
        }
    }
}
