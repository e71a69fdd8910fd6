//! Strings of tenants at the limits of their lengths: no call takes unbounded time or memory, which the search measures for each case.

use std::sync::{Arc, atomic::AtomicBool};

use api::{
    Event,
    notification::{Alert, AlertSpec, Provider, ReceiverSpec},
};
use notification_specs::{
    provider::{self, Takes},
    receiver,
};
use serde_json::json;
use testkit::fuzz::{self, Random};

use crate::{
    alerts::expressions::{self, broken_expression},
    event::{self, Comparison},
    extensions,
    providers::{self, fixture, status_id},
    served::is_name,
    template,
};

const PATTERNS: &[&str] = &[
    "\\w",
    "\\pL",
    "[\\w\\pN]",
    "(?i)",
    "a?",
    "(a|aa)+",
    "{9}",
    "{0,99}",
    "(",
    ")",
    "[^a]",
    "a",
    ".*",
    "|",
    "\\b",
];
const TEMPLATES: &[&str] = &[
    "{{ event.message }}",
    "{% if a %}",
    "{% endif %}",
    "{% for i in range(999999) %}",
    "{% endfor %}",
    "{{ [",
    "(",
    ")",
    "'a'*9999",
    "|trim",
    "~",
    "}}",
    "{#",
    "{%",
    "x",
    "|upper",
    "-",
    "not ",
];
const CEL: &[&str] = &[
    "req.a.all(x, ",
    ")",
    "(",
    "[",
    "]",
    "'a'",
    ".matches(",
    " + ",
    "req.t",
    "!",
    "-",
    "&& ",
    "true",
    "{",
    "}",
    ":",
    ".replace('a', ",
    "x",
    ",",
    "9",
];

/// Returns a string of at most `most` bytes, and now and then one more: pieces that are repeated up to the limit.
fn long(random: &mut Random, pieces: &[&str], most: usize) -> String {
    let piece = random.text(pieces, 1..6);
    let full = most / piece.len().max(1);
    let count = *random.pick(&[1, 9, 100, full, full + 1]);
    piece.repeat(count.clamp(1, full + 1))
}

fn alert(text: &str, count: usize) -> Alert {
    let spec = AlertSpec {
        inclusion_list: vec![text.to_owned(); count],
        exclusion_list: vec![format!("{text}x"); count],
        ..AlertSpec::default()
    };
    Alert::new("a", spec)
}

fn event(message: String) -> Event {
    let mut event = fixture::event();
    event.message = message;
    event
}

#[test]
fn fuzz_expressions_of_alerts_at_the_limits() {
    fuzz::run("limits of alerts", |random| {
        let most = *random.pick(&[64 << 10, 1 << 10, 100]);
        let alert = alert(&long(random, PATTERNS, most), *random.pick(&[1, 10, 100]));
        random.note("expression", &alert.spec.inclusion_list[0]);
        let _ = broken_expression(&alert.spec);
        let _ = expressions::matches_once(&alert.spec, &"ab ".repeat(10_000));
    });
}

#[test]
fn fuzz_templates_at_the_limits() {
    let go_on = Arc::new(AtomicBool::new(false));
    fuzz::run("limits of templates", |random| {
        let text = long(random, TEMPLATES, template::LONGEST);
        random.note("template", &text);
        let _ = template::syntax_error(&text, "ns", &go_on);
    });
}

#[test]
fn fuzz_expressions_of_receivers_and_providers_at_the_limits() {
    let go_on = Arc::new(AtomicBool::new(false));
    fuzz::run("limits of receivers", |random| {
        let text = long(random, CEL, 16 << 10);
        random.note("expression", &text);
        let count = *random.pick(&[1, 10, 40]);
        let validations = vec![json!({"expression": text, "message": "m"}); count];
        let spec: ReceiverSpec = serde_json::from_value(json!({
            "type": "generic-oidc", "resourceFilter": text,
            "resources": vec![json!({"kind": text, "name": text, "filter": text}); count],
            "oidcProviders": [{"issuerURL": "https://i", "validations": validations}],
        }))
        .unwrap();
        let _ = receiver::check_expressions(&spec, &go_on);
        let provider: Provider = serde_json::from_value(json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Provider", "metadata": {"name": text},
            "spec": {"type": "github", "address": text, "commitStatusExpr": text},
        }))
        .unwrap();
        let _ = provider::check(&provider.spec);
        let _ = status_id::evaluate(&event("a".repeat(100_000)), &alert("a", 100), &provider);
        let _ = (is_name(&text), runtime::names::is_path_segment(&text));
    });
}

#[test]
fn fuzz_events_at_the_limits() {
    const PIECES: &[&str] = &[
        "1h",
        "2m",
        " ",
        "attempt 3",
        "<&>",
        "\n",
        "é",
        "\u{2028}",
        "\"",
        "a",
        "*",
        "_",
        "`",
    ];
    fuzz::run("limits of events", |random| {
        let mut event = event(long(random, PIECES, 100 << 10));
        for number in 0..*random.pick(&[0, 10, 2000]) {
            let key = format!("event.toolkit.fluxcd.io/{number}");
            event.metadata.insert(key, random.text(PIECES, 0..9));
        }
        random.note("message", &event.message);
        event::clean(&mut event);
        let _ = event::sameness(&event, None, Comparison::Lasting);
        let mut alert = alert("a", 1);
        alert.spec.summary = Some("s".repeat(100_000));
        alert.spec.event_metadata = event.metadata.clone();
        let combined = event::combine(&event, &alert.spec).event;
        for kind in random.list(3..4, |random| *random.pick(providers::ALL)) {
            let _ = (kind.steps)(&combined, &fixture::config());
        }
        let _ = extensions::problems(&alert, Some(Takes::All), None);
    });
}
