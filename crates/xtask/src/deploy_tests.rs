//! Tests of the manifests in `deploy/`, read file by file without building the overlays.

use std::collections::BTreeSet;

use ::tree::{Budget, Limits};
use yaml::Value;

use crate::tree::{self, TextFile};

fn files() -> Vec<TextFile> {
    let mut files = tree::read(&tree::root(), "deploy").unwrap();
    files.retain(|file| file.path.ends_with(".yaml"));
    assert!(files.len() > 15);
    files
}

fn documents() -> Vec<(String, Value)> {
    let budget = Budget::new(Limits::default());
    let read = |file: &TextFile| {
        let parsed = yaml::read::goyaml_all(&file.text, &budget);
        let parsed = parsed.unwrap_or_else(|error| panic!("{}: {error}", file.path));
        parsed
            .into_iter()
            .map(|document| (file.path.clone(), document.value))
            .collect::<Vec<_>>()
    };
    files().iter().flat_map(read).collect()
}

fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn of_kind(kind: &str) -> Vec<(String, Value)> {
    documents()
        .into_iter()
        .filter(|(_, value)| text(value, &["kind"]) == kind)
        .collect()
}

fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    value.pointer(path).and_then(Value::as_seq).unwrap_or_default()
}

fn words(value: &Value, path: &[&str]) -> Vec<String> {
    list(value, path)
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

const POD: &[&str] = &["spec", "template", "spec"];

fn container(deployment: &Value) -> &Value {
    let containers = list(deployment, &[POD, &["containers"]].concat());
    assert_eq!(containers.len(), 1);
    &containers[0]
}

#[test]
fn manifests_exist_for_each_controller() {
    for kind in ["Deployment", "ServiceAccount"] {
        let mut names: Vec<_> = of_kind(kind)
            .iter()
            .map(|(_, v)| text(v, &["metadata", "name"]).to_owned())
            .collect();
        names.sort();
        assert_eq!(names, tree::controllers(), "{kind}");
    }
    for name in tree::controllers() {
        assert!(
            tree::root()
                .join(format!("deploy/Containerfile.{name}"))
                .is_file(),
            "{name}"
        );
    }
}

#[test]
fn pods_meet_the_restricted_pod_security_standard() {
    for (path, deployment) in of_kind("Deployment") {
        let pod = deployment.pointer(POD).unwrap();
        let security = pod.get("securityContext").unwrap();
        let yes = |value: &Value, key: &str| value.get(key).and_then(Value::as_bool) == Some(true);
        assert!(yes(security, "runAsNonRoot"), "{path}");
        assert_eq!(
            security.get("runAsUser").and_then(Value::as_i64),
            Some(65532),
            "{path}"
        );
        assert_eq!(
            text(security, &["seccompProfile", "type"]),
            "RuntimeDefault",
            "{path}"
        );
        for key in ["hostNetwork", "hostPID", "hostIPC"] {
            assert!(pod.get(key).is_none(), "{path}: {key}");
        }
        let resources = container(&deployment).get("resources").unwrap();
        for which in ["requests", "limits"] {
            assert!(
                resources.pointer(&[which, "ephemeral-storage"]).is_some(),
                "{path}"
            );
        }
        for volume in list(pod, &["volumes"]) {
            let token = list(volume, &["projected", "sources"]);
            let only_tokens =
                !token.is_empty() && token.iter().all(|s| s.get("serviceAccountToken").is_some());
            assert!(
                volume.pointer(&["emptyDir", "sizeLimit"]).is_some() || only_tokens,
                "{path}: {volume:?}"
            );
        }
        let container = container(&deployment);
        let security = container.get("securityContext").unwrap();
        assert_eq!(
            security.get("allowPrivilegeEscalation").and_then(Value::as_bool),
            Some(false),
            "{path}"
        );
        assert!(yes(security, "readOnlyRootFilesystem"), "{path}");
        assert_eq!(words(security, &["capabilities", "drop"]), ["ALL"], "{path}");
        assert!(security.pointer(&["capabilities", "add"]).is_none(), "{path}");
    }
}

#[test]
fn pods_declare_probes_and_metrics() {
    for (path, deployment) in of_kind("Deployment") {
        let container = container(&deployment);
        let ports: Vec<_> = list(container, &["ports"])
            .iter()
            .map(|p| {
                (
                    text(p, &["name"]).to_owned(),
                    p.get("containerPort").and_then(Value::as_i64).unwrap(),
                )
            })
            .collect();
        for port in [("http-prom".to_owned(), 8080), ("healthz".to_owned(), 9440)] {
            assert!(ports.contains(&port), "{path}: {port:?}");
        }
        for (probe, at) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
            assert_eq!(text(container, &[probe, "httpGet", "path"]), at, "{path}");
            assert_eq!(text(container, &[probe, "httpGet", "port"]), "healthz", "{path}");
        }
        let annotations = deployment
            .pointer(&["spec", "template", "metadata", "annotations"])
            .unwrap();
        assert_eq!(text(annotations, &["prometheus.io/scrape"]), "true", "{path}");
        assert_eq!(text(annotations, &["prometheus.io/port"]), "8080", "{path}");
    }
}

