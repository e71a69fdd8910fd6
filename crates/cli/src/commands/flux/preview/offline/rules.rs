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
        let checked = oci_repository::validate(spec);
        self.fault(checked.and_then(|()| oci_repository::identities(spec).map(drop)));
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
mod tests;
