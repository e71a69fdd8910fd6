//! Rules of the controllers that no schema has: expressions, patterns, ranges of versions. Pure.

use std::fmt::Display;

use api::{
    DependencyReference,
    kluctl::{KluctlDeploymentSpec, gitops},
    kustomize::KustomizationSpec,
    notification::{AlertSpec, ProviderSpec, ReceiverSpec},
    source::{BucketSpec, GitRepositorySpec, HelmChartSpec, HelmRepositorySpec, OCIRepositorySpec},
};
use artifact::pack;
use cel::{Program, Scope};
use engine::specs;
use go::regexp::Regexp;
use kustomization::check;
use notification_specs::{
    provider,
    receiver::{self, OidcRules},
};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use source_specs::{bucket, git_repository, helm_chart, helm_repository, oci_repository};
use versions::Constraint;

use super::schema::Invalid;

/// Returns the findings about the spec of an object that fits its schema.
pub(super) fn check(group: &str, kind: &str, spec: &Json) -> Vec<Invalid> {
    let mut findings = Findings::default();
    match (group, kind) {
        (api::group::KUSTOMIZE, "Kustomization") => findings.of(spec, Findings::kustomization),
        (api::group::FLUX_KLUCTL, "KluctlDeployment") => findings.of(spec, Findings::flux_deployment),
        (api::group::GITOPS_KLUCTL, "KluctlDeployment") => findings.of(spec, Findings::gitops_deployment),
        (api::group::SOURCE, "GitRepository") => findings.of(spec, Findings::git_repository),
        (api::group::SOURCE, "Bucket") => findings.of(spec, Findings::bucket),
        (api::group::SOURCE, "HelmRepository") => findings.of(spec, Findings::helm_repository),
        (api::group::SOURCE, "OCIRepository") => findings.of(spec, Findings::oci_repository),
        (api::group::SOURCE, "HelmChart") => findings.of(spec, Findings::helm_chart),
        (api::group::NOTIFICATION, "Alert") => findings.of(spec, Findings::alert),
        (api::group::NOTIFICATION, "Provider") => findings.of(spec, Findings::provider),
        (api::group::NOTIFICATION, "Receiver") => findings.of(spec, Findings::receiver),
        _ => {}
    }
    findings.0
}

#[derive(Default)]
struct Findings(Vec<Invalid>);

impl Findings {
    fn of<S: DeserializeOwned>(&mut self, spec: &Json, check: impl FnOnce(&mut Self, &S)) {
        if let Ok(spec) = serde_json::from_value(spec.clone()) {
            check(self, &spec);
        }
    }

    fn add(&mut self, field: &str, message: &dyn Display) {
        self.0.push(Invalid {
            field: field.to_owned(),
            message: message.to_string(),
        });
    }

    /// Adds a fault of a controller, whose message names the field.
    fn fault(&mut self, checked: Result<(), api::Fault>) {
        if let Err(fault) = checked {
            self.add("", &fault.message);
        }
    }

    fn pattern(&mut self, field: &str, pattern: &str) {
        if let Err(error) = Regexp::compile(pattern) {
            self.add(field, &error);
        }
    }

    fn range(&mut self, field: &str, range: &str) {
        if let Err(error) = Constraint::parse(range) {
            self.add(field, &format_args!("semver '{range}' parse error: {error}"));
        }
    }

    /// Checks an expression of the type bool; others pass if they may turn out to be one.
    fn condition(&mut self, field: &str, expression: &str, variables: &[&str]) {
        self.expression(
            field,
            expression,
            Program::compile_bool(expression, Scope::Declared(variables)),
        );
    }

    fn expression(&mut self, field: &str, expression: &str, compiled: Result<Program, cel::CompileError>) {
        if let Err(error) = compiled {
            let error = error.located(expression);
            self.add(
                field,
                &format_args!("failed to parse the CEL expression '{expression}': {error}"),
            );
        }
    }

    fn dependencies(&mut self, references: &[DependencyReference]) {
        for (at, reference) in references.iter().enumerate() {
            let expression = reference.ready_expr.as_deref().filter(|text| !text.is_empty());
            if let Some(expression) = expression {
                let field = format!("spec.dependsOn[{at}].readyExpr");
                self.condition(&field, expression, &DependencyReference::EXPRESSION_VARIABLES);
            }
        }
    }