#[test]
fn controllers_post_events_with_tokens_that_the_receiver_demands() {
    for (path, deployment) in of_kind("Deployment") {
        let container = container(&deployment);
        let args = words(container, &["args"]);
        if text(&deployment, &["metadata", "name"]) == "notification-controller" {
            assert!(args.contains(&"--require-event-tokens".to_owned()), "{path}");
            continue;
        }
        let file = args
            .iter()
            .find_map(|arg| arg.strip_prefix("--events-token-file="));
        let mounts = list(container, &["volumeMounts"]).iter();
        let mount = mounts
            .filter(|mount| text(mount, &["name"]) == "events-token")
            .map(|mount| format!("{}/token", text(mount, &["mountPath"])));
        assert_eq!(mount.collect::<Vec<_>>(), [file.unwrap()], "{path}");
        let volumes = list(&deployment, &[POD, &["volumes"]].concat());
        let token = volumes
            .iter()
            .flat_map(|volume| list(volume, &["projected", "sources"]))
            .find_map(|source| source.get("serviceAccountToken"))
            .unwrap();
        assert_eq!(text(token, &["audience"]), "weir-events", "{path}");
        assert_eq!(text(token, &["path"]), "token", "{path}");
        let seconds = token.get("expirationSeconds").and_then(Value::as_i64);
        assert_eq!(seconds, Some(3600), "{path}");
    }
}

/// Returns true if a selector of Pods selects those with this label `app`.
fn selects(selector: &Value, app: &str) -> bool {
    let labels = selector.get("matchLabels").and_then(|labels| labels.get("app"));
    let expressions = list(selector, &["matchExpressions"]).iter();
    labels.is_none_or(|label| label.as_str() == Some(app))
        && expressions
            .filter(|each| text(each, &["key"]) == "app")
            .all(|each| {
                let listed = words(each, &["values"]).contains(&app.to_owned());
                match text(each, &["operator"]) {
                    "In" => listed,
                    "NotIn" => !listed,
                    other => panic!("{other}"),
                }
            })
}

/// Returns true if the policies admit Pods of the namespace with the label `from` to a port of the Pods with the label `to`.
fn admits(from: &str, to: &str, port: i64) -> bool {
    let policies = of_kind("NetworkPolicy").into_iter().map(|(_, policy)| policy);
    let mut all = policies.filter(|policy| {
        let selector = policy.pointer(&["spec", "podSelector"]);
        selector.is_some_and(|selector| selects(selector, to))
    });
    all.any(|policy| {
        let rules = list(&policy, &["spec", "ingress"]).iter();
        rules.into_iter().any(|rule| {
            let ports = list(rule, &["ports"]);
            let open = ports
                .iter()
                .any(|each| each.get("port").and_then(Value::as_i64) == Some(port));
            let peers = list(rule, &["from"]).iter();
            let mut pods = peers.filter(|peer| {
                peer.get("namespaceSelector").is_some() || {
                    let selector = peer.get("podSelector");
                    selector.is_some_and(|selector| selects(selector, from))
                }
            });
            (open || ports.is_empty()) && pods.next().is_some()
        })
    })
}

#[test]
fn network_policies_admit_the_peers_of_a_port_alone() {
    let (source, kluctl, notification) = (
        "source-controller",
        "kluctl-controller",
        "notification-controller",
    );
    for (from, to, port, expected) in [
        (source, notification, 9090, true),
        (kluctl, notification, 9090, true),
        ("helm-controller", notification, 9090, true),
        ("anything", notification, 9090, false),
        ("anything", notification, 9292, true),
        ("anything", source, 9292, false),
        (kluctl, source, 9090, true),
        ("kustomize-controller", source, 9090, true),
        (notification, source, 9090, false),
        ("anything", source, 9090, false),
        ("anything", source, 8080, true),
        ("anything", "dashboard", 9001, true),
    ] {
        assert_eq!(admits(from, to, port), expected, "{from} -> {to}:{port}");
    }
}

