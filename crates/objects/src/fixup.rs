//! Small repairs of manifests before they are applied.
//!
//! Server-side apply needs `protocol` in ports (it is a key of the list), and quantities as strings.

use yaml::Value;

use crate::split_api_version;

const TEMPLATE: &[&str] = &["spec", "template", "spec", "containers"];

/// The kinds whose objects are repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RepairedKinds {
    /// All kinds, by the names of their fields.
    #[default]
    Any,
    /// Kinds of Kubernetes itself: fields of these names may mean something else in others.
    BuiltIn,
}

/// Returns the object as it is sent to the API server.
#[must_use]
pub fn apply(object: &Value, kinds: RepairedKinds) -> Value {
    let mut object = object.clone();
    match kinds {
        RepairedKinds::Any => {
            repair_ports(&mut object);
            repair_limits(&mut object);
            repair_containers(&mut object, TEMPLATE);
        }
        RepairedKinds::BuiltIn => repair_built_in(&mut object),
    }
    object
}

fn repair_built_in(object: &mut Value) {
    let field = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (group, _) = split_api_version(field("apiVersion"));
    match (group, field("kind")) {
        ("", "Service") => repair_ports(object),
        ("", "LimitRange") => repair_limits(object),
        ("", "Pod") => repair_containers(object, &["spec", "containers"]),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") => {
            repair_containers(object, TEMPLATE);
        }
        ("batch", "CronJob") => {
            let path = ["spec", "jobTemplate", "spec", "template", "spec", "containers"];
            repair_containers(object, &path);
        }
        _ => {}
    }
}

fn repair_ports(object: &mut Value) {
    add_protocols(object.pointer_mut(&["spec", "ports"]));
}

fn repair_limits(object: &mut Value) {
    let limits = object
        .pointer_mut(&["spec", "limits"])
        .and_then(Value::as_seq_mut);
    for limit in limits.into_iter().flatten() {
        for field in ["default", "defaultRequest"] {
            cpu_as_text(limit.get_mut(field));
        }
    }
}

fn repair_containers(object: &mut Value, path: &[&str]) {
    let containers = object.pointer_mut(path).and_then(Value::as_seq_mut);
    for container in containers.into_iter().flatten() {
        add_protocols(container.get_mut("ports"));
        for field in ["limits", "requests"] {
            cpu_as_text(container.pointer_mut(&["resources", field]));
        }
    }
}

fn add_protocols(ports: Option<&mut Value>) {
    for port in ports.and_then(Value::as_seq_mut).into_iter().flatten() {
        if let Some(port) = port.as_map_mut()
            && !port.contains_key("protocol")
        {
            port.insert("protocol", "TCP");
        }
    }
}

fn cpu_as_text(resources: Option<&mut Value>) {
    let Some(cpu) = resources.and_then(|resources| resources.get_mut("cpu")) else {
        return;
    };
    let text = match cpu {
        Value::Int(cpu) => cpu.to_string(),
        Value::UInt(cpu) => cpu.to_string(),
        Value::Float(cpu) => cpu.to_string(),
        _ => return,
    };
    *cpu = Value::String(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn apply_repairs_ports_and_quantities() {
        let object = Value::from_json(json!({"spec": {
            "ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}],
            "limits": [{"default": {"cpu": 0.5}, "defaultRequest": {"cpu": "1"}}],
            "template": {"spec": {"containers": [
                {"ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": 2}, "requests": {"memory": "1Gi"}}}
            ]}},
        }}));
        assert_eq!(
            apply(&object, RepairedKinds::Any),
            Value::from_json(json!({"spec": {
                "ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
                "limits": [{"default": {"cpu": "0.5"}, "defaultRequest": {"cpu": "1"}}],
                "template": {"spec": {"containers": [{
                    "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "resources": {"limits": {"cpu": "2"}, "requests": {"memory": "1Gi"}},
                }]}},
            }}))
        );
        let other = Value::from_json(json!({"spec": "text", "data": {"ports": []}}));
        assert_eq!(apply(&other, RepairedKinds::Any), other);
    }

    #[test]
    fn objects_of_other_kinds_than_built_in_ones_stay_as_they_are() {
        let ports = |path: &str, api_version: &str, kind: &str| {
            let mut object = json!({ "apiVersion": api_version, "kind": kind });
            let containers =
                json!([{ "ports": [{ "containerPort": 80 }], "resources": { "limits": { "cpu": 2 } } }]);
            object["spec"] = match path {
                "ports" => json!({ "ports": [{ "port": 80 }] }),
                "containers" => json!({ "containers": containers, "initContainers": containers }),
                "template" => json!({ "template": { "spec": { "containers": containers } } }),
                _ => {
                    json!({ "jobTemplate": { "spec": { "template": { "spec": { "containers": containers } } } } })
                }
            };
            let object = Value::from_json(object);
            let text = apply(&object, RepairedKinds::BuiltIn).to_json().to_string();
            (text.matches("TCP").count(), text.matches("\"cpu\":\"2\"").count())
        };
        for (path, api_version, kind, repaired) in [
            ("ports", "v1", "Service", (1, 0)),
            ("ports", "networking.istio.io/v1", "ServiceEntry", (0, 0)),
            ("ports", "serving.knative.dev/v1", "Service", (0, 0)),
            ("containers", "v1", "Pod", (1, 1)),
            ("template", "apps/v1", "Deployment", (1, 1)),
            ("template", "apps/v1", "StatefulSet", (1, 1)),
            ("template", "apps/v1", "DaemonSet", (1, 1)),
            ("template", "apps/v1", "ReplicaSet", (1, 1)),
            ("template", "batch/v1", "Job", (1, 1)),
            ("jobTemplate", "batch/v1", "CronJob", (1, 1)),
            ("template", "argoproj.io/v1alpha1", "Rollout", (0, 0)),
            ("template", "example.com/v1", "Deployment", (0, 0)),
        ] {
            assert_eq!(ports(path, api_version, kind), repaired, "{api_version} {kind}");
        }
        let limits = Value::from_json(json!({
            "apiVersion": "v1", "kind": "LimitRange", "spec": { "limits": [{ "default": { "cpu": 0.5 } }] },
        }));
        let repaired = apply(&limits, RepairedKinds::BuiltIn).to_json();
        assert_eq!(repaired["spec"]["limits"][0]["default"]["cpu"], "0.5");
    }
}
