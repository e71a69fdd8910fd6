use super::*;

fn event() -> Event {
    serde_json::from_value(json!({
        "involvedObject": {"apiVersion": "g/v1", "kind": "K", "namespace": "ns", "name": "n"},
    }))
    .unwrap()
}

fn alert(version: &str, annotations: &serde_json::Value) -> Alert {
    serde_json::from_value(json!({
        "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Alert",
        "metadata": {"name": "a", "uid": "u", "resourceVersion": version, "annotations": annotations},
        "spec": {"providerRef": {"name": "p"}, "eventSources": []},
    }))
    .unwrap()
}

#[test]
fn failures_count_up_to_the_threshold() {
    let (mut past, mut seen) = (None, Vec::new());
    for tag in 0..4 {
        let (failure, state) = after_failure(past.as_ref(), 3, &event(), tag);
        seen.push((failure, state.is_some()));
        past = state.or(past);
    }
    assert_eq!(
        seen,
        [
            (Failure::Below, true),
            (Failure::Below, true),
            (Failure::Reached, true),
            (Failure::Beyond, false)
        ]
    );
    // An event that is received again after a restart is not counted again, but sent again.
    for (tag, expected) in [(0, Failure::Below), (1, Failure::Below), (2, Failure::Reached)] {
        assert_eq!(after_failure(past.as_ref(), 3, &event(), tag), (expected, None));
    }
    assert_eq!(past.unwrap().failures, 3);
    let (failure, state) = after_failure(None, 1, &event(), 1);
    assert!(failure.is_sent(true));
    assert!(!after_failure(state.as_ref(), 1, &event(), 2).0.is_sent(true));
}

#[test]
fn a_change_counts_until_the_watch_shows_it() {
    let key = id(&alert("1", &json!({})), &event());
    let failing = after_failure(None, 3, &event(), 1).1.unwrap();
    let shown = |failures: u32| {
        let state = Failing {
            failures,
            ..failing.clone()
        };
        json!({key.1.clone(): serde_json::to_string(&state).unwrap()})
    };
    let mut changes = HashMap::new();
    let count = |changes: &mut HashMap<Id, Change>, version: &str, failures: u32| {
        let alert = alert(version, &shown(failures));
        current(changes, &alert, &key).map(|failing| failing.failures)
    };
    assert_eq!(count(&mut changes, "5", 2), Some(2));
    for (written, version, expected, left) in [
        (None, "9", None, 1),
        (Some(7), "6", None, 1),
        (Some(7), "7", Some(2), 0),
        (Some(7), "10", Some(2), 0),
    ] {
        let change = Change {
            state: None,
            writing: written.is_none(),
            written,
            tickets: Vec::new(),
        };
        changes.insert(key.clone(), change);
        assert_eq!(count(&mut changes, version, 2), expected, "{written:?} {version}");
        assert_eq!(changes.len(), left);
    }
    // Annotations that others wrote are not trusted.
    let forged = alert("1", &json!({key.1.clone(): "[{}"}));
    assert_eq!(current(&mut HashMap::new(), &forged, &key), None);
}

async fn ticket() -> Arc<Ticket> {
    let (journal, _) =
        crate::journal::Journal::open(None, prometheus::IntGauge::new("pending", "-").unwrap()).unwrap();
    let entry = crate::journal::Entry {
        at: 0,
        key: String::new(),
        event: Event::default(),
    };
    Arc::new(journal.add(&entry).await.unwrap())
}

#[tokio::test]
async fn failures_of_too_many_objects_are_sent_and_old_ones_are_evicted() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    let failures = Arc::new(Failures::new(Client::try_from(config).unwrap()));
    let ticket = ticket().await;
    let full = |oldest: &str| {
        let state = |since: &str| json!({"object": "K/ns/o", "failures": 1, "since": since}).to_string();
        let now = runtime::now().0.to_string();
        let mut all: serde_json::Map<_, _> = (1..OBJECTS)
            .map(|number| (format!("{PREFIX}{number}"), state(&now).into()))
            .collect();
        all.insert(format!("{PREFIX}0"), state(oldest).into());
        alert("1", &all.into())
    };
    let now = runtime::now().0.to_string();
    let failure = failures.fail(&full(&now), &event(), 3, &ticket);
    assert_eq!(failure, Failure::Unknown);
    assert!(failure.is_sent(false) && !failure.is_sent(true));
    assert!(failures.changes.lock().is_empty());
    // An object that has failed for longer than a month is evicted.
    let old = full("2020-01-01T00:00:00Z");
    assert_eq!(failures.fail(&old, &event(), 3, &ticket), Failure::Below);
    let states: Vec<_> = failures
        .changes
        .lock()
        .values()
        .map(|change| change.state.is_some())
        .collect();
    assert_eq!(states.iter().filter(|is_failing| **is_failing).count(), 1);
    assert_eq!(states.len(), 2, "one is remembered, one is removed");
}

#[test]
fn objects_have_annotations_of_their_own_with_valid_names() {
    let mut other = event();
    other.involved_object.api_version = Some("h/v1".into());
    let alert = alert("1", &json!({}));
    let (one, two) = (id(&alert, &event()).1, id(&alert, &other).1);
    assert_ne!(one, two);
    assert_eq!(one.strip_prefix(PREFIX).unwrap().len(), 32);
}