#[test]
fn services_target_existing_ports() {
    for (path, service) in of_kind("Service") {
        let app = text(&service, &["spec", "selector", "app"]);
        let deployments = of_kind("Deployment");
        let (_, deployment) = deployments
            .iter()
            .find(|(_, d)| text(d, &["spec", "selector", "matchLabels", "app"]) == app)
            .unwrap();
        let named: BTreeSet<_> = list(container(deployment), &["ports"])
            .iter()
            .map(|p| text(p, &["name"]).to_owned())
            .collect();
        for port in list(&service, &["spec", "ports"]) {
            assert!(named.contains(text(port, &["targetPort"])), "{path}");
        }
    }
}

#[test]
fn arguments_are_flags_of_the_controllers() {
    let root = tree::root();
    let folders = tree::controllers().into_iter().chain(["runtime".to_owned()]);
    let sources: String = folders
        .flat_map(|name| tree::read(&root, &format!("crates/{name}/src")).unwrap())
        .map(|file| file.text)
        .collect();
    let patched = files().into_iter().filter(|file| file.path.contains("overlays/"));
    let patched = patched.flat_map(|file| {
        file.text
            .split_whitespace()
            .filter(|word| word.starts_with("--"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    let args = of_kind("Deployment")
        .into_iter()
        .flat_map(|(_, d)| words(container(&d), &["args"]));
    for arg in args.chain(patched) {
        let flag = arg.trim_start_matches("--").split('=').next().unwrap().to_owned();
        let field = format!("{}:", flag.replace('-', "_"));
        assert!(
            sources.contains(&field) || sources.contains(&format!("\"{flag}\"")),
            "--{flag} is not a flag"
        );
    }
}

#[test]
fn roles_have_no_wildcards_but_that_of_the_index() {
    for (path, role) in of_kind("ClusterRole").into_iter().chain(of_kind("Role")) {
        let name = text(&role, &["metadata", "name"]);
        let (people, index) = (
            name.starts_with("flux-"),
            name.starts_with("crd-controller-") && name.ends_with("-index-flux-system"),
        );
        for rule in list(&role, &["rules"]) {
            let resources = words(rule, &["resources"]);
            // Consumers trust the URLs that controllers write into a status.
            assert!(
                !people || resources.iter().all(|resource| !resource.contains('/')),
                "{path}: {rule:?}"
            );
            if index {
                assert_eq!(words(rule, &["verbs"]), ["list", "watch"]);
                continue;
            }
            let all = [words(rule, &["apiGroups"]), words(rule, &["verbs"]), resources].concat();
            assert!(
                !all.is_empty() && !all.contains(&"*".to_owned()),
                "{path}: {rule:?}"
            );
        }
    }
}

#[test]
fn bindings_name_existing_roles_and_accounts() {
    let names = |kind: &str| -> BTreeSet<String> {
        of_kind(kind)
            .iter()
            .map(|(_, v)| text(v, &["metadata", "name"]).to_owned())
            .collect()
    };
    for kind in ["ClusterRoleBinding", "RoleBinding"] {
        for (path, binding) in of_kind(kind) {
            let role = text(&binding, &["roleRef", "name"]);
            let known = names(text(&binding, &["roleRef", "kind"]));
            let permissive = path.starts_with("deploy/overlays/cluster-admin/") && role == "cluster-admin";
            assert!(known.contains(role) || permissive, "{path}: {role}");
            for subject in list(&binding, &["subjects"]) {
                let name = text(subject, &["name"]).to_owned();
                assert!(tree::controllers().contains(&name), "{path}: {name}");
                assert_eq!(text(subject, &["namespace"]), "flux-system", "{path}");
            }
        }
    }
}

#[test]
fn crds_are_all_in_the_kustomization() {
    let root = tree::root();
    let index = std::fs::read_to_string(root.join("crds/Kustomization")).unwrap();
    for crd in api::crd::all() {
        let file = format!("- {}_{}.yaml\n", crd.spec.group, crd.spec.names.plural);
        assert!(index.contains(&file), "{file}");
    }
}
