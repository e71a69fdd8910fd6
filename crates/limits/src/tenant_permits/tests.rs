use futures::FutureExt as _;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const LIMITS: PermitLimits = PermitLimits {
    quick: 4,
    reserve: 1,
    slow: 4,
    slow_of_tenant: 2,
    quick_time: SECOND,
    evict_after: Duration::from_secs(10),
};

fn take(permits: &TenantPermits, tenant: &str) -> Option<TenantPermit> {
    permits.acquire(tenant).now_or_never()
}

fn take_all(permits: &TenantPermits, tenant: &str) -> Vec<TenantPermit> {
    std::iter::from_fn(|| take(permits, tenant)).collect()
}

async fn pass(time: Duration) {
    tokio::time::advance(time).await;
}

/// Waits for a permit, and returns it with the time that it took.
async fn wait(permits: &TenantPermits, tenant: &str) -> (TenantPermit, Duration) {
    let start = Instant::now();
    let permit = permits.acquire(tenant).await;
    (permit, start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn last_permits_are_for_tenants_without_any() {
    let permits = TenantPermits::new(LIMITS);
    let greedy = take_all(&permits, "a");
    assert_eq!(greedy.len(), LIMITS.quick - LIMITS.reserve);
    let first = take(&permits, "b");
    assert!(first.is_some() && take(&permits, "c").is_none());
    drop((greedy, first));
    assert_eq!((permits.free(), permits.tenants()), (LIMITS.quick, 0));
}

#[tokio::test(start_paused = true)]
async fn slow_work_moves_to_a_class_with_bounds_for_each_tenant_and_in_all() {
    let permits = TenantPermits::new(LIMITS);
    let mut held = take_all(&permits, "a");
    pass(SECOND).await;
    held.extend(take_all(&permits, "a"));
    assert_eq!(held.len(), 5, "two of the three are slow");
    pass(SECOND).await;
    assert!(take(&permits, "a").is_none(), "its slow permits are taken");
    assert!(
        held.iter().all(|permit| !permit.evicted().is_cancelled()),
        "nobody waits"
    );
}

#[tokio::test(start_paused = true)]
async fn grant_visits_one_request_however_many_wait_or_are_gone() {
    const REQUESTS: usize = 2_000;
    let permits = TenantPermits::new(LIMITS);
    let mut held = take_all(&permits, "a");
    let request = |number: usize| {
        let (request, answer) = oneshot::channel();
        permits.0.lock().request(["a", "b", "c"][number % 3], request);
        answer
    };
    // Of every four requests, one is still waited for.
    let mut answers: Vec<_> = (0..REQUESTS)
        .map(request)
        .enumerate()
        .filter_map(|(number, answer)| (number % 4 == 0).then_some(answer))
        .collect();
    let mut granted = 0;
    while !answers.is_empty() {
        drop(held.pop());
        permits.advance();
        answers.retain_mut(|answer| match answer.try_recv() {
            Ok(permit) => {
                held.insert(0, permit);
                granted += 1;
                false
            }
            Err(_) => true,
        });
    }
    assert_eq!(granted, REQUESTS / 4);
    let visited = permits.0.lock().visited;
    assert!(visited <= 4 * REQUESTS, "{visited}");
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_gone_need_no_memory() {
    let permits = TenantPermits::new(LIMITS);
    let _held = take_all(&permits, "a");
    let _others = take_all(&permits, "b");
    for _ in 0..5_000 {
        assert!(take(&permits, "a").is_none());
    }
    let state = permits.0.lock();
    assert!(state.waiting() <= 2 * 64, "{}", state.waiting());
}

#[tokio::test(start_paused = true)]
async fn hanging_work_of_two_tenants_delays_nobody() {
    let permits = TenantPermits::new(LIMITS);
    let mut held = Vec::new();
    for _ in 0..8 {
        for tenant in ["a", "b"] {
            held.extend(take_all(&permits, tenant));
        }
        pass(SECOND).await;
    }
    let (first, waited) = wait(&permits, "victim").await;
    assert_eq!(waited, Duration::ZERO);
    let second = wait(&permits, "victim").await;
    assert!(second.1 <= PATIENT_TIME, "{second:?}");
    assert!(held.iter().any(|permit| permit.evicted().is_cancelled()));
    assert!(!first.evicted().is_cancelled());
}

const PATIENT_TIME: Duration = Duration::from_secs(40);

#[tokio::test(start_paused = true)]
async fn hanging_work_of_very_many_tenants_delays_another_one_by_seconds() {
    let permits = TenantPermits::new(LIMITS);
    let mut held = Vec::new();
    for number in 0..2 * (LIMITS.quick + LIMITS.slow) {
        held.extend(take(&permits, &number.to_string()));
        pass(SECOND / 4).await;
    }
    assert_eq!(held.len(), LIMITS.quick + LIMITS.slow);
    let (_, waited) = wait(&permits, "victim").await;
    assert!(waited <= LIMITS.evict_after, "{waited:?}");
    let evicted: Vec<&str> = held
        .iter()
        .filter(|permit| permit.evicted().is_cancelled())
        .map(TenantPermit::tenant)
        .collect();
    assert_eq!(evicted, ["0"], "the oldest, and no other");
}

#[tokio::test(start_paused = true)]
async fn slow_work_goes_on_while_quick_work_ends_in_time() {
    let permits = TenantPermits::new(LIMITS);
    let slow: Vec<_> = ["a", "b", "c", "d"]
        .map(|tenant| take(&permits, tenant).unwrap())
        .into();
    pass(100 * SECOND).await;
    for number in 0..50 {
        let quick: Vec<_> = (0..LIMITS.quick)
            .map(|other| take(&permits, &format!("{number}-{other}")).unwrap())
            .collect();
        let mut waiting = Box::pin(permits.acquire("victim"));
        assert!((&mut waiting).now_or_never().is_none());
        pass(SECOND / 2).await;
        drop(quick);
        assert!(waiting.now_or_never().is_some());
    }
    assert!(slow.iter().all(|permit| !permit.evicted().is_cancelled()));
}

#[tokio::test(start_paused = true)]
async fn evicted_work_that_goes_on_counts_against_its_tenant() {
    let permits = TenantPermits::new(PermitLimits {
        slow: 0,
        reserve: 0,
        ..LIMITS
    });
    let mut stuck = take_all(&permits, "a");
    assert_eq!(stuck.len(), LIMITS.quick);
    let mut others = Vec::new();
    for number in 0..3 {
        let (other, waited) = wait(&permits, &format!("other-{number}")).await;
        assert!(waited <= LIMITS.evict_after);
        others.push(other);
    }
    drop(others);
    assert!(
        take(&permits, "a").is_none(),
        "three of its permits were evicted, and go on"
    );
    stuck.retain(|permit| !permit.evicted().is_cancelled());
    assert_eq!(stuck.len(), 1);
    assert_eq!(take_all(&permits, "a").len(), LIMITS.quick - 1);
}

#[tokio::test(start_paused = true)]
async fn tenants_of_equal_size_take_turns_and_evict_nothing() {
    let permits = TenantPermits::new(PermitLimits { reserve: 0, ..LIMITS });
    let mut held = Vec::new();
    for _ in 0..4 {
        for tenant in ["a", "b"] {
            held.extend(take(&permits, tenant));
        }
        pass(SECOND).await;
    }
    assert_eq!(held.len(), LIMITS.quick + LIMITS.slow);
    let mut waiting = Box::pin(permits.acquire("a"));
    assert!((&mut waiting).now_or_never().is_none());
    pass(1000 * SECOND).await;
    assert!((&mut waiting).now_or_never().is_none());
    assert!(held.iter().all(|permit| !permit.evicted().is_cancelled()));
    drop(held.pop());
    assert_eq!(
        waiting.now_or_never().as_ref().map(TenantPermit::tenant),
        Some("a")
    );
}

#[tokio::test(start_paused = true)]
async fn request_that_waits_for_long_sees_the_permits_of_others() {
    let permits = TenantPermits::new(PermitLimits {
        quick: 2,
        reserve: 0,
        slow: 0,
        slow_of_tenant: 1,
        ..LIMITS
    });
    let spawn = |tenant: &'static str| {
        let permits = permits.clone();
        tokio::spawn(async move { permits.acquire(tenant).await })
    };
    let (x, y) = (take(&permits, "x"), take(&permits, "y"));
    let (mut second_of_x, second_of_y) = (spawn("x"), spawn("y"));
    tokio::time::sleep(100 * SECOND).await;
    drop(y);
    let _y = second_of_y.await.unwrap();
    let _z = wait(&permits, "z").await;
    // It is evicted, and its tenant has none: the others' permits must end in time.
    drop(x);
    let start = Instant::now();
    tokio::time::timeout(100 * SECOND, &mut second_of_x)
        .await
        .unwrap()
        .unwrap();
    assert!(start.elapsed() <= LIMITS.evict_after + SECOND);
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_gone_evict_nothing_and_leave_no_trace() {
    let permits = TenantPermits::new(LIMITS);
    let held: Vec<_> = (0..LIMITS.quick)
        .filter_map(|number| take(&permits, &number.to_string()))
        .collect();
    let mut waiting = Box::pin(permits.acquire("b"));
    assert!((&mut waiting).now_or_never().is_none());
    drop(waiting);
    pass(1000 * SECOND).await;
    drop(take(&permits, "c"));
    assert!(held.iter().all(|permit| !permit.evicted().is_cancelled()));
    drop(held);
    assert_eq!((permits.free(), permits.tenants()), (LIMITS.quick, 0));
}

#[test]
fn fuzz_permits_never_exceed_their_limits() {
    testkit::fuzz::run("permits of tenants", |random| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let permits = TenantPermits::new(LIMITS);
            let mut held: Vec<TenantPermit> = Vec::new();
            for _ in 0..random.below(200) {
                match random.below(4) {
                    0 | 1 => held.extend(take(&permits, &random.below(6).to_string())),
                    2 if !held.is_empty() => drop(held.swap_remove(random.below(held.len()))),
                    _ => pass(SECOND * 5).await,
                }
                let is_evicted = |permit: &&TenantPermit| permit.evicted().is_cancelled();
                let evicted = held.iter().filter(is_evicted).count();
                assert!(held.len() - evicted <= LIMITS.quick + LIMITS.slow);
                assert!(evicted <= 6 * (LIMITS.quick + LIMITS.slow_of_tenant));
            }
            drop(held);
            assert_eq!((permits.free(), permits.tenants()), (LIMITS.quick, 0));
        });
    });
}
