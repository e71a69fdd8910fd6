use api::Reason;
use serde_json::{Value, json};

use super::*;

fn object(change: impl FnOnce(&mut Value)) -> KluctlDeployment {
    let mut object = json!({
        "apiVersion": "flux.kluctl.io/v1alpha1",
        "kind": "KluctlDeployment",
        "metadata": { "name": "shop", "namespace": "apps" },
        "spec": { "interval": "5m", "sourceRef": { "kind": "GitRepository", "name": "shop" } },
    });
    change(&mut object["spec"]);
    serde_json::from_value(object).expect("decodes")
}

/// The supported fields. Every other one of the schema is refused.
const SUPPORTED: [&str; 69] = [
    "abortOnError",
    "args",
    "context",
    "decryption.provider",
    "decryption.secretRef.name",
    "decryption.serviceAccount",
    "delete",
    "dependsOn[].apiVersion",
    "dependsOn[].kind",
    "dependsOn[].name",
    "dependsOn[].namespace",
    "dependsOn[].ready",
    "dependsOn[].readyExpr",
    "deployInterval",
    "deployMode",
    "deployOnChanges",
    "dryRun",
    "excludeDeploymentDirs[]",
    "excludeTags[]",
    "forceApply",
    "forceReplaceOnError",
    "helmCredentials[].secretRef.name",
    "images[].container",
    "images[].deployTags[]",
    "images[].deployedImage",
    "images[].deployment",
    "images[].deploymentDir",
    "images[].image",
    "images[].namespace",
    "images[].object.group",
    "images[].object.id",
    "images[].object.kind",
    "images[].object.name",
    "images[].object.namespace",
    "images[].object.v",
    "images[].object.version",
    "images[].registryImage",
    "images[].resultImage",
    "images[].versionFilter",
    "includeDeploymentDirs[]",
    "includeTags[]",
    "interval",
    "kubeConfig.secretRef.key",
    "kubeConfig.secretRef.name",
    "noWait",
    "path",
    "prune",
    "registrySecrets[].name",
    "renameContexts[].newContext",
    "renameContexts[].oldContext",
    "replaceOnError",
    "retryInterval",
    "serviceAccountName",
    "source.path",
    "source.ref.branch",
    "source.ref.tag",
    "source.secretRef.name",
    "source.url",
    "sourceRef.apiVersion",
    "sourceRef.kind",
    "sourceRef.name",
    "sourceRef.namespace",
    "suspend",
    "target",
    "targetNameOverride",
    "timeout",
    "updateImages",
    "validate",
    "validateInterval",
];

/// A value that the schema accepts, and that is not the default.
fn sample(schema: &Value) -> Value {
    if let Some(choices) = schema["enum"].as_array() {
        return choices
            .iter()
            .find(|choice| **choice != schema["default"])
            .cloned()
            .expect("a choice");
    }
    match schema["type"].as_str() {
        Some("boolean") => json!(!schema["default"].as_bool().unwrap_or(false)),
        Some("integer") => json!(7),
        Some("string") => json!("https://example.com/x"),
        Some("array") => json!([sample(&schema["items"])]),
        _ => match schema["properties"].as_object() {
            Some(properties) => properties
                .iter()
                .map(|(name, schema)| (name.clone(), sample(schema)))
                .collect(),
            None => json!({ "a": 1 }),
        },
    }
}

/// Returns the paths of the fields that have no fields of their own, as in `images[].object.kind`.
fn leaves(schema: &Value, path: &str) -> Vec<String> {
    if let Some(properties) = schema["properties"].as_object() {
        let dot = if path.is_empty() { "" } else { "." };
        let below = properties
            .iter()
            .flat_map(|(name, schema)| leaves(schema, &format!("{path}{dot}{name}")));
        return below.collect();
    }
    match schema["items"].is_object() {
        true => leaves(&schema["items"], &format!("{path}[]")),
        false => vec![path.to_owned()],
    }
}

/// Returns a value that has the field of a path, and besides it only required fields.
fn with_leaf(schema: &Value, path: &str) -> Value {
    if path.is_empty() {
        return sample(schema);
    }
    if let Some(rest) = path.strip_prefix("[]") {
        return json!([with_leaf(&schema["items"], rest)]);
    }
    let path = path.strip_prefix('.').unwrap_or(path);
    let (name, rest) = path.split_at(path.find(['.', '[']).unwrap_or(path.len()));
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let required = required.iter().filter_map(Value::as_str);
    let mut value: serde_json::Map<String, Value> = required
        .map(|name| (name.to_owned(), sample(&schema["properties"][name])))
        .collect();
    value.insert(name.to_owned(), with_leaf(&schema["properties"][name], rest));
    Value::Object(value)
}

