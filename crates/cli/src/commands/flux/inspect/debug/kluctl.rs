//! The arguments and results of KluctlDeployments. Pure.

use yaml::{Map, Value};

use super::read;

/// Words in the names of arguments whose values are hidden.
const SECRET_WORDS: [&str; 6] = ["password", "passwd", "secret", "token", "credential", "key"];
const HIDDEN: &str = "*****";

/// Fields of the spec that choose the deployed objects.
const CHOICES: [&str; 5] = ["target", "targetNameOverride", "context", "args", "images"];

/// Results in the status of either kind, with their commands.
const RESULTS: [(&str, &str); 5] = [
    ("lastDeployResult", "deploy"),
    ("lastPruneResult", "prune"),
    ("lastDiffResult", "diff"),
    ("lastValidateResult", "validate"),
    ("lastDriftDetectionResult", "detect drift"),
];

/// Returns the target, arguments and images of the spec and of the last deployment. Secret arguments are hidden unless
/// `shows_secrets` is true.
pub(super) fn arguments(object: &Value, shows_secrets: bool) -> Value {
    let mut shown = chosen(object.get("spec"), shows_secrets);
    let deployed = object.pointer(&["status", "lastDeployResult", "commandInfo"]);
    let deployed = chosen(deployed, shows_secrets);
    if !deployed.is_empty() {
        shown.insert("lastDeployment", deployed);
    }
    Value::Map(shown)
}

fn chosen(of: Option<&Value>, shows_secrets: bool) -> Map {
    let mut chosen = Map::new();
    for name in CHOICES {
        let value = of.and_then(|of| of.get(name));
        if let Some(value) = value.filter(|value| **value != Value::Null) {
            let is_hidden = name == "args" && !shows_secrets;
            let value = if is_hidden { hidden(value) } else { value.clone() };
            chosen.insert(name, value);
        }
    }
    chosen
}

/// Hides the values whose names say that they are secret, at any depth.
fn hidden(value: &Value) -> Value {
    if let Some(map) = value.as_map() {
        let mut shown = Map::new();
        for (name, value) in map.iter() {
            let lower = name.to_ascii_lowercase();
            let is_secret = SECRET_WORDS.iter().any(|word| lower.contains(word));
            let value = if is_secret {
                Value::from(HIDDEN)
            } else {
                hidden(value)
            };
            shown.insert(name, value);
        }
        return Value::Map(shown);
    }
    match value.as_seq() {
        Some(items) => Value::Seq(items.iter().map(hidden).collect()),
        None => value.clone(),
    }
}

/// Returns the results in the status, the newest first: the command, its times, and its errors.
pub(super) fn history(object: &Value) -> Value {
    let mut results: Vec<(String, Value)> = Vec::new();
    for (field, command) in RESULTS {
        let Some(result) = object
            .pointer(&["status", field])
            .filter(|result| result.as_map().is_some())
        else {
            continue;
        };
        let mut shown = Map::from([("command", Value::from(command))]);
        let info = result.get("commandInfo");
        let stored = info.and_then(|info| info.get("command"));
        if let Some(stored) = stored.filter(|stored| stored.as_str().is_some()) {
            shown.insert("command", stored.clone());
        }
        for name in [
            "startTime",
            "endTime",
            "time",
            "revision",
            "targetName",
            "ready",
            "error",
        ] {
            let value = result.get(name).or_else(|| info.and_then(|info| info.get(name)));
            if let Some(value) = value.filter(|value| **value != Value::Null) {
                shown.insert(name, value.clone());
            }
        }
        let errors = result.get("errors").and_then(Value::as_seq).unwrap_or_default();
        if !errors.is_empty() {
            shown.insert("errors", Value::Seq(errors.to_vec()));
        }
        let shown = Value::Map(shown);
        let time = match read::text(&shown, &["endTime"]) {
            "" => read::text(&shown, &["time"]),
            time => time,
        };
        results.push((time.to_owned(), shown));
    }
    results.sort_by(|(a, _), (b, _)| b.cmp(a));
    Value::Seq(results.into_iter().map(|(_, shown)| shown).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secret_arguments_are_hidden_unless_asked_for() {
        let args = json!({"env": "prod", "db": {"dbPassword": "x", "host": "h"}, "list": [{"token": "y"}]});
        let object = Value::from_json(json!({
            "spec": {"target": "prod", "interval": "1m", "args": args},
            "status": {"lastDeployResult": {"commandInfo": {"target": "prod", "args": {"env": "old"}}}},
        }));
        let hidden =
            json!({"env": "prod", "db": {"dbPassword": HIDDEN, "host": "h"}, "list": [{"token": HIDDEN}]});
        let last = json!({"target": "prod", "args": {"env": "old"}});
        assert_eq!(
            arguments(&object, false).to_json(),
            json!({"target": "prod", "args": hidden, "lastDeployment": last})
        );
        assert_eq!(
            arguments(&object, true).to_json(),
            json!({"target": "prod", "args": args, "lastDeployment": last})
        );
        assert_eq!(
            arguments(&Value::from_json(json!({})), false).to_json(),
            json!({})
        );
    }

    #[test]
    fn results_of_both_kinds_are_in_the_order_of_time() {
        let of_gitops = Value::from_json(json!({"status": {
            "lastDeployResult": {
                "id": "1", "commandInfo": {"command": "poke-images", "endTime": "2026-01-01T00:00:00Z"}, "errors": [{"message": "no"}],
            },
            "lastValidateResult": {"endTime": "2026-01-02T00:00:00Z", "ready": false, "results": [{}]},
        }}));
        assert_eq!(
            history(&of_gitops).to_json(),
            json!([
                {"command": "validate", "endTime": "2026-01-02T00:00:00Z", "ready": false},
                {"command": "poke-images", "endTime": "2026-01-01T00:00:00Z", "errors": [{"message": "no"}]},
            ])
        );
        let of_flux = Value::from_json(
            json!({"status": {"lastDeployResult": {"time": "t", "revision": "r", "rawResult": "{}"}}}),
        );
        assert_eq!(
            history(&of_flux).to_json(),
            json!([{"command": "deploy", "time": "t", "revision": "r"}])
        );
    }
}
