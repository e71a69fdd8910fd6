//! Small repairs of manifests before they are applied.
//!
//! Server-side apply needs `protocol` in ports (it is a key of the list), and quantities as strings.

use yaml::Value;

/// Returns the object as it is sent to the API server.
#[must_use]
pub fn apply(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(spec) = object.get_mut("spec") {
        add_protocols(spec.get_mut("ports"));
        let limits = spec.get_mut("limits").and_then(Value::as_seq_mut);
        for limit in limits.into_iter().flatten() {
            for field in ["default", "defaultRequest"] {
                cpu_as_text(limit.get_mut(field));
            }
        }
    }
    let containers = object
        .pointer_mut(&["spec", "template", "spec", "containers"])
        .and_then(Value::as_seq_mut);
    for container in containers.into_iter().flatten() {
        add_protocols(container.get_mut("ports"));
        for field in ["limits", "requests"] {
            cpu_as_text(container.pointer_mut(&["resources", field]));
        }
    }
    object
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
            apply(&object),
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
        assert_eq!(apply(&other), other);
    }
}
