use k8s_openapi::api::core::v1::ConfigMap;

use super::*;

fn event_in(namespace: &str, object: &str, message: &str) -> Event {
    serde_json::from_value(serde_json::json!({
        "involvedObject": {"kind": "ConfigMap", "name": object, "namespace": namespace, "uid": format!("{namespace}-{object}")},
        "severity": "info", "message": message, "reason": "r", "reportingController": "c",
    }))
    .unwrap()
}

fn event(object: &str, message: &str) -> Event {
    event_in("b", object, message)
}

fn push_event(pending: &mut Pending, event: Event) -> usize {
    pending.push(event, ApiResource::erase::<ConfigMap>(&()), false)
}

fn push(pending: &mut Pending, object: &str, message: &str) -> usize {
    push_event(pending, event(object, message))
}

fn next(pending: &Pending, now: Instant) -> Option<Waiting> {
    match pending.next(now) {
        NextItem::Item(next) => Some(next.clone()),
        NextItem::Paused(_) | NextItem::Empty => None,
    }
}

/// Acknowledges events until none is left that may be posted now; returns their messages.
fn acknowledge_all(pending: &mut Pending, now: Instant) -> Vec<String> {
    let mut messages = Vec::new();
    while let Some(waiting) = next(pending, now) {
        messages.push(waiting.event.message.clone());
        pending.finish(&waiting);
    }
    messages
}

fn marked(pending: &mut Pending, is_end: bool) -> Vec<String> {
    let changes = pending.mark_changes(is_end);
    let set = changes.into_iter().filter(|change| change.text.is_some());
    let mut names: Vec<_> = set.filter_map(|change| change.object.name).collect();
    names.sort();
    names
}

fn change(object: &str) -> MarkChange {
    MarkChange {
        object: event(object, "").involved_object,
        resource: ApiResource::erase::<ConfigMap>(&()),
        text: Some(String::new()),
    }
}

fn removed_marks(pending: &mut Pending) -> Vec<String> {
    let changes = pending.mark_changes(false);
    let removed = changes.into_iter().filter(|change| change.text.is_none());
    removed.filter_map(|change| change.object.name).collect()
}

#[test]
fn namespaces_take_turns() {
    let now = Instant::now();
    let mut pending = Pending::new();
    for number in 0..100 {
        push_event(&mut pending, event_in("greedy", &number.to_string(), "greedy"));
    }
    push_event(&mut pending, event_in("victim", "a", "first"));
    push_event(&mut pending, event_in("victim", "a", "second"));
    let order = acknowledge_all(&mut pending, now);
    assert_eq!(order[..4], ["greedy", "first", "greedy", "second"]);
    assert_eq!(order.len(), 102);
}

#[test]
fn failures_pause_their_own_namespace_longer_each_time() {
    let now = Instant::now();
    let mut pending = Pending::new();
    for object in ["a", "b"] {
        push_event(&mut pending, event_in("greedy", object, object));
        push_event(&mut pending, event_in("victim", object, object));
    }
    let mut time = now;
    for (failures, seconds) in [1, 2, 4, 8, 30, 30].into_iter().enumerate() {
        let failed = next(&pending, time).unwrap();
        assert_eq!(failed.namespace(), "greedy");
        let expected = if failures == 0 {
            BackOff::First
        } else {
            BackOff::Again
        };
        assert_eq!(pending.back_off(&failed, Some(Duration::ZERO), time), expected);
        if failures == 0 {
            assert_eq!(acknowledge_all(&mut pending, time), ["a", "b"], "of the victim");
        }
        time += Duration::from_secs(seconds);
        assert_eq!(
            pending.next(time - Duration::from_millis(1)),
            NextItem::Paused(time)
        );
    }
    let accepted = next(&pending, time).unwrap();
    pending.finish(&accepted);
    let failed = next(&pending, time).unwrap();
    assert_eq!(
        pending.back_off(&failed, Some(Duration::from_secs(7)), time),
        BackOff::First,
        "an accepted event ends the row of failures"
    );
    assert_eq!(
        pending.next(time),
        NextItem::Paused(time + Duration::from_secs(7)),
        "the receiver asked for it"
    );
}

