use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::FutureExt as _;
use tokio::sync::{
    Notify,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

use super::*;

const READABLE: New = New {
    size: 400,
    is_readable: true,
};
const UNKEPT: New = New {
    size: 400,
    is_readable: false,
};

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

fn lanes() -> Lanes<usize> {
    Lanes::new(48 << 20)
}

fn run<F>(work: impl Fn(usize, LanePermit) -> F + Send + Sync + 'static) -> Run<usize>
where
    F: Future<Output = Ended<usize>> + Send + 'static,
{
    Arc::new(move |item, turn| work(item, turn).boxed())
}

/// Returns a worker function that sends its item to a channel, and succeeds.
fn tell(done: &UnboundedSender<usize>) -> Run<usize> {
    let done = done.clone();
    run(move |item, _| {
        done.send(item).unwrap();
        async { Ended::Sent }
    })
}

fn all(finished: &mut UnboundedReceiver<usize>) -> Vec<usize> {
    std::iter::from_fn(|| finished.try_recv().ok()).collect()
}

#[tokio::test(start_paused = true)]
async fn pause_holds_one_lane_alone_and_is_bounded() {
    let lanes = lanes();
    let begin = Instant::now();
    let (done, mut finished) = unbounded_channel();
    let work = |name: &'static str| {
        let done = done.clone();
        run(move |item, turn: LanePermit| {
            let done = done.clone();
            async move {
                if item > 0 {
                    turn.pause(Duration::from_secs(item as u64));
                } else {
                    turn.wait().await;
                    done.send((name, begin.elapsed().as_secs())).unwrap();
                }
                Ended::Sent
            }
        })
    };
    for item in [usize::MAX, 0] {
        lanes.enter(&key("slow"), &READABLE, |_| Some(item), || work("slow"));
    }
    lanes.enter(&key("fast"), &READABLE, |_| Some(0), || work("fast"));
    lanes.drain().await;
    assert_eq!(finished.recv().await, Some(("fast", 0)));
    assert_eq!(finished.recv().await, Some(("slow", LONGEST_PAUSE.as_secs())));
}

#[tokio::test]
async fn without_a_journal_a_full_lane_refuses_and_leaves_others_alone() {
    let lanes = lanes();
    let gate = Arc::new(Notify::new());
    let (done, mut finished) = unbounded_channel();
    let waiting = || {
        let (gate, done) = (Arc::clone(&gate), done.clone());
        run(move |item, _| {
            let (gate, done) = (Arc::clone(&gate), done.clone());
            async move {
                if item < WIDTH {
                    gate.notified().await;
                }
                done.send(item).unwrap();
                Ended::Sent
            }
        })
    };
    for number in 0..LENGTH {
        let entered = lanes.enter(&key("slow"), &UNKEPT, |holds| holds.then_some(number), waiting);
        assert_eq!(entered, Admission::Accepted);
    }
    let enter = |name: &str, item| lanes.enter(&key(name), &UNKEPT, |_| Some(item), || tell(&done));
    assert_eq!(enter("slow", 0), Admission::Full);
    assert_eq!(enter("fast", usize::MAX), Admission::Accepted);
    assert_eq!(finished.recv().await, Some(usize::MAX));
    for _ in 0..WIDTH {
        gate.notify_one();
    }
    lanes.drain().await;
    assert_eq!(finished.len(), LENGTH);
    assert_eq!(enter("slow", 0), Admission::Accepted);
    assert_eq!(lanes.table.lock().lanes.len(), 1);
}

#[tokio::test]
async fn thousands_wait_in_order_with_few_in_memory() {
    const MANY: usize = 20_000;
    let lanes = lanes();
    let (done, mut finished) = unbounded_channel();
    let hangs = Arc::new(Notify::new());
    let in_memory = AtomicUsize::new(0);
    let work = || {
        let (done, hangs) = (done.clone(), Arc::clone(&hangs));
        run(move |item, _| {
            done.send(item).unwrap();
            let hangs = Arc::clone(&hangs);
            async move {
                if item < WIDTH {
                    hangs.notified().await;
                }
                Ended::Sent
            }
        })
    };
    for item in 0..MANY {
        let make = |holds| {
            in_memory.fetch_add(usize::from(holds), Ordering::Relaxed);
            Some(item)
        };
        assert_eq!(
            lanes.enter(&key("hangs"), &READABLE, make, work),
            Admission::Accepted
        );
    }
    assert_eq!(in_memory.into_inner(), IN_MEMORY);
    lanes.enter(&key("other"), &READABLE, |_| Some(MANY), || tell(&done));
    for expected in (0..WIDTH).chain([MANY]) {
        assert_eq!(finished.recv().await, Some(expected));
    }
    hangs.notify_waiters();
    lanes.drain().await;
    assert_eq!(all(&mut finished), (WIDTH..MANY).collect::<Vec<_>>());
    let table = lanes.table.lock();
    assert!(table.lanes.is_empty() && table.memory_bytes == 0);
    assert!(table.shares.is_empty());
}

#[tokio::test(start_paused = true)]
async fn outage_loses_nothing_and_is_probed_ever_more_rarely() {
    let lanes = lanes();
    let (done, mut finished) = unbounded_channel();
    let is_up = Arc::new(AtomicBool::new(false));
    let attempts = Arc::new(AtomicUsize::new(0));
    let work = || {
        let (done, is_up, attempts) = (done.clone(), Arc::clone(&is_up), Arc::clone(&attempts));
        run(move |item, turn: LanePermit| {
            assert!(!turn.is_last());
            attempts.fetch_add(1, Ordering::Relaxed);
            let ended = match is_up.load(Ordering::Relaxed) {
                true => Ended::Sent,
                false => Ended::Outage(item),
            };
            if matches!(ended, Ended::Sent) {
                done.send(item).unwrap();
            }
            async { ended }
        })
    };
    for item in 0..1000 {
        lanes.enter(&key("down"), &READABLE, |_| Some(item), work);
    }
    sleep(Duration::from_secs(600)).await;
    let tried = attempts.load(Ordering::Relaxed);
    assert!((18..30).contains(&tried), "{tried} attempts in ten minutes");
    is_up.store(true, Ordering::Relaxed);
    lanes.drain().await;
    // One attempt is the first to succeed; then all are sent in their order.
    let first = finished.recv().await.unwrap();
    let rest = (0..1000).filter(|item| *item != first);
    assert_eq!(all(&mut finished), rest.collect::<Vec<_>>());
    assert_eq!(attempts.load(Ordering::Relaxed), tried + 1000);
}

/// The behavior of a provider for ten minutes.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    Hangs,
    Busy,
    Fails,
    Slow,
}

