//! Values in the place of options. Pure.

use install::{Admin, Options};
use yaml::Value;

const REGISTRY: &str = "weir-values-registry";
const VERSION: &str = "v0-values-version";
const NAMESPACE: &str = "weir-values-namespace";
const DOMAIN: &str = "weir-values.cluster.domain";
const PULL_SECRET: &str = "weir-values-pull-secret";
const TOLERATION: &str = "weir-values-toleration";

/// Returns options whose strings are found again in the manifests.
pub(super) fn options(admin: Admin) -> Options {
    Options {
        namespace: NAMESPACE.to_owned(),
        version: VERSION.to_owned(),
        registry: REGISTRY.to_owned(),
        image_pull_secret: Some(PULL_SECRET.to_owned()),
        cluster_domain: DOMAIN.to_owned(),
        toleration_keys: vec![TOLERATION.to_owned()],
        admin,
        ..Options::default()
    }
}

pub(super) fn is_release_namespace(name: &str) -> bool {
    name == NAMESPACE
}

/// Prints an object with actions of templates in the place of values.
pub(super) fn print(object: &Value) -> String {
    let mut text = yaml::print::goyaml(object).replace("{{", "{{ \"{{\" }}");
    for (found, action) in [
        (REGISTRY, "{{ $.Values.registry }}"),
        (VERSION, "{{ include \"weir.version\" $ }}"),
        (NAMESPACE, "{{ $.Release.Namespace }}"),
        (DOMAIN, "{{ $.Values.clusterDomain }}"),
        ("--log-level=info", "--log-level={{ $.Values.logLevel }}"),
        (
            "--watch-all-namespaces=true",
            "--watch-all-namespaces={{ $.Values.watchAllNamespaces }}",
        ),
    ] {
        text = text.replace(found, action);
    }
    let mut out = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        match line.trim() {
            "imagePullSecrets:" => {
                lines.next_if(|next| next.contains(PULL_SECRET));
                out.push_str(&pull_secret(indent));
            }
            "tolerations:" => {
                while lines.next_if(|next| is_toleration(next)).is_some() {}
                out.push_str(&tolerations(indent));
            }
            "nodeSelector:" => {
                out.push_str(line);
                let deeper = |next: &&str| next.len() - next.trim_start().len() > indent;
                while let Some(label) = lines.next_if(deeper) {
                    out.push_str(label);
                }
                out.push_str(&more_labels(indent + 2));
            }
            argument if argument.starts_with("- --events-addr=") => out.push_str(&events(argument, indent)),
            _ => out.push_str(line),
        }
    }
    out
}

fn is_toleration(line: &str) -> bool {
    line.contains(TOLERATION) || line.trim() == "operator: Exists"
}

fn pull_secret(indent: usize) -> String {
    let space = " ".repeat(indent);
    format!(
        "{space}{{{{- with $.Values.imagePullSecret }}}}\n{space}imagePullSecrets:\n{space}- name: {{{{ . }}}}\n{space}{{{{- end }}}}\n"
    )
}

/// Adds labels of nodes to those that every Pod needs.
fn more_labels(indent: usize) -> String {
    let space = " ".repeat(indent);
    format!(
        "{space}{{{{- with $.Values.nodeSelector }}}}\n{space}{{{{- toYaml . | nindent {indent} }}}}\n{space}{{{{- end }}}}\n"
    )
}

fn tolerations(indent: usize) -> String {
    let space = " ".repeat(indent);
    format!(
        "{space}{{{{- with $.Values.tolerations }}}}\n{space}tolerations: {{{{- toYaml . | nindent {} }}}}\n{space}{{{{- end }}}}\n",
        indent + 2
    )
}

/// Lets a controller send events only if somebody receives them.
fn events(argument: &str, indent: usize) -> String {
    let (flag, address) = argument.split_once('=').unwrap_or((argument, ""));
    let space = " ".repeat(indent);
    format!(
        "{space}{flag}={{{{ if has \"notification-controller\" $.Values.components }}}}{address}{{{{ end }}}}\n"
    )
}
