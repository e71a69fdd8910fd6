use futures::FutureExt;

use super::*;

const KIB: u64 = 1024;

async fn grow(share: &mut Share, bytes: u64) -> Result<(), ByteBudgetError> {
    share.reserve(bytes).await?;
    share.try_grow(bytes)
}

#[tokio::test(start_paused = true)]
async fn a_tenant_leaves_a_part_to_the_others() {
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
    grow(&mut other, 25 * KIB).await.unwrap();
    assert_eq!((memory.in_use(), share.bytes()), (100 * KIB, limit));
    drop(share);
    assert_eq!(memory.in_use(), 25 * KIB);
    grow(&mut second, 1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn bytes_are_given_in_the_order_of_the_requests() {
    let memory = ByteBudget::new(100 * KIB);
    let mut first = memory.tenant("a").share();
    grow(&mut first, 60 * KIB).await.unwrap();
    let (mut large, mut small) = (memory.tenant("b").share(), memory.tenant("c").share());
    let mut waiting = Box::pin(grow(&mut large, 50 * KIB));
    assert!(waiting.as_mut().now_or_never().is_none());
    // A request that would fit waits behind the earlier ones.
    let mut behind = Box::pin(grow(&mut small, 10 * KIB));
    assert!(behind.as_mut().now_or_never().is_none());
    drop(first);
    waiting.await.unwrap();
    behind.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn shares_of_the_same_work_have_one_limit() {
    let memory = ByteBudget::new(100 * KIB);
    let mut share = memory.tenant("a").share();
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
    drop(share);
    assert_eq!(memory.in_use(), 0);
}

#[tokio::test(start_paused = true)]
async fn small_pieces_are_counted_together() {
    let memory = ByteBudget::new(100 * KIB);
    let mut share = memory.tenant("a").share();
    for _ in 0..KIB {
        grow(&mut share, 10).await.unwrap();
    }
    assert_eq!((share.bytes(), memory.in_use()), (10 * KIB, 10 * KIB));
    drop(share);
    let _ = memory.tenant("b");
    let _ = memory.tenant("c");
    assert_eq!(memory.inner.tenants.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn reserved_bytes_are_used_first_and_others_are_not_waited_for() {
    let memory = ByteBudget::new(100 * KIB);
    let (mut share, mut other) = (memory.tenant("a").share(), memory.tenant("b").share());
    share.reserve(50 * KIB).await.unwrap();
    assert_eq!((share.bytes(), memory.in_use()), (0, 50 * KIB));
    other.try_grow(40 * KIB).unwrap();
    share.try_grow(60 * KIB).unwrap();
    assert_eq!((share.bytes(), memory.in_use()), (60 * KIB, 100 * KIB));
    assert_eq!(other.try_grow(1), Err(ByteBudgetError::InUse));
    let limit = 75 * KIB;
    assert_eq!(share.try_grow(16 * KIB), Err(ByteBudgetError::TooMuch { limit }));
    drop(share);
    other.try_grow(35 * KIB).unwrap();
    assert_eq!(memory.in_use(), 75 * KIB);
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_given_back_go_to_others() {
    let memory = ByteBudget::new(100 * KIB);
    let (mut share, mut other) = (memory.tenant("a").share(), memory.tenant("b").share());
    share.reserve(70 * KIB).await.unwrap();
    share.try_grow(50 * KIB + 1).unwrap();
    share.shrink(20 * KIB);
    assert_eq!(
        (share.bytes(), share.reserved(), memory.in_use()),
        (30 * KIB + 1, 31 * KIB, 31 * KIB)
    );
    other.try_grow(69 * KIB).unwrap();
    assert_eq!(share.try_grow(KIB), Err(ByteBudgetError::InUse));
    drop(other);
    let mut second = memory.tenant("a").share();
    second.try_grow(44 * KIB).unwrap();
    share.shrink(100 * KIB);
    assert_eq!((share.bytes(), memory.in_use()), (0, 44 * KIB));
    share.try_grow(31 * KIB).unwrap();
}

#[test]
fn tenants_that_take_all_they_get_leave_a_part_to_the_next_one() {
    let memory = ByteBudget::new(1 << 20);
    let mut shares = Vec::new();
    for number in 0..4 {
        let mut share = memory.tenant(&number.to_string()).share();
        while share.try_grow_fairly(KIB).is_ok() {}
        let mut second = share.tenant.share();
        assert_eq!(
            second.try_grow_fairly(KIB),
            Err(ByteBudgetError::InUse),
            "the part is the tenant's"
        );
        shares.push(share);
    }
    let sizes: Vec<u64> = shares.iter().map(|share| share.bytes() / KIB).collect();
    assert_eq!(sizes, [768, 192, 48, 12]);
    shares.remove(0);
    let mut late = memory.tenant("late").share();
    late.try_grow_fairly(500 * KIB).unwrap();
}

#[tokio::test(start_paused = true)]
async fn fair_budget_leaves_bytes_to_every_next_tenant() {
    let memory = ByteBudget::fair(1 << 20);
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
}

#[tokio::test(start_paused = true)]
async fn waits_for_a_fair_budget_end_with_the_bytes_of_others() {
    let memory = ByteBudget::fair(100 * KIB);
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
    rest.try_grow(25 * KIB).unwrap();
    share.reserve(0).await.unwrap();
    share.try_grow(0).unwrap();
    share.try_grow_fairly(0).unwrap();
    let too_much = Err(ByteBudgetError::TooMuch { limit: 75 * KIB });
    assert_eq!(share.reserve(u64::MAX).await, too_much);
    assert_eq!(
        (share.try_grow(u64::MAX), share.try_grow_fairly(u64::MAX)),
        (too_much, too_much)
    );
    assert_eq!((share.bytes(), share.reserved()), (0, 0));
    let mut none = ByteBudget::new(0).tenant("a").share();
    none.try_grow(0).unwrap();
    assert_eq!(none.try_grow(1), Err(ByteBudgetError::TooMuch { limit: 0 }));
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
