//! Message templates: a Jinja2 template over the event, bounded in time, steps and memory. It reads no files, and has neither the
//! time nor randomness.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use api::{Event, notification::Alert};
use jinja::{Renderer, Vars};
use kube::ResourceExt as _;
use limits::compute;
use serde_json::json;
use tree::{Budget, Exceeded, Limits, Mem};
use yaml::Map;

/// Maximum length of a template, in bytes.
pub(crate) const LONGEST: usize = 16 * 1024;
/// Maximum length of a rendered message, in bytes.
const MESSAGE: usize = 32 * 1024;
const STEPS: u64 = 200_000;
/// Maximum number of bytes that a template may allocate.
const BYTES: u64 = 4 << 20;
const TIME: Duration = Duration::from_secs(2);

/// Error of a template for an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateError {
    /// The template is invalid, fails for the event, or exceeds a limit.
    #[error("annotation weir.io/message-template: {0}")]
    Failed(String),
    #[error("annotation weir.io/message-template: the message is longer than {MESSAGE} bytes")]
    TooLong,
    /// The message is empty.
    #[error("annotation weir.io/message-template: the message is empty")]
    Empty,
    /// No thread, no stack or no memory is available.
    #[error("the template of the message can't be rendered now")]
    Busy,
}

/// Renders the message of an event for an Alert.
/// Fails when the template is invalid, fails, or exceeds a limit, and when the message is empty or too long.
pub(crate) async fn render(text: &str, alert: &Alert, event: &Event) -> Result<String, TemplateError> {
    let (namespace, name) = (alert.namespace().unwrap_or_default(), alert.name_any());
    let (text, owner, event) = (text.to_owned(), namespace.clone(), event.clone());
    let rendering = compute(&namespace, move |cancelled| {
        render_now(&text, &owner, &variables(&owner, &name, &event), cancelled)
    });
    let rendered = rendering.await.unwrap_or(Err(TemplateError::Busy))?;
    let message = rendered.trim_end();
    match message.len() {
        0 => Err(TemplateError::Empty),
        1..=MESSAGE => Ok(message.to_owned()),
        _ => Err(TemplateError::TooLong),
    }
}

/// Returns the reason if a template of an Alert in `namespace` can't be used for any event.
pub(crate) async fn mistake(namespace: &str, text: &str) -> Option<String> {
    if text.len() > LONGEST {
        return Some(format!("it is longer than {LONGEST} bytes"));
    }
    let text = text.to_owned();
    let owner = namespace.to_owned();
    let found = compute(namespace, move |cancelled| syntax_error(&text, &owner, cancelled));
    found.await.flatten()
}

pub(crate) fn syntax_error(text: &str, namespace: &str, cancelled: &Arc<AtomicBool>) -> Option<String> {
    // Events of other objects may have fields that this one lacks: only syntax errors count.
    match run(
        text,
        namespace,
        &variables("namespace", "name", &Event::default()),
        cancelled,
    ) {
        Ok(Err(jinja::Error::Template(failure))) if failure.syntax => {
            Some(one_line(&jinja::Error::Template(failure)))
        }
        _ => None,
    }
}

fn variables(namespace: &str, name: &str, event: &Event) -> Vars {
    let vars = json!({"event": event, "alert": {"namespace": namespace, "name": name}});
    match vars {
        serde_json::Value::Object(vars) => Vars::new(&Map::from_json(vars)),
        _ => Vars::default(),
    }
}

fn render_now(
    text: &str,
    namespace: &str,
    vars: &Vars,
    cancelled: &Arc<AtomicBool>,
) -> Result<String, TemplateError> {
    match run(text, namespace, vars, cancelled) {
        Ok(Err(jinja::Error::Budget {
            source: Exceeded::Busy,
            ..
        })) => Err(TemplateError::Busy),
        Ok(rendered) => rendered.map_err(|error| TemplateError::Failed(one_line(&error))),
        Err(_) => Err(TemplateError::Busy),
    }
}

fn run(
    text: &str,
    namespace: &str,
    vars: &Vars,
    cancelled: &Arc<AtomicBool>,
) -> std::io::Result<Result<String, jinja::Error>> {
    let limits = Limits {
        steps: STEPS,
        bytes: BYTES,
        include_depth: 4,
        ..Limits::default()
    };
    let budget = Budget::new(limits)
        .with_timeout(TIME)
        .with_cancellation(Arc::clone(cancelled));
    let budget = limits::from_process_memory(budget, namespace);
    tree::on_deep_stack(|| {
        let mut renderer = Renderer::new(Arc::new(Mem::default()), &[], vars);
        renderer.render_str(text, &budget)
    })
}

