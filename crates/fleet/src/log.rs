//! Lines of the logs of controllers.

use serde::Deserialize;

/// A line that a controller logged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LogEntry {
    pub ts: String,
    pub level: String,
    pub msg: String,
    pub error: String,
    #[serde(rename = "reconciler kind")]
    reconciler_kind: String,
    #[serde(rename = "controllerKind")]
    controller_kind: String,
    pub name: String,
    pub namespace: String,
}

/// The entries that a command prints. Empty fields accept everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFilter {
    pub level: String,
    pub kind: String,
    pub name: String,
    /// `None` means all namespaces.
    pub namespace: Option<String>,
}

impl LogEntry {
    #[must_use]
    pub fn kind(&self) -> &str {
        match self.reconciler_kind.as_str() {
            "" => &self.controller_kind,
            kind => kind,
        }
    }

    /// Returns the line in the layout of the original: `TIME LEVEL Kind/name.namespace - MESSAGE ERROR`.
    #[must_use]
    pub fn line(&self) -> String {
        let Self {
            ts,
            level,
            msg,
            error,
            name,
            namespace,
            ..
        } = self;
        let kind = self.kind();
        match name.is_empty() {
            true => format!("{ts} {level} {kind} - {msg} {error}"),
            false => format!("{ts} {level} {kind}/{name}.{namespace} - {msg} {error}"),
        }
    }
}

impl LogFilter {
    #[must_use]
    pub fn accepts(&self, entry: &LogEntry) -> bool {
        let is = |wanted: &str, own: &str| wanted.is_empty() || wanted.eq_ignore_ascii_case(own);
        (self.level.is_empty() || self.level == entry.level)
            && (is(&self.kind, &entry.reconciler_kind) || is(&self.kind, &entry.controller_kind))
            && is(&self.name, &entry.name)
            && self
                .namespace
                .as_ref()
                .is_none_or(|namespace| namespace.eq_ignore_ascii_case(&entry.namespace))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_are_printed_and_filtered_as_by_the_original() {
        let entry = json!({
            "ts": "2026-01-01T00:00:00.000Z", "level": "error", "msg": "no", "error": "e", "controllerKind": "Kustomization", "name": "a",
            "namespace": "n", "logger": "x",
        });
        let entry: LogEntry = serde_json::from_value(entry).unwrap();
        assert_eq!(
            entry.line(),
            "2026-01-01T00:00:00.000Z error Kustomization/a.n - no e"
        );
        let filter = |level: &str, kind: &str, name: &str, namespace: Option<&str>| {
            let filter = LogFilter {
                level: level.to_owned(),
                kind: kind.to_owned(),
                name: name.to_owned(),
                namespace: namespace.map(str::to_owned),
            };
            filter.accepts(&entry)
        };
        assert!(filter("", "", "", None) && filter("error", "kustomization", "A", Some("n")));
        assert!(
            !filter("info", "", "", None)
                && !filter("", "HelmRelease", "", None)
                && !filter("", "", "", Some("m"))
        );
        let bare: LogEntry =
            serde_json::from_value(json!({"ts": "t", "level": "info", "msg": "started"})).unwrap();
        assert_eq!(bare.line(), "t info  - started ");
    }
}