#[test]
fn check_refuses_every_field_that_is_not_supported() {
    let crd = serde_json::to_value(api::crd::kluctl_deployment()).expect("a definition");
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let all = leaves(schema, "");
    for path in SUPPORTED {
        assert!(all.iter().any(|leaf| leaf == path), "{path} is not in the schema");
    }
    let mut refused = Vec::new();
    for path in all.iter().filter(|path| !SUPPORTED.contains(&path.as_str())) {
        let top = path.split(['.', '[']).next().expect("a name");
        let object = object(|spec| spec[top] = with_leaf(schema, path)[top].clone());
        let fault = check(&object).expect_err(path);
        assert_eq!(fault.reason, Reason::UnsupportedField, "{path}: {fault}");
        assert!(fault.message.contains(&format!("spec.{path}")), "{path}: {fault}");
        refused.push(path.as_str());
    }
    // Nothing else is refused; should that change, `SUPPORTED` has to.
    assert_eq!(refused, ["source.ref.commit", "source.ref.semver"]);
}

#[test]
fn check_accepts_manifests_of_all_releases() {
    let object = object(|spec| {
        *spec = json!({
            "interval": "10m", "path": "./microservices-demo/3-templating-and-multi-env/", "timeout": "2m",
            "sourceRef": { "apiVersion": "source.toolkit.fluxcd.io/v1beta1", "kind": "GitRepository", "name": "demo" },
            "target": "test", "prune": true, "args": { "a": { "b": 1 } }, "dependsOn": [{ "name": "base" }],
            "renameContexts": [{ "oldContext": "default", "newContext": "kind-kind" }],
            "deployInterval": "never", "validateInterval": "1h",
        });
    });
    assert_eq!(check(&object), Ok(()));
    assert_eq!(
        path(&object.spec).expect("a path").as_str(),
        "microservices-demo/3-templating-and-multi-env"
    );
}

#[test]
fn check_names_the_invalid_field() {
    type Change = Box<dyn FnOnce(&mut Value)>;
    let cases: Vec<(&str, Change, &str)> = vec![
        (
            "no source",
            Box::new(|s| s["sourceRef"] = Value::Null),
            "spec.sourceRef: is missing",
        ),
        (
            "no name",
            Box::new(|s| s["sourceRef"]["name"] = json!("")),
            "spec.sourceRef.name",
        ),
        (
            "interval",
            Box::new(|s| s["interval"] = json!("0s")),
            "spec.interval: 0s: must be at least 1s",
        ),
        (
            "interval",
            Box::new(|s| s["interval"] = json!("-1s")),
            "spec.interval: -1s",
        ),
        (
            "retryInterval",
            Box::new(|s| s["retryInterval"] = json!("1ns")),
            "spec.retryInterval: 1ns",
        ),
        (
            "deployInterval",
            Box::new(|s| s["deployInterval"] = json!("5ms")),
            "spec.deployInterval: 5ms",
        ),
        (
            "path",
            Box::new(|s| s["path"] = json!("../secrets")),
            "spec.path: \"../secrets\"",
        ),
        (
            "itself",
            Box::new(|s| s["dependsOn"] = json!([{ "name": "shop" }])),
            "spec.dependsOn[0]: apps/shop",
        ),
        (
            "two sources",
            Box::new(|s| s["source"] = json!({ "url": "https://h/r" })),
            "sourceRef and source can't be specified at the same time",
        ),
        (
            "two paths",
            Box::new(|s| {
                s["sourceRef"] = Value::Null;
                s["path"] = json!("a");
                s["source"] = json!({ "url": "https://h/r" });
            }),
            "path and source can't be specified at the same time",
        ),
        (
            "source",
            Box::new(|s| {
                s["sourceRef"] = Value::Null;
                s["source"] = json!({ "url": "r" });
            }),
            "spec.source.url: ",
        ),
        (
            "references",
            Box::new(|s| {
                s["sourceRef"] = Value::Null;
                s["source"] = json!({ "url": "https://h/r", "ref": { "branch": "a", "tag": "b" } });
            }),
            "spec.source.ref: branch and tag",
        ),
        (
            "helm",
            Box::new(|s| s["helmCredentials"] = json!([{ "secretRef": { "name": "" } }])),
            "spec.helmCredentials[0].secretRef.name: \"\"",
        ),
        (
            "sops",
            Box::new(|s| {
                s["decryption"] =
                    json!({ "provider": "sops", "secretRef": { "name": "../../other/secrets/x" } });
            }),
            "spec.decryption.secretRef.name: ",
        ),
        (
            "account",
            Box::new(|s| s["decryption"] = json!({ "provider": "sops", "serviceAccount": "a/b" })),
            "spec.decryption.serviceAccount: ",
        ),
        (
            "image",
            Box::new(|s| s["images"] = json!([{ "image": "", "resultImage": "b" }])),
            "spec.images[0].image: \"\": must name an image",
        ),
        (
            "service account",
            Box::new(|s| s["serviceAccountName"] = json!("x:kube-system:admin")),
            "spec.serviceAccountName",
        ),
        (
            "secret",
            Box::new(|s| s["kubeConfig"] = json!({ "secretRef": { "name": "../x" } })),
            "spec.kubeConfig.secretRef.name",
        ),
    ];
    for (name, change, want) in cases {
        let fault = check(&object(change)).expect_err(name);
        assert_eq!(fault.reason, Reason::InvalidSpec, "{name}: {fault}");
        assert!(fault.message.starts_with(want), "{name}: {fault}");
    }
    for field in ["semver", "commit"] {
        let object = object(|spec| {
            *spec = json!({ "interval": "5m", "source": { "url": "https://h/r", "ref": { field: "1" } } });
        });
        let fault = check(&object).expect_err(field);
        assert_eq!(fault.reason, Reason::UnsupportedField);
        assert!(
            fault.message.starts_with(&format!("spec.source.ref.{field}")),
            "{fault}"
        );
    }
    for (path, source) in [
        ("spec.sourceRef.kind", json!({ "kind": "HelmChart", "name": "a" })),
        (
            "spec.sourceRef.apiVersion",
            json!({ "apiVersion": "x.io/v1", "kind": "GitRepository", "name": "a" }),
        ),
        (
            "spec.sourceRef.apiVersion",
            json!({ "apiVersion": "source.toolkit.fluxcd.io/v7", "kind": "GitRepository", "name": "a" }),
        ),
    ] {
        let fault = check(&object(|spec| spec["sourceRef"] = source)).expect_err(path);
        assert_eq!(fault.reason, Reason::UnsupportedField);
        assert!(fault.message.starts_with(path), "{fault}");
    }
}

