//! Random objects of Kubernetes, which refer to each other.

use serde_json::{Value as Json, json};

use super::dice::Dice;

/// Few, so that objects often refer to each other.
pub(super) const NAMES: &[&str] = &["app", "web", "cfg", "sec"];
pub(super) const NAMESPACES: &[&str] = &["one", "two", "default"];
pub(super) const IMAGES: &[&str] = &[
    "nginx",
    "nginx:1.7",
    "reg.io:5000/a/nginx:v1",
    "busybox@sha256:24a0c4b4a4c0eb97a1aabb8e29f18e917d05abfe1b7a7c07857230879ce7d3d3",
    "nginx:1.7@sha256:24a0c4b4a4c0eb97a1aabb8e29f18e917d05abfe1b7a7c07857230879ce7d3d3",
    "redis:$(V_A)",
];
pub(super) const LABELS: &[&str] = &["app", "tier", "example.com/part"];
pub(super) const VALUES: &[&str] = &[
    "a", "b", "1", "true", "", "a: b", "yes", "x y", "$(V_A)", "v-$(V_B)",
];
/// Scalars that are written without quotes.
const RAW: &[&str] = &[
    "yes",
    "1e3",
    "0o7",
    "012",
    "1.0",
    "1_000",
    "~",
    "null",
    "2020-01-01",
    "12:30:45",
    "0x1F",
    "+1",
    ".5",
    "on",
    "NaN1",
    "1234567.5",
    "12345678901234567890",
    "12345678901234567890.0",
    "-9223372036854775809",
    "9007199254740993",
    "!!str 12",
    "1.5e-7",
    "True",
    "'it''s'",
    "\"a\\tb\"",
    "0",
    "-0.0",
    "100000000000000000000",
];
const LONG: &str = "a text of many words that goes on and on until it is longer than any line of eighty columns may be, and on";