#[test]
fn events_of_a_failed_object_go_behind_those_of_others_in_their_order() {
    let now = Instant::now();
    let mut pending = Pending::new();
    for (object, message) in [("a", "a1"), ("b", "b1"), ("a", "a2"), ("c", "c1")] {
        assert_eq!(push(&mut pending, object, message), 0);
    }
    let first = next(&pending, now).unwrap();
    assert_eq!(pending.back_off(&first, None, now), BackOff::First);
    let later = now + Duration::from_secs(1);
    assert_eq!(acknowledge_all(&mut pending, later), ["b1", "c1", "a1", "a2"]);
}

#[test]
fn postponed_event_lets_other_namespaces_go_first_and_is_next_after_them() {
    let now = Instant::now();
    let mut pending = Pending::new();
    push_event(&mut pending, event_in("a", "x", "a1"));
    push_event(&mut pending, event_in("a", "x", "a2"));
    push_event(&mut pending, event_in("b", "x", "b1"));
    let first = next(&pending, now).unwrap();
    pending.postpone(&first);
    assert_eq!(acknowledge_all(&mut pending, now), ["b1", "a1", "a2"]);
}

#[test]
fn event_that_fails_while_others_of_its_namespace_are_accepted_is_given_up() {
    let now = Instant::now();
    let mut pending = Pending::new();
    push(&mut pending, "a", "a1");
    let failing = next(&pending, now).unwrap();
    for _ in 0..1000 {
        assert_ne!(
            pending.back_off(&failing, None, now),
            BackOff::GivenUp,
            "the receiver is away: nobody is given up"
        );
        assert_ne!(
            pending.back_off(&failing, Some(Duration::ZERO), now),
            BackOff::GivenUp,
            "no other event was accepted"
        );
    }
    let mut given_up = 0;
    for failures in 1..100 {
        push(&mut pending, "b", "b1");
        let other = pending.queue.items("b").find(|each| each.event.message == "b1");
        let other = other.unwrap().clone();
        pending.finish(&other);
        if pending.back_off(&failing, Some(Duration::ZERO), now) == BackOff::GivenUp {
            given_up = failures;
            break;
        }
    }
    assert_eq!(given_up, usize::from(STRIKES));
}

#[test]
fn mark_goes_with_the_last_event_of_its_object() {
    let now = Instant::now();
    let mut pending = Pending::new();
    push(&mut pending, "a", "a1");
    push(&mut pending, "a", "a2");
    push(&mut pending, "b", "b1");
    assert_eq!(marked(&mut pending, false), [""; 0], "the receiver answers");
    pending.set_reach(Reach::Outage);
    assert_eq!(marked(&mut pending, false), ["a", "b"], "one mark an object");
    assert_eq!(pending.lost_at_end(), 3);
    pending.changed_mark(change("a"), Mark::Set);
    pending.changed_mark(change("b"), Mark::Impossible);
    assert_eq!(marked(&mut pending, false), [""; 0]);
    assert_eq!(
        pending.lost_at_end(),
        2,
        "the mark of a stands for its last event"
    );
    let first = next(&pending, now).unwrap();
    pending.finish(&first);
    assert_eq!(removed_marks(&mut pending), [""; 0], "another event of a waits");
    assert!(pending.has(&first.event.involved_object));
    assert_eq!(acknowledge_all(&mut pending, now), ["a2", "b1"]);
    assert!(!pending.has(&first.event.involved_object));
    assert_eq!(removed_marks(&mut pending), ["a"], "b has no mark");
    assert_eq!(
        (pending.len(), pending.objects.len(), pending.failures.len()),
        (0, 0, 0)
    );
}

#[test]
fn objects_are_marked_if_their_namespace_is_paused_or_nobody_is_reached() {
    let now = Instant::now();
    let mut pending = Pending::new();
    for object in ["g1", "g2"] {
        push_event(&mut pending, event_in("greedy", object, ""));
    }
    push_event(&mut pending, event_in("victim", "v1", ""));
    let failed = next(&pending, now).unwrap();
    pending.back_off(&failed, Some(Duration::ZERO), now);
    assert_eq!(marked(&mut pending, false), ["g1", "g2"]);
    assert_eq!(marked(&mut pending, true), ["g1", "g2", "v1"], "at the end");
    pending.set_reach(Reach::Outage);
    assert_eq!(marked(&mut pending, false), ["g1", "g2", "v1"]);
    pending.set_reach(Reach::Nobody);
    assert_eq!(marked(&mut pending, true), [""; 0]);
}