#[test]
fn intervals_and_timeouts_have_defaults() {
    let seconds = Duration::from_secs;
    let spec = |change: fn(&mut Value)| object(change).spec;
    let plain = spec(|_| {});
    assert_eq!(
        (interval(&plain), retry_interval(&plain), timeout(&plain)),
        (seconds(300), seconds(300), seconds(300))
    );
    assert_eq!(deploy_period(&plain), Period::Every(seconds(300)));
    let own = spec(|s| {
        s["retryInterval"] = json!("7s");
        s["timeout"] = json!("2s");
        s["deployInterval"] = json!("1h");
        s["validateInterval"] = json!("never");
    });
    assert_eq!((retry_interval(&own), timeout(&own)), (seconds(7), seconds(30)));
    assert_eq!(
        (deploy_period(&own), validate_period(&own)),
        (Period::Every(seconds(3600)), Period::Never)
    );
    assert_eq!(
        timeout(&spec(|s| s["deployInterval"] = json!("1h"))),
        seconds(3600)
    );
}

#[test]
fn options_of_a_deployment_are_those_of_the_command_line() {
    let plain = object(|_| {}).spec;
    assert!(deploys_everything(&plain) && without_effect(&plain).is_none());
    assert_eq!(deploy_command(&plain), "deploy");
    let spec = object(|spec| {
        spec["deployMode"] = json!("poke-images");
        spec["includeTags"] = json!(["a"]);
        spec["excludeTags"] = json!(["b"]);
        spec["includeDeploymentDirs"] = json!(["c"]);
        spec["excludeDeploymentDirs"] = json!(["d"]);
        spec["updateImages"] = json!(true);
        spec["registrySecrets"] = json!([{ "name": "registry" }]);
        spec["images"] = json!([{
            "image": "shop", "resultImage": "shop:2", "namespace": "", "deployment": "Deployment/shop",
            "container": "main", "deployedImage": "shop:1", "registryImage": "shop:3", "versionFilter": "semver()",
            "deployTags": ["a"], "deploymentDir": "c", "object": { "kind": "Deployment", "name": "other" },
        }]);
    })
    .spec;
    assert_eq!(
        (deploy_command(&spec), deploys_everything(&spec)),
        ("poke-images", false)
    );
    assert!(inclusion(&spec).includes(&["a".to_owned()], None));
    assert!(!inclusion(&spec).includes(&["a".to_owned(), "b".to_owned()], None));
    assert_eq!(
        (inclusion(&spec).include_dirs, inclusion(&spec).exclude_dirs),
        (vec!["c".to_owned()], vec!["d".to_owned()])
    );
    let images = engine::specs::flux::images(&spec);
    assert_eq!(images.len(), 1);
    let image = images.first().expect("an image");
    assert_eq!(
        (image.image.as_deref(), image.result_image.as_str()),
        (Some("shop"), "shop:2")
    );
    assert_eq!(
        (&image.namespace, image.deployment.as_deref()),
        (&None, Some("Deployment/shop"))
    );
    assert_eq!(image.container.as_deref(), Some("main"));
    let message = without_effect(&spec).expect("a message");
    assert!(
        message.starts_with("spec.updateImages, spec.registrySecrets: has no effect"),
        "{message}"
    );
}
