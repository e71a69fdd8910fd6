//! The log: one JSON object a line with the keys of Flux's tools (`level`, `ts`, `logger`, `msg`, then fields).
//!
//! Only the project's own crates log at the chosen level; foreign ones are limited to warnings, so that no library writes a URL or a header
//! of a request into the log.

use std::{fmt, io::IsTerminal};

use serde_json::{Map, Value};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
};
use tracing_subscriber::{
    Layer,
    filter::Targets,
    fmt::{
        FmtContext, FormattedFields,
        format::{FormatEvent, FormatFields, JsonFields, Writer},
    },
    layer::SubscriberExt,
    registry::LookupSpan,
    util::SubscriberInitExt,
};

use crate::flags::{LogEncoding, LogLevel};

/// The crates of this project, which log at the chosen level, as the program does. Controllers are among them, because their names (in
/// events, as field managers) need not be their crates'.
const OWN: &[&str] = &[
    "api",
    "apply",
    "artifact",
    "bucket",
    "cel",
    "cloud",
    "cluster",
    "deployer",
    "engine",
    "git",
    "go",
    "helm",
    "jinja",
    "kluctl",
    "kluctl_controller",
    "kustomize",
    "kustomize_controller",
    "limits",
    "net",
    "notification_controller",
    "objects",
    "oci",
    "overrides",
    "remote",
    "results",
    "runtime",
    "secrets",
    "source_controller",
    "stores",
    "tree",
    "versions",
    "yaml",
];

/// Installs the log of the process for the program `name`. A second call has no effect.
pub fn init(name: &str, level: LogLevel, encoding: LogEncoding) {
    let filter = targets(name, level);
    let installed = match encoding {
        LogEncoding::Json => tracing_subscriber::registry()
            .with(
                tracing_subscriber::fmt::layer()
                    .fmt_fields(JsonFields::new())
                    .event_format(JsonLines)
                    .with_writer(std::io::stderr)
                    .with_filter(filter),
            )
            .try_init(),
        LogEncoding::Console => tracing_subscriber::registry()
            .with(
                tracing_subscriber::fmt::layer()
                    .with_ansi(std::io::stderr().is_terminal())
                    .with_writer(std::io::stderr)
                    .with_filter(filter),
            )
            .try_init(),
    };
    if installed.is_err() {
        tracing::debug!("the log was installed before");
    }
}

fn targets(name: &str, level: LogLevel) -> Targets {
    let own = match level {
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Error => LevelFilter::ERROR,
    };
    let foreign = if level == LogLevel::Error {
        LevelFilter::ERROR
    } else {
        LevelFilter::WARN
    };
    Targets::new()
        .with_default(foreign)
        // These log every failed or repeated request; callers log the failures that matter.
        .with_target("kube_client", LevelFilter::OFF)
        .with_target("hyper", LevelFilter::OFF)
        .with_target("reqwest", LevelFilter::OFF)
        .with_targets(OWN.iter().map(|target| (*target, own)))
        .with_target(name.replace('-', "_"), own)
}

struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields(Map::new());
        if let Some(scope) = ctx.event_scope() {
            for span in scope.from_root() {
                if let Some(text) = span.extensions().get::<FormattedFields<N>>()
                    && let Ok(Value::Object(map)) = serde_json::from_str(text)
                {
                    fields.0.extend(map);
                }
            }
        }
        event.record(&mut fields);
        let message = fields
            .0
            .shift_remove("message")
            .unwrap_or_else(|| Value::String(String::new()));
        let now = jiff::Timestamp::now();
        let mut line = Map::new();
        line.insert("level".into(), level(*event.metadata().level()).into());
        line.insert(
            "ts".into(),
            jiff::fmt::temporal::DateTimePrinter::new()
                .precision(Some(3))
                .timestamp_to_string(&now)
                .into(),
        );
        line.insert("logger".into(), event.metadata().target().into());
        line.insert("msg".into(), message);
        line.extend(fields.0);
        writeln!(writer, "{}", Value::Object(line))
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN | Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0
            .insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.0.insert(field.name().to_owned(), value.to_string().into());
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        sync::{Arc, Mutex},
    };

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(level: LogLevel, work: impl FnOnce()) -> Vec<Value> {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber = tracing_subscriber::registry().with(
            tracing_subscriber::fmt::layer()
                .fmt_fields(JsonFields::new())
                .event_format(JsonLines)
                .with_writer(move || writer.clone())
                .with_filter(targets("own-program", level)),
        );
        tracing::subscriber::with_default(subscriber, work);
        let bytes = buffer.0.lock().unwrap().clone();
        String::from_utf8(bytes)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn json_line_has_the_keys_of_flux_and_the_fields_of_its_spans() {
        let lines = logged(LogLevel::Info, || {
            let span = tracing::error_span!("pass", kind = "GitRepository", name = "app", namespace = "team");
            let _entered = span.enter();
            tracing::warn!(error = "no such \"host\"", count = 3, "cannot fetch");
        });
        let line = &lines[0];
        let keys: Vec<_> = line.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "level",
                "ts",
                "logger",
                "msg",
                "kind",
                "name",
                "namespace",
                "error",
                "count"
            ]
        );
        assert_eq!(line["level"], "info");
        assert_eq!(line["msg"], "cannot fetch");
        assert_eq!(line["error"], "no such \"host\"");
        assert_eq!(line["count"], 3);
        assert!(line["ts"].as_str().unwrap().ends_with('Z'));
    }

    #[test]
    fn all_crates_of_this_project_that_log_are_known() {
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut logging = 0;
        for entry in std::fs::read_dir(crates).unwrap() {
            let entry = entry.unwrap();
            let manifest = std::fs::read_to_string(entry.path().join("Cargo.toml")).unwrap_or_default();
            if manifest.lines().any(|line| line == "tracing.workspace = true") {
                let name = entry.file_name().to_string_lossy().replace('-', "_");
                // Programs don't link it.
                assert!(OWN.contains(&name.as_str()) || name == "testkit", "{name}");
                logging += 1;
            }
        }
        assert!(logging > 5, "{logging}");
    }

    #[test]
    fn foreign_crates_log_only_warnings_at_trace() {
        let lines = logged(LogLevel::Trace, || {
            tracing::info!(target: "h2::client", "chatter");
            tracing::error!(target: "kube_client::client", "failed with status 500");
            tracing::trace!(target: "git::session", "own");
            tracing::trace!(target: "own_program", "the program's");
            tracing::warn!(target: "kube_runtime::watcher", "watch lost");
        });
        let messages: Vec<_> = lines.iter().map(|line| line["msg"].as_str().unwrap()).collect();
        assert_eq!(messages, ["own", "the program's", "watch lost"]);
    }
}