#[test]
fn many_objects_of_a_namespace_are_marked_after_the_first_of_others() {
    let mut pending = Pending::new();
    for number in 0..100 {
        push_event(&mut pending, event_in("greedy", &number.to_string(), ""));
    }
    push_event(&mut pending, event_in("victim", "v", ""));
    let changes = pending.mark_changes(true);
    let position = changes
        .iter()
        .position(|change| change.object.name.as_deref() == Some("v"));
    assert_eq!((changes.len(), position), (101, Some(1)));
}

#[test]
fn mark_that_is_set_after_the_acknowledgment_is_removed() {
    let now = Instant::now();
    let mut pending = Pending::new();
    push(&mut pending, "a", "a1");
    assert_eq!(acknowledge_all(&mut pending, now), ["a1"]);
    pending.changed_mark(change("a"), Mark::Set);
    assert_eq!(removed_marks(&mut pending), ["a"]);
    pending.changed_mark(change("a"), Mark::Missing);
    assert_eq!(removed_marks(&mut pending), [""; 0]);
}

#[test]
fn mark_that_is_not_removed_yet_stands_for_the_next_event() {
    let now = Instant::now();
    let mut pending = Pending::new();
    push(&mut pending, "a", "a1");
    pending.changed_mark(change("a"), Mark::Set);
    assert_eq!(acknowledge_all(&mut pending, now), ["a1"]);
    push(&mut pending, "a", "a2");
    assert_eq!(removed_marks(&mut pending), [""; 0]);
    assert_eq!(pending.lost_at_end(), 0);
    pending.changed_mark(
        MarkChange {
            text: None,
            ..change("a")
        },
        Mark::Missing,
    );
    assert_eq!(pending.lost_at_end(), 1, "it was removed meanwhile");
}

#[test]
fn events_that_others_of_their_object_follow_are_evicted_first() {
    let mut pending = Pending::new();
    push(&mut pending, "first", "1");
    push(&mut pending, "twice", "2");
    push(&mut pending, "twice", "3");
    for number in 3..512 {
        assert_eq!(push(&mut pending, &number.to_string(), ""), 0);
    }
    assert_eq!(push(&mut pending, "new", "4"), 1);
    let messages: Vec<_> = pending.queue.items("b").map(|each| &each.event.message).collect();
    assert_eq!(messages[..2], ["1", "3"]);
    pending.changed_mark(change("first"), Mark::Set);
    assert_eq!(push(&mut pending, "newer", "5"), 0, "its mark announces it");
    assert_eq!(push(&mut pending, "newest", "6"), 1);
    assert_eq!((pending.len(), pending.objects.len()), (512, 512));
}

#[test]
fn namespace_with_the_most_loses_its_events_and_others_lose_none() {
    let now = Instant::now();
    let mut pending = Pending::new();
    push_event(&mut pending, event_in("victim", "a", "oldest"));
    let mut lost = 0;
    for number in 0..10_000 {
        lost += push_event(&mut pending, event_in("greedy", &number.to_string(), "greedy"));
    }
    push_event(&mut pending, event_in("victim", "b", "newest"));
    assert_eq!((pending.len(), lost), (512, 10_000 - 511));
    let order = acknowledge_all(&mut pending, now);
    assert_eq!(order.iter().filter(|message| *message != "greedy").count(), 2);
}

#[test]
fn waiting_events_are_bounded_in_bytes() {
    let mut pending = Pending::new();
    push_event(&mut pending, event_in("victim", "a", "small"));
    for number in 0..1000 {
        let large = "x".repeat(256 << 10);
        push_event(&mut pending, event_in("greedy", &number.to_string(), &large));
    }
    assert!((20..40).contains(&pending.len()), "{}", pending.len());
    assert!(pending.has(&event_in("victim", "a", "").involved_object));
}

#[test]
fn event_of_a_marked_object_keeps_the_mark_until_it_is_acknowledged() {
    let mut pending = Pending::new();
    let resource = ApiResource::erase::<ConfigMap>(&());
    pending.push(event("a", "a1"), resource, true);
    pending.set_reach(Reach::Outage);
    assert_eq!(marked(&mut pending, false), [""; 0]);
    assert_eq!(acknowledge_all(&mut pending, Instant::now()), ["a1"]);
    assert_eq!(removed_marks(&mut pending), ["a"]);
}