    fn ignore(&mut self, rules: Option<&str>) {
        if rules.is_some_and(pack::has_long_rule) {
            self.add(
                "spec.ignore",
                &format_args!("a rule is longer than {} bytes", pack::MAX_RULE_BYTES),
            );
        }
    }

    fn kustomization(&mut self, spec: &KustomizationSpec) {
        self.fault(check::fields(spec));
        self.fault(check::ignored(spec));
        self.fault(check::build(spec));
        self.fault(check::health_checks(spec));
        self.dependencies(&spec.depends_on);
    }

    fn flux_deployment(&mut self, spec: &KluctlDeploymentSpec) {
        self.fault(specs::flux::check(spec));
        self.dependencies(&spec.depends_on);
    }

    fn gitops_deployment(&mut self, spec: &gitops::KluctlDeploymentSpec) {
        let source = specs::gitops::source(spec);
        let request = source.and_then(|source| {
            let request = specs::gitops::request(spec, source.dir, kluctl::Contexts::default());
            request.map_err(specs::gitops::InvalidSpec::from)
        });
        if let Err(error) = request {
            self.add("", &error);
        }
    }

    fn bucket(&mut self, spec: &BucketSpec) {
        self.fault(bucket::validate(spec));
        self.ignore(spec.ignore.as_deref());
    }

    fn git_repository(&mut self, spec: &GitRepositorySpec) {
        self.fault(git_repository::validate(spec));
        self.ignore(spec.ignore.as_deref());
    }

    fn oci_repository(&mut self, spec: &OCIRepositorySpec) {
        self.fault(oci_repository::validate(spec));
        self.ignore(spec.ignore.as_deref());
    }

    fn helm_repository(&mut self, spec: &HelmRepositorySpec) {
        self.fault(match spec.is_oci() {
            true => helm_repository::supported(spec)
                .and_then(|()| oci_repository::validate(&helm_repository::registry_spec(spec, "chart"))),
            false => helm_repository::validate(spec),
        });
    }

    fn helm_chart(&mut self, spec: &HelmChartSpec) {
        self.fault(helm_chart::validate(spec));
        // Charts of other sources have one version.
        if spec.source_ref.kind == "HelmRepository" && !spec.version.is_empty() {
            self.range("spec.version", &spec.version);
        }
    }

    fn alert(&mut self, spec: &AlertSpec) {
        for (name, patterns) in [
            ("inclusionList", &spec.inclusion_list),
            ("exclusionList", &spec.exclusion_list),
        ] {
            for (at, pattern) in patterns.iter().enumerate() {
                self.pattern(&format!("spec.{name}[{at}]"), pattern);
            }
        }
    }

    fn provider(&mut self, spec: &ProviderSpec) {
        self.fault(provider::check_fields(spec));
        if let Some(expression) = spec.commit_status_expr.as_deref() {
            let compiled = Program::compile(expression, provider::EXPRESSION_SCOPE);
            self.expression("spec.commitStatusExpr", expression, compiled);
        }
    }

