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