/// The kinds, by apiVersion and kind; the first ones are more frequent.
pub(super) const KINDS: &[(&str, &str)] = &[
    ("apps/v1", "Deployment"),
    ("v1", "ConfigMap"),
    ("v1", "Service"),
    ("v1", "Secret"),
    ("example.com/v1", "Thing"),
    ("v1", "ServiceAccount"),
    ("apps/v1", "StatefulSet"),
    ("networking.k8s.io/v1", "Ingress"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("batch/v1", "CronJob"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("v1", "Namespace"),
    ("batch/v1", "Job"),
    ("v1", "PersistentVolumeClaim"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("policy/v1", "PodDisruptionBudget"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apps/v1", "DaemonSet"),
    ("v1", "Pod"),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
    ),
    ("networking.k8s.io/v1beta1", "Ingress"),
];

/// An object, in its first state.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) api: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) object: Json,
    /// True if it was changed, so that parts of it may be missing.
    pub(super) is_changed: bool,
}

impl Known {
    pub(super) fn group(&self) -> &str {
        self.api.split_once('/').map_or("", |(group, _)| group)
    }

    pub(super) fn version(&self) -> &str {
        self.api.split_once('/').map_or(&self.api, |(_, version)| version)
    }

    pub(super) fn metadata(&self) -> Json {
        let mut metadata = json!({"name": self.name});
        if !self.namespace.is_empty() {
            metadata["namespace"] = self.namespace.clone().into();
        }
        metadata
    }
}

pub(super) fn known(dice: &mut Dice) -> Known {
    let last = [6, KINDS.len()][dice.below(2)];
    let (api, kind) = KINDS[dice.below(last)];
    let namespace = if dice.one_in(4) {
        dice.text(NAMESPACES)
    } else {
        String::new()
    };
    let mut known = Known {
        api: api.to_owned(),
        kind: kind.to_owned(),
        name: dice.text(NAMES),
        namespace,
        object: Json::Null,
        is_changed: false,
    };
    known.object = object(dice, &known);
    known
}

/// Makes a scalar of any type and style.
pub(super) fn scalar(dice: &mut Dice) -> Json {
    match dice.below(6) {
        0 => dice.below(9).into(),
        1 => dice.one_in(2).into(),
        2 => format!("RAW{}WAR", dice.pick(RAW)).into(),
        3 if dice.one_in(4) => LONG.into(),
        4 if dice.one_in(4) => "two\nlines\n".into(),
        _ => dice.text(VALUES).into(),
    }
}

fn env(dice: &mut Dice) -> Json {
    let mut list = Vec::new();
    for name in dice.some(&["A", "B", "C"]) {
        let (other, key) = (dice.text(NAMES), dice.text(&["k", "k2"]));
        list.push(match dice.below(4) {
            0 => json!({"name": name, "valueFrom": {"configMapKeyRef": {"name": other, "key": key}}}),
            1 => json!({"name": name, "valueFrom": {"secretKeyRef": {"name": other, "key": key}}}),
            _ => json!({"name": name, "value": dice.text(VALUES)}),
        });
    }
    list.into()
}

fn ports(dice: &mut Dice) -> Json {
    let port = |dice: &mut Dice| {
        let mut port = json!({"containerPort": *dice.pick(&[80, 81, 82])});
        dice.field(&mut port, 3, "protocol", |dice| dice.text(&["TCP", "UDP"]).into());
        dice.field(&mut port, 3, "name", |dice| dice.text(&["http", "dns"]).into());
        port
    };
    dice.list(1..4, port).into()
}

fn container(dice: &mut Dice, name: &str) -> Json {
    let mut container = json!({"name": name});
    dice.field(&mut container, 1, "image", |dice| dice.text(IMAGES).into());
    dice.field(&mut container, 2, "env", env);
    dice.field(&mut container, 3, "ports", ports);
    dice.field(&mut container, 4, "envFrom", |dice| {
        let name = dice.text(NAMES);
        json!([{"configMapRef": {"name": name}}, {"secretRef": {"name": dice.text(NAMES)}}])
    });
    dice.field(&mut container, 4, "args", |dice| {
        dice.list(1..4, |dice| dice.text(VALUES)).into()
    });
    dice.field(&mut container, 4, "command", |_| {
        json!(["sh", "-c", "echo $(V_A) $$(V_B) $(V_B)"])
    });
    dice.field(&mut container, 4, "volumeMounts", |dice| {
        let path = |dice: &mut Dice| json!({"name": "v1", "mountPath": dice.text(&["/a", "/b", "/$(V_A)"])});
        dice.list(1..3, path).into()
    });
    dice.field(
        &mut container,
        5,
        "resources",
        |dice| json!({"limits": {"cpu": scalar(dice), "memory": "1Gi"}, "requests": {"cpu": "RAW0.5WAR"}}),
    );
    dice.field(
        &mut container,
        6,
        "securityContext",
        |dice| json!({"privileged": dice.one_in(2), "x": scalar(dice)}),
    );
    container
}

fn containers(dice: &mut Dice) -> Json {
    let names = dice.some(&["main", "side", "aux"]);
    let list: Vec<Json> = names.into_iter().map(|name| container(dice, name)).collect();
    list.into()
}

fn volumes(dice: &mut Dice) -> Json {
    let mut list = Vec::new();
    for name in dice.some(&["v1", "v2", "v3"]) {
        let other = dice.text(NAMES);
        list.push(match dice.below(5) {
            0 => json!({"name": name, "configMap": {"name": other, "items": [{"key": "k", "path": "p"}]}}),
            1 => json!({"name": name, "secret": {"secretName": other}}),
            2 => json!({"name": name, "persistentVolumeClaim": {"claimName": other}}),
            3 => json!({"name": name, "projected": {"sources": [{"configMap": {"name": other}}, {"secret": {"name": dice.text(NAMES)}}]}}),
            _ => json!({"name": name, "emptyDir": {}}),
        });
    }
    list.into()
}

fn selector_terms(dice: &mut Dice) -> Json {
    json!([{"labelSelector": {"matchLabels": dice.pairs(LABELS, VALUES)}, "topologyKey": "zone"}])
}

fn pod_spec(dice: &mut Dice) -> Json {
    let mut spec = json!({"containers": containers(dice)});
    dice.field(&mut spec, 4, "initContainers", containers);
    dice.field(&mut spec, 2, "volumes", volumes);
    dice.field(&mut spec, 4, "serviceAccountName", |dice| dice.text(NAMES).into());
    dice.field(
        &mut spec,
        5,
        "imagePullSecrets",
        |dice| json!([{"name": dice.text(NAMES)}, {"name": "regcred"}]),
    );
    dice.field(&mut spec, 6, "affinity", |dice| {
        let kind = dice.text(&["podAffinity", "podAntiAffinity"]);
        json!({kind: {"requiredDuringSchedulingIgnoredDuringExecution": selector_terms(dice)}})
    });
    dice.field(&mut spec, 6, "topologySpreadConstraints", |dice| {
        json!([{"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": dice.below(3),
            "labelSelector": {"matchLabels": dice.pairs(LABELS, VALUES)}}])
    });
    dice.field(
        &mut spec,
        6,
        "tolerations",
        |dice| json!([{"key": dice.text(VALUES), "effect": "NoSchedule"}]),
    );
    dice.field(
        &mut spec,
        6,
        "hostAliases",
        |dice| json!([{"ip": dice.text(&["1.1.1.1", "2.2.2.2"]), "hostnames": ["h"]}]),
    );
    dice.field(&mut spec, 6, "priorityClassName", |dice| dice.text(NAMES).into());
    dice.field(&mut spec, 6, "nodeSelector", |dice| dice.pairs(LABELS, VALUES));
    spec
}

fn template(dice: &mut Dice) -> Json {
    let mut template = json!({"spec": pod_spec(dice)});
    dice.field(&mut template, 2, "metadata", |dice| {
        let mut metadata = json!({"labels": dice.pairs(LABELS, VALUES)});
        dice.field(&mut metadata, 3, "annotations", |dice| dice.pairs(LABELS, VALUES));
        metadata
    });
    template
}

fn workload(dice: &mut Dice) -> Json {
    let mut spec = json!({});
    dice.field(&mut spec, 2, "replicas", |dice| dice.below(4).into());
    dice.field(
        &mut spec,
        2,
        "selector",
        |dice| json!({"matchLabels": dice.pairs(LABELS, VALUES)}),
    );
    spec["template"] = template(dice);
    spec
}

fn service_port(dice: &mut Dice) -> Json {
    let mut port = json!({"port": *dice.pick(&[80, 81])});
    dice.field(&mut port, 3, "protocol", |dice| dice.text(&["TCP", "UDP"]).into());
    dice.field(&mut port, 3, "name", |dice| dice.text(&["http", "dns"]).into());
    dice.field(&mut port, 3, "targetPort", scalar);
    port
}

fn subjects(dice: &mut Dice) -> Json {
    let subject = |dice: &mut Dice| {
        let kind = dice.text(&["ServiceAccount", "ServiceAccount", "User", "Group"]);
        let mut subject = json!({"kind": kind, "name": dice.text(&["app", "web", "default"])});
        dice.field(&mut subject, 2, "namespace", |dice| dice.text(NAMESPACES).into());
        subject
    };
    dice.list(1..4, subject).into()
}

fn rules(dice: &mut Dice) -> Json {
    let names = dice.list(1..3, |dice| dice.text(NAMES));
    let resource = dice.text(&["configmaps", "secrets", "things"]);
    json!([{"apiGroups": [""], "resources": [resource], "resourceNames": names, "verbs": ["get"]}])
}

fn ingress(dice: &mut Dice, old: bool) -> Json {
    let service = dice.text(NAMES);
    let backend = if old {
        json!({"serviceName": service, "servicePort": 80})
    } else {
        json!({"service": {"name": service, "port": {"number": 80}}})
    };
    let mut spec = json!({"rules": [{"host": dice.text(&["a.example.com", "$(V_A).example.com"]),
        "http": {"paths": [{"path": "/", "backend": backend}]}}]});
    dice.field(
        &mut spec,
        2,
        "tls",
        |dice| json!([{"hosts": ["a"], "secretName": dice.text(NAMES)}]),
    );
    dice.field(&mut spec, 4, "ingressClassName", |dice| dice.text(NAMES).into());
    spec
}

/// Makes fields of a kind without a schema: lists of maps have no merge keys there.
fn thing(dice: &mut Dice) -> Json {
    let mut spec = json!({"ref": dice.text(NAMES), "image": dice.text(IMAGES)});
    dice.field(&mut spec, 2, "containers", containers);
    dice.field(&mut spec, 2, "values", |dice| dice.list(0..4, scalar).into());
    dice.field(
        &mut spec,
        2,
        "nested",
        |dice| json!({"a": scalar(dice), "b": [{"name": "x", "v": scalar(dice)}, [1, 2]], "c": {}}),
    );
    dice.field(&mut spec, 3, "json", |_| {
        "{\"a\": {\"b\": \"c\"}, \"l\": [1, \"x\"]}".into()
    });
    dice.field(&mut spec, 3, "yaml", |_| "a:\n  b: c\nl:\n- x: 1\n".into());
    dice.field(&mut spec, 3, "url", |_| "http://host.name:80/path-part".into());
    spec
}

fn data(dice: &mut Dice) -> Json {
    dice.pairs(
        &["k", "k2", "a.b", "n"],
        &["v", "a=b\n", "1", "true", "x\ny", " pad ", "", "$(V_A)"],
    )
}

/// Makes everything of an object but its identity.
pub(super) fn body(dice: &mut Dice, kind: &str, api: &str) -> Json {
    match kind {
        "ConfigMap" => json!({"data": data(dice)}),
        "Secret" => match dice.below(3) {
            0 => json!({"stringData": data(dice), "type": "Opaque"}),
            _ => json!({"data": {"k": "dg==", "k2": "eA=="}, "type": "Opaque"}),
        },
        "ServiceAccount" => match dice.below(3) {
            0 => {
                json!({"imagePullSecrets": [{"name": dice.text(NAMES)}], "secrets": [{"name": dice.text(NAMES)}]})
            }
            _ => json!({}),
        },
        "Service" => {
            let mut spec = json!({"ports": dice.list(1..3, service_port)});
            dice.field(&mut spec, 2, "selector", |dice| dice.pairs(LABELS, VALUES));
            json!({"spec": spec})
        }
        "Role" | "ClusterRole" => json!({"rules": rules(dice)}),
        "RoleBinding" | "ClusterRoleBinding" => json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": dice.text(&["Role", "ClusterRole"]), "name": dice.text(NAMES)},
            "subjects": subjects(dice)}),
        "Ingress" => json!({"spec": ingress(dice, api.ends_with("beta1"))}),
        "CronJob" => {
            json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template(dice)}}}})
        }
        "Namespace" | "CustomResourceDefinition" => json!({}),
        "PersistentVolumeClaim" => {
            json!({"spec": {"volumeName": dice.text(NAMES), "storageClassName": dice.text(NAMES)}})
        }
        "HorizontalPodAutoscaler" => {
            let kind = dice.text(&["Deployment", "StatefulSet"]);
            json!({"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": dice.text(NAMES)}}})
        }
        "PodDisruptionBudget" => {
            json!({"spec": {"minAvailable": scalar(dice), "selector": {"matchLabels": dice.pairs(LABELS, VALUES)}}})
        }
        "NetworkPolicy" => json!({"spec": {"podSelector": {"matchLabels": dice.pairs(LABELS, VALUES)},
            "ingress": [{"from": [{"podSelector": {"matchLabels": dice.pairs(LABELS, VALUES)}}]}]}}),
        "ValidatingWebhookConfiguration" => {
            let namespace = dice.text(NAMESPACES);
            json!({"webhooks": [{"name": "a.example.com", "clientConfig": {"service": {"name": dice.text(NAMES), "namespace": namespace}}}]})
        }
        "Pod" => json!({"spec": pod_spec(dice)}),
        "Thing" => json!({"spec": thing(dice)}),
        "StatefulSet" => {
            let mut spec = workload(dice);
            spec["serviceName"] = dice.text(NAMES).into();
            dice.field(&mut spec, 2, "volumeClaimTemplates", |dice| {
                json!([{"metadata": {"name": "data"}, "spec": {"storageClassName": dice.text(NAMES)}}])
            });
            json!({"spec": spec})
        }
        _ => json!({"spec": workload(dice)}),
    }
}

fn object(dice: &mut Dice, known: &Known) -> Json {
    let mut object = json!({"apiVersion": known.api, "kind": known.kind, "metadata": known.metadata()});
    dice.field(&mut object["metadata"], 3, "labels", |dice| {
        dice.pairs(LABELS, VALUES)
    });
    dice.field(&mut object["metadata"], 4, "annotations", |dice| {
        let mut annotations = dice.pairs(LABELS, VALUES);
        // In a wild tree it might get another one's name: the original prints both then.
        if !dice.is_wild() {
            dice.field(
                &mut annotations,
                12,
                "config.kubernetes.io/local-config",
                |dice| dice.text(&["true", "false"]).into(),
            );
        }
        dice.field(&mut annotations, 12, "kustomize.config.k8s.io/needs-hash", |_| {
            "true".into()
        });
        annotations
    });
    dice.field(&mut object["metadata"], 8, "finalizers", |dice| {
        json!(dice.some(&["f/a", "f/b"]))
    });
    if let Json::Object(fields) = body(dice, &known.kind, &known.api) {
        for (key, value) in fields {
            object[&key] = value;
        }
    }
    object
}
