use super::*;

fn small() -> Limits {
    Limits {
        steps: 3000,
        bytes: 10,
        objects: 2,
        include_depth: 1,
        ..Limits::default()
    }
}

#[test]
fn budget_errors_name_their_limit() {
    let budget = Budget::new(small());
    assert_eq!(budget.step(3000), Ok(()));
    assert_eq!(
        budget.step(1).unwrap_err().to_string(),
        "the limit of 3000 steps was reached"
    );
    assert_eq!(budget.output(10), Ok(()));
    assert_eq!(
        budget.output(1).unwrap_err().to_string(),
        "the limit of 10 bytes of rendered output was reached"
    );
    assert_eq!(budget.objects(2), Ok(()));
    assert_eq!(
        budget.objects(1).unwrap_err().to_string(),
        "the limit of 2 objects was reached"
    );
    assert_eq!(budget.include_depth(1), Ok(()));
    assert_eq!(
        budget.include_depth(2).unwrap_err().to_string(),
        "the limit of 1 nested includes was reached"
    );
}

#[test]
fn counters_stay_exceeded_after_overflow() {
    let budget = Budget::new(small());
    assert!(budget.step(u64::MAX).is_err());
    assert!(budget.output(u64::MAX).is_err());
    assert!(budget.objects(u64::MAX).is_err());
}

#[test]
fn steps_fail_after_deadline_and_cancellation() {
    let late = Budget::new(Limits::default()).with_timeout(Duration::ZERO);
    assert_eq!(late.check(), Err(Exceeded::Time(Duration::ZERO)));
    assert_eq!(late.step(1), Ok(()), "the clock is looked at now and then only");
    assert_eq!(late.step(1024), Err(Exceeded::Time(Duration::ZERO)));

    let flag = Arc::new(AtomicBool::new(false));
    let budget = Budget::default().with_cancellation(Arc::clone(&flag));
    assert_eq!(budget.check(), Ok(()));
    flag.store(true, Ordering::Relaxed);
    assert_eq!(budget.check(), Err(Exceeded::Cancelled));
    assert_eq!(budget.step(2000), Err(Exceeded::Cancelled));
}

/// Memory of a fixed size, which counts the taken bytes.
#[derive(Debug)]
struct Fixed {
    size: u64,
    taken: AtomicU64,
}

impl SharedMemory for Fixed {
    fn take(&self, bytes: u64) -> bool {
        let fits = self.taken.load(Ordering::Relaxed) + bytes <= self.size;
        if fits {
            self.taken.fetch_add(bytes, Ordering::Relaxed);
        }
        fits
    }

    fn give_back(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn is_revoked(&self) -> bool {
        false
    }
}

const MIB: u64 = 1 << 20;

fn shared(size: u64) -> (Arc<Fixed>, Budget) {
    let memory = Arc::new(Fixed {
        size,
        taken: AtomicU64::new(0),
    });
    (Arc::clone(&memory), Budget::default().with_memory(memory))
}

#[test]
fn reservations_take_chunks_and_give_back_what_is_free() {
    let (memory, budget) = shared(16 * MIB);
    let taken = || memory.taken.load(Ordering::Relaxed);
    let mut reservation = MemoryReservation::default();
    for (bytes, expected) in [
        (0, 0),
        (1, MIB / 4),
        (MIB / 4, MIB / 4),
        (MIB, MIB),
        (0, MIB),
        (8 * MIB, 8 * MIB),
        (4 * MIB, 8 * MIB),
        (3 * MIB, 3 * MIB),
    ] {
        reservation.resize(bytes, &budget).unwrap();
        assert_eq!(taken(), expected, "{bytes}");
    }
    assert_eq!(reservation.resize(17 * MIB, &budget), Err(Exceeded::Busy));
    assert_eq!((taken(), reservation.bytes()), (3 * MIB, 3 * MIB));
    drop(reservation);
    assert_eq!(taken(), 0);
}

#[test]
fn reservations_move_to_the_memory_of_another_budget() {
    let (first, one) = shared(4 * MIB);
    let (second, other) = shared(2 * MIB);
    let mut reservation = MemoryReservation::default();
    reservation.resize(3 * MIB, &one).unwrap();
    assert_eq!(reservation.resize(3 * MIB, &other), Err(Exceeded::Busy));
    assert_eq!(first.taken.load(Ordering::Relaxed), 3 * MIB);
    reservation.resize(2 * MIB, &other).unwrap();
    assert_eq!(first.taken.load(Ordering::Relaxed), 0);
    reservation.resize(MIB, &Budget::default()).unwrap();
    assert_eq!(second.taken.load(Ordering::Relaxed), 0);
}
