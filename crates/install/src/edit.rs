//! Changes of single objects.

use yaml::{Map, Value};

use crate::{NAMESPACE, Options};

const TEMPLATE: &[&str] = &["spec", "template"];

pub(crate) fn is_kind(kind: &str) -> impl Fn(&Value) -> bool {
    move |object| object.get("kind").and_then(Value::as_str) == Some(kind)
}

pub(crate) fn set_label(object: &mut Value, name: &str, value: &str) {
    let metadata = object
        .as_map_mut()
        .and_then(|map| map.get_or_insert_map("metadata"));
    if let Some(labels) = metadata.and_then(|metadata| metadata.get_or_insert_map("labels")) {
        labels.insert(name, value);
    }
}

/// Sets a label of the Pods of a Deployment.
pub(crate) fn set_template_label(object: &mut Value, name: &str, value: &str) {
    if let Some(template) = object.pointer_mut(TEMPLATE) {
        set_label(template, name, value);
    }
}

/// Adapts a Deployment to the options.
pub(crate) fn adapt(object: &mut Value, options: &Options) {
    let name = object.pointer(&["metadata", "name"]).and_then(Value::as_str);
    let Some(name) = name.map(str::to_owned) else {
        return;
    };
    if !is_kind("Deployment")(object) {
        return;
    }
    let Some(pod) = object
        .pointer_mut(&["spec", "template", "spec"])
        .and_then(Value::as_map_mut)
    else {
        return;
    };
    if let Some(secret) = &options.image_pull_secret {
        let secret = Map::from([("name", secret.as_str())]);
        pod.insert("imagePullSecrets", Value::Seq(vec![secret.into()]));
    }
    if !options.toleration_keys.is_empty() {
        let tolerations = options
            .toleration_keys
            .iter()
            .map(|key| Map::from([("key", key.as_str()), ("operator", "Exists")]).into());
        pod.insert("tolerations", tolerations.collect::<Value>());
    }
    let containers = pod.get_mut("containers").and_then(Value::as_seq_mut);
    for container in containers.into_iter().flatten() {
        let Some(container) = container.as_map_mut() else {
            continue;
        };
        let image = format!("{}/{name}:{}", options.registry, options.version);
        container.insert("image", image);
        let args = container.get_mut("args").and_then(Value::as_seq_mut);
        for arg in args.into_iter().flatten() {
            if let Some(new) = arg.as_str().and_then(|arg| argument(arg, options)) {
                *arg = Value::from(new);
            }
        }
    }
}

/// Returns the new value of an argument, which stays where it is: patches of users name arguments by index.
fn argument(arg: &str, options: &Options) -> Option<String> {
    let (flag, value) = arg.split_once('=')?;
    match flag {
        "--events-addr" if !options.has("notification-controller") => Some(format!("{flag}=")),
        "--events-addr" | "--storage-adv-addr" => {
            let domain = format!(".svc.{}.", options.cluster_domain);
            Some(format!(
                "{flag}={}",
                value.replace(".svc.cluster.local.", &domain)
            ))
        }
        "--watch-all-namespaces" => Some(format!("{flag}={}", options.watch_all_namespaces)),
        "--log-level" => Some(format!("{flag}={}", options.log_level)),
        _ => None,
    }
}

/// Replaces the namespace, and the end of the names that have it there.
pub(crate) fn rename_namespace(value: &mut Value, namespace: &str) {
    match value {
        Value::String(text) => {
            if let Some(start) = text.strip_suffix(NAMESPACE)
                && (start.is_empty() || start.ends_with('-'))
            {
                *text = format!("{start}{namespace}");
            }
        }
        Value::Seq(items) => items
            .iter_mut()
            .for_each(|item| rename_namespace(item, namespace)),
        Value::Map(map) => map
            .values_mut()
            .for_each(|item| rename_namespace(item, namespace)),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) => {}
    }
}