fn one_line(error: &jinja::Error) -> String {
    let text = error.to_string();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    runtime::bounded_text(&words).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> Event {
        serde_json::from_value(json!({
            "involvedObject": {"kind": "GitRepository", "namespace": "ns", "name": "shop"},
            "severity": "error", "message": "it failed", "reason": "Failed", "metadata": {"revision": "main@sha1:1"},
        }))
        .unwrap()
    }

    async fn rendered(text: &str) -> Result<String, TemplateError> {
        let alert = serde_json::from_value(json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Alert",
            "metadata": {"name": "a", "namespace": "ns"},
            "spec": {"providerRef": {"name": "p"}, "eventSources": []},
        }));
        render(text, &alert.unwrap(), &event()).await
    }

    #[tokio::test]
    async fn template_sees_event_and_alert() {
        let text = "{{ alert.name }}: {{ event.involvedObject.name | upper }} {{ event.message }} \
                    {{ event.metadata.revision }} {{ event.metadata.team | default('nobody') }}\n";
        let message = rendered(text).await.unwrap();
        assert_eq!(message, "a: SHOP it failed main@sha1:1 nobody");
        assert_eq!(rendered("plain").await.unwrap(), "plain");
        // The example of the documentation.
        let text = "{{ event.involvedObject.kind }} {{ event.involvedObject.name }}: {{ event.message }}\n\
                    {%- if event.severity == \"error\" %}\n\
                    Ask {{ event.metadata.team | default(\"the platform team\") }}.\n\
                    {%- endif %}\n";
        let message = rendered(text).await.unwrap();
        assert_eq!(message, "GitRepository shop: it failed\nAsk the platform team.");
    }

    #[tokio::test]
    async fn bombs_end_with_the_budget() {
        for text in [
            "{% for i in range(1000000000) %}x{% endfor %}",
            "{{ 'x' * 1000000000 }}",
            // Only the small budget ends these.
            "{% for i in range(300000) %}{% endfor %}",
            "{{ ('x' * 8000000) | length }}",
            "{{ 10 ** (10 ** 10) }}",
            "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
            "{% set ns = namespace(x='x') %}{% for i in range(64) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
        ] {
            let error = rendered(text).await.unwrap_err();
            assert!(matches!(error, TemplateError::Failed(_)), "{text}: {error:?}");
            assert_eq!(mistake("ns", text).await, None, "{text}");
        }
    }

    #[tokio::test]
    async fn files_time_and_randomness_are_out_of_reach() {
        for text in [
            "{% include '/etc/passwd' %}",
            "{{ time.now() }}",
            "{{ [1, 2] | random }}",
            "{{ load_template('x') }}",
        ] {
            let error = rendered(text).await.unwrap_err();
            assert!(matches!(error, TemplateError::Failed(_)), "{text}: {error:?}");
        }
    }

    #[tokio::test]
    async fn empty_and_long_messages_are_refused() {
        assert_eq!(rendered("{{ '' }} \n").await, Err(TemplateError::Empty));
        assert_eq!(rendered("{{ 'x' * 40000 }}").await, Err(TemplateError::TooLong));
    }

    #[tokio::test]
    async fn mistakes_of_syntax_are_found_without_an_event() {
        let found = async |text: &str| mistake("ns", text).await.is_some();
        assert!(!found("{{ event.metadata.team }}").await);
        assert!(found("{{ event.message").await);
        assert!(found("{% if %}").await);
        assert!(found(&"x".repeat(LONGEST + 1)).await);
    }

    #[tokio::test]
    async fn templates_never_run_on_the_thread_that_asks() {
        // The only async thread goes on while the template runs: the check of a template without an end is pending at first.
        let text = "{% for i in range(300000) %}{% endfor %}";
        let mut checked = Box::pin(mistake("ns", text));
        for _ in 0..2 {
            assert!(futures::FutureExt::now_or_never(&mut checked).is_none());
        }
        assert_eq!(checked.await, None);
    }

    #[test]
    fn cancelled_templates_end_at_once() {
        let cancelled = Arc::new(AtomicBool::new(true));
        let vars = variables("ns", "a", &event());
        let error = render_now(
            "{% for i in range(100000) %}{% endfor %}",
            "ns",
            &vars,
            &cancelled,
        );
        assert!(matches!(error, Err(TemplateError::Failed(_))), "{error:?}");
    }
}