#[tokio::test(start_paused = true)]
async fn ten_minutes_of_trouble_delay_nobody_else_and_end_without_a_storm() {
    const TROUBLE: Duration = Duration::from_secs(600);
    const ITEMS: usize = 1000;
    for trouble in [Trouble::Hangs, Trouble::Busy, Trouble::Fails, Trouble::Slow] {
        let lanes = lanes();
        let begin = Instant::now();
        let counts = Arc::new([const { AtomicUsize::new(0) }; 3]);
        let (done, mut finished) = unbounded_channel();
        let (others, mut on_time) = unbounded_channel();
        let work = || {
            let (done, counts) = (done.clone(), Arc::clone(&counts));
            run(move |item, turn: LanePermit| {
                let (done, counts) = (done.clone(), Arc::clone(&counts));
                async move {
                    let [now, most, early] = &*counts;
                    if begin.elapsed() < TROUBLE {
                        early.fetch_add(1, Ordering::Relaxed);
                        match trouble {
                            Trouble::Hangs => sleep(Duration::from_secs(10)).await,
                            Trouble::Busy => turn.pause(Duration::from_secs(60)),
                            Trouble::Fails => {}
                            Trouble::Slow => sleep(Duration::from_secs(9)).await,
                        }
                        if !matches!(trouble, Trouble::Slow) {
                            return Ended::Outage(item);
                        }
                    }
                    most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                    sleep(Duration::from_millis(100)).await;
                    now.fetch_sub(1, Ordering::Relaxed);
                    done.send(item).unwrap();
                    Ended::Sent
                }
            })
        };
        for item in 0..ITEMS {
            lanes.enter(&key("troubled"), &READABLE, |_| Some(item), work);
            for other in [key("near"), ObjectKey::new("elsewhere", "far")] {
                lanes.enter(&other, &READABLE, |_| Some(item), || tell(&others));
            }
        }
        while on_time.len() < 2 * ITEMS {
            tokio::task::yield_now().await;
        }
        assert_eq!(begin.elapsed(), Duration::ZERO, "{trouble:?}");
        assert_eq!(all(&mut on_time).len(), 2 * ITEMS);
        while finished.len() < ITEMS {
            sleep(Duration::from_secs(1)).await;
        }
        // The next attempt, after it the others four at a time.
        let late = (begin.elapsed() - TROUBLE).as_secs();
        assert!(late <= 60 + 25 + 10, "{trouble:?}: {late} s later");
        lanes.drain().await;
        let mut sent = all(&mut finished);
        sent.sort_unstable();
        assert_eq!(sent, (0..ITEMS).collect::<Vec<_>>(), "{trouble:?}");
        let [_, most, early] = &*counts;
        assert_eq!(most.load(Ordering::Relaxed), 4, "{trouble:?}");
        let early = early.load(Ordering::Relaxed);
        let bound = if matches!(trouble, Trouble::Slow) {
            4 * 600 / 9 + 4
        } else {
            30
        };
        assert!(early <= bound, "{trouble:?}: {early} attempts in ten minutes");
    }
}

#[tokio::test(start_paused = true)]
async fn item_that_always_fails_has_a_last_turn_while_others_succeed() {
    let lanes = lanes();
    let (done, mut finished) = unbounded_channel();
    let work = || {
        let done = done.clone();
        run(move |item, turn: LanePermit| {
            let ended = match (item, turn.is_last()) {
                (0..8, false) => Ended::Outage(item),
                (0..8, true) => Ended::Over,
                _ => Ended::Sent,
            };
            if !matches!(ended, Ended::Outage(_)) {
                done.send(item).unwrap();
            }
            async { ended }
        })
    };
    for item in 0..200 {
        lanes.enter(&key("picky"), &READABLE, |_| Some(item), work);
    }
    while finished.len() < 200 {
        sleep(Duration::from_secs(1)).await;
    }
    lanes.drain().await;
    let mut all = all(&mut finished);
    all.sort_unstable();
    assert_eq!(all, (0..200).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_full_share_refuses_new_events_first() {
    let lanes = Lanes::new(1 << 20);
    let enter = |name: &str| {
        let hang = || run(|_, _| futures::future::pending());
        lanes.enter(&key(name), &READABLE, |_| Some(0), hang)
    };
    while lanes.admits(&key("hangs"), READABLE.size) {
        assert_eq!(enter("hangs"), Admission::Accepted);
    }
    assert!(!lanes.is_calm());
    assert!(lanes.admits(&key("other"), READABLE.size));
    assert_eq!(enter("hangs"), Admission::Accepted);
    while enter("hangs") == Admission::Accepted {}
    assert_eq!(enter("other"), Admission::Accepted);
}
