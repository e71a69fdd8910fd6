//! Tests of the functions over conditions.

use k8s_openapi::jiff::Timestamp;

use super::*;
use crate::{ConditionStatus, Reason, Time};

fn at(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

fn cond(type_: &str, status: ConditionStatus, second: i64) -> Condition {
    Condition::new(type_, status, Reason::Succeeded, "because", Some(1), at(second))
}

use ConditionStatus::{False, True, Unknown};

#[test]
fn set_keeps_the_transition_time_while_the_status_stays() {
    let mut list = vec![cond("Ready", True, 10)];
    let mut next = cond("Ready", True, 20);
    next.message = "another".to_owned();
    set(&mut list, next);
    assert_eq!((list.len(), list[0].last_transition_time.clone()), (1, at(10)));
    assert_eq!(list[0].message, "another");
    set(&mut list, cond("Ready", False, 30));
    assert_eq!(list[0].last_transition_time, at(30));
    set(&mut list, cond("Stalled", True, 40));
    assert_eq!(list.len(), 2);
}

#[test]
fn carry_times_copies_times_of_equal_statuses() {
    let past = [cond("Ready", True, 1), cond("Reconciling", True, 2)];
    let mut new = [
        cond("Ready", False, 9),
        cond("Reconciling", True, 9),
        cond("FetchFailed", True, 9),
    ];
    carry_times(&past, &mut new);
    assert_eq!(new.map(|c| c.last_transition_time), [at(9), at(2), at(9)]);
}

#[test]
fn get_and_remove_find_conditions_by_type() {
    let mut list = vec![
        cond("Ready", False, 1),
        cond("Stalled", True, 1),
        cond("Odd", Unknown, 1),
    ];
    assert!(is_false(&list, "Ready") && is_true(&list, "Stalled"));
    assert!(!is_true(&list, "Odd") && !is_false(&list, "Odd") && !is_true(&list, "Absent"));
    assert!(remove(&mut list, "Stalled"));
    assert!(!remove(&mut list, "Stalled"));
    assert_eq!(get(&list, "Odd").map(|c| c.status), Some(Unknown));
}

#[test]
fn sort_puts_stalled_reconciling_and_ready_first() {
    let mut newer = cond("B", True, 1);
    newer.observed_generation = Some(2);
    let mut list = [
        cond("C", True, 1),
        newer,
        cond("A", True, 1),
        cond("Ready", True, 1),
        cond("Reconciling", True, 1),
        cond("Stalled", True, 1),
    ];
    sort(&mut list);
    assert_eq!(
        list.map(|c| c.type_),
        ["Stalled", "Reconciling", "Ready", "B", "A", "C"]
    );
}