    fn receiver(&mut self, spec: &ReceiverSpec) {
        self.fault(receiver::check_fields(spec));
        for (field, filter) in receiver::filters(spec).filter(|(_, filter)| !filter.is_empty()) {
            self.condition(&field, filter, spec.filter_variables());
        }
        for (at, issuer) in spec.oidc_providers.iter().enumerate() {
            if let Err(why) = OidcRules::compile(issuer) {
                self.add(&format!("spec.oidcProviders[{at}]"), &why);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A kind with a valid spec, fields that make it invalid, and the beginning of the finding.
    type Case = (&'static str, &'static str, Json, Json, &'static str);

    fn kustomizations() -> Vec<Case> {
        let valid = || {
            json!({
                "interval": "5m", "prune": true, "sourceRef": { "kind": "GitRepository", "name": "r" },
                "ignore": [{ "paths": ["/data/a"] }], "dependsOn": [{ "name": "a", "readyExpr": "dep.status.ok == true" }],
                "healthCheckExprs": [{ "apiVersion": "x.io/v1", "kind": "A", "current": "status.ok" }],
            })
        };
        let case =
            |change: Json, expected| (api::group::KUSTOMIZE, "Kustomization", valid(), change, expected);
        vec![
            case(
                json!({ "dependsOn": [{ "name": "a", "readyExpr": "other == 1" }] }),
                "spec.dependsOn[0].readyExpr: failed to parse the CEL expression 'other == 1': ",
            ),
            case(
                json!({ "healthCheckExprs": [{ "apiVersion": "x.io/v1", "current": "1 +" }] }),
                "Reconciliation failed terminally due to configuration error: ",
            ),
            case(json!({ "ignore": [{ "paths": ["data"] }] }), "spec."),
            case(
                json!({ "postBuild": { "substitute": { "a.b": "c" } } }),
                "spec.postBuild.substitute: ",
            ),
            case(
                json!({ "components": ["../a"] }),
                "component path '../a' must be local and relative",
            ),
        ]
    }

    fn others() -> Vec<Case> {
        let interval = || json!({ "interval": "5m", "url": "https://example.com/r" });
        let oci = || json!({ "interval": "5m", "url": "oci://example.com/r", "ref": { "semver": "1.x" } });
        let chart = || json!({ "interval": "5m", "chart": "c", "version": "1.x", "sourceRef": { "kind": "HelmRepository", "name": "r" } });
        let receiver = || json!({ "type": "generic", "secretRef": { "name": "s" }, "resources": [{ "kind": "GitRepository", "name": "r" }] });
        let oidc = || {
            json!({
                "type": "generic-oidc", "resources": [{ "kind": "GitRepository", "name": "r" }],
                "oidcProviders": [{ "issuerURL": "https://example.com", "validations": [{ "expression": "claims.sub == 'a'", "message": "m" }] }],
            })
        };
        let alert =
            || json!({ "providerRef": { "name": "p" }, "eventSources": [], "inclusionList": ["a.*"] });
        let provider = || json!({ "type": "github" });
        let (source, notification) = (api::group::SOURCE, api::group::NOTIFICATION);
        vec![
            (
                source,
                "GitRepository",
                interval(),
                json!({ "ref": { "semver": "one" } }),
                "spec.ref: ",
            ),
            (
                source,
                "GitRepository",
                interval(),
                json!({ "ignore": "a".repeat(10_000) }),
                "spec.ignore: a rule is longer than",
            ),
            (
                source,
                "OCIRepository",
                oci(),
                json!({ "ref": { "semver": "one" } }),
                "spec.ref.semver: semver 'one' parse error: ",
            ),
            (
                source,
                "OCIRepository",
                oci(),
                json!({ "ref": { "semver": "1.x", "semverFilter": "(" } }),
                "spec.ref.semverFilter: ",
            ),
            (
                source,
                "HelmChart",
                chart(),
                json!({ "version": "one" }),
                "spec.version: semver 'one' parse error: ",
            ),
            (
                notification,
                "Alert",
                alert(),
                json!({ "exclusionList": ["("] }),
                "spec.exclusionList[0]: ",
            ),
            (
                notification,
                "Provider",
                provider(),
                json!({ "commitStatusExpr": "other" }),
                "spec.commitStatusExpr: failed to parse the CEL expression 'other': ",
            ),
            (
                notification,
                "Provider",
                provider(),
                json!({ "serviceAccountName": "a" }),
                "spec.serviceAccountName: the type github uses no identity",
            ),
            (
                notification,
                "Receiver",
                oidc(),
                json!({ "secretRef": { "name": "s" } }),
                "Reconciliation failed terminally due to configuration error: secretRef must not be set",
            ),
            (
                notification,
                "Receiver",
                oidc(),
                json!({ "oidcProviders": [{ "issuerURL": "https://example.com", "validations": [{ "expression": "1 +", "message": "m" }] }] }),
                "spec.oidcProviders[0]: validations[0].expression: ",
            ),
            (
                notification,
                "Receiver",
                receiver(),
                json!({ "resourceFilter": "claims.sub == 'a'" }),
                "spec.resourceFilter: failed to parse the CEL expression",
            ),
        ]
    }

    fn sources() -> Vec<Case> {
        let git = || json!({ "interval": "5m", "url": "https://example.com/r" });
        let bucket = || json!({ "interval": "5m", "endpoint": "example.com", "bucketName": "b" });
        let registry = || json!({ "interval": "5m", "type": "oci", "url": "oci://example.com/charts" });
        let chart = || json!({ "interval": "5m", "chart": "c", "sourceRef": { "kind": "HelmRepository", "name": "r" } });
        let sts = json!({ "provider": "aws", "endpoint": "https://sts.eu-west-1.amazonaws.com" });
        [
            (
                "GitRepository",
                git(),
                json!({ "interval": "0s" }),
                "spec.interval: it must be more than nothing",
            ),
            (
                "GitRepository",
                git(),
                json!({ "provider": "github" }),
                "secretRef with github app data must be specified",
            ),
            (
                "GitRepository",
                git(),
                json!({ "verify": { "mode": "Tag", "secretRef": { "name": "keys" } } }),
                "cannot verify tag object's signature",
            ),
            (
                "Bucket",
                bucket(),
                json!({ "bucketName": "a/b" }),
                "spec.bucketName: ",
            ),
            (
                "Bucket",
                bucket(),
                json!({ "sts": sts }),
                "STS provider 'aws' is not supported",
            ),
            (
                "Bucket",
                bucket(),
                json!({ "ignore": "a".repeat(10_000) }),
                "spec.ignore: a rule is longer than",
            ),
            (
                "HelmRepository",
                git(),
                json!({ "url": "oci://example.com/r" }),
                "invalid Helm repository URL: ",
            ),
            (
                "HelmRepository",
                registry(),
                json!({ "url": "https://example.com/r" }),
                "URL validation failed for ",
            ),
            (
                "HelmRepository",
                registry(),
                json!({ "accessFrom": { "namespaceSelectors": [] } }),
                "spec.accessFrom: ",
            ),
            (
                "OCIRepository",
                registry(),
                json!({ "url": "oci://example.com/r:v1" }),
                "URL validation failed for ",
            ),
            (
                "HelmChart",
                chart(),
                json!({ "chart": "Shop" }),
                "invalid chart reference: invalid chart name 'Shop'",
            ),
            (
                "HelmChart",
                chart(),
                json!({ "reconcileStrategy": "Always" }),
                "spec.reconcileStrategy: ",
            ),
        ]
        .map(|(kind, valid, change, expected)| (api::group::SOURCE, kind, valid, change, expected))
        .to_vec()
    }

    fn deployments() -> Vec<Case> {
        let flux = || json!({ "interval": "5m", "sourceRef": { "kind": "GitRepository", "name": "r" } });
        let gitops = || json!({ "interval": "5m", "source": { "git": { "url": "https://example.com/r" } } });
        [
            (
                api::group::FLUX_KLUCTL,
                flux(),
                json!({ "path": "../other" }),
                "spec.path: ",
            ),
            (
                api::group::FLUX_KLUCTL,
                flux(),
                json!({ "deployMode": "some" }),
                "spec.deployMode: ",
            ),
            (
                api::group::FLUX_KLUCTL,
                flux(),
                json!({ "timeout": "1ms" }),
                "spec.timeout: 1ms: must be at least 1s",
            ),
            (
                api::group::FLUX_KLUCTL,
                flux(),
                json!({ "helmCredentials": [{ "secretRef": { "name": "../a" } }] }),
                "spec.helmCredentials[0].secretRef.name: \"../a\": is not a valid object name",
            ),
            (
                api::group::GITOPS_KLUCTL,
                gitops(),
                json!({ "source": {} }),
                "missing source spec",
            ),
            (
                api::group::GITOPS_KLUCTL,
                gitops(),
                json!({ "deployMode": "some" }),
                "deployMode 'some' not supported",
            ),
            (
                api::group::GITOPS_KLUCTL,
                gitops(),
                json!({ "source": { "oci": { "url": "https://example.com/r" } } }),
                "unsupported scheme https, must be oci://",
            ),
            (
                api::group::GITOPS_KLUCTL,
                gitops(),
                json!({ "images": [{ "resultImage": "a" }] }),
                "spec.images: ",
            ),
        ]
        .map(|(group, valid, change, expected)| (group, "KluctlDeployment", valid, change, expected))
        .to_vec()
    }

    #[test]
    fn values_that_a_schema_lets_through_are_found() {
        let cases = kustomizations()
            .into_iter()
            .chain(deployments())
            .chain(sources())
            .chain(others());
        for (group, kind, valid, change, expected) in cases {
            assert!(check(group, kind, &valid).is_empty(), "{kind}");
            let mut invalid = valid;
            for (field, value) in change.as_object().unwrap() {
                invalid[field] = value.clone();
            }
            let found = check(group, kind, &invalid);
            assert_eq!(found.len(), 1, "{kind} {change}: {found:?}");
            assert!(
                found[0].to_string().starts_with(expected),
                "{kind} {change}: {}",
                found[0]
            );
        }
        assert!(check("apps", "Deployment", &json!({})).is_empty());
    }
}
