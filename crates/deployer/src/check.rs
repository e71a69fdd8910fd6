//! Refuses invalid references before anything is done.

use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
};

use api::{Fault, Reason, SourceReference, check_object_name};
use kube::Resource as _;
use limits::compute;
use runtime::{Pass, names::is_path_segment};

use crate::{Consumer, SourceKind, consumer, dependencies::compile};

/// Checks all references of an object, but not their expressions: [`check_expressions`] does that.
///
/// # Errors
/// A stalling fault that names the field and its value: the source is missing, or of a kind or version that is not
/// accepted; the object depends on itself; a name is not valid for an object.
pub fn check<C: Consumer>(object: &C::Object) -> Result<(), Fault> {
    if !C::has_own_source(object) {
        source(C::source_ref(object).as_ref(), C::SOURCE_KINDS)?;
    }
    dependencies::<C>(object)?;
    target::<C>(object)
}

fn source(reference: Option<&SourceReference>, accepted: &[SourceKind]) -> Result<(), Fault> {
    let Some(reference) = reference else {
        let kinds: Vec<&str> = accepted.iter().map(|kind| kind.name()).collect();
        let message = format!(
            "spec.sourceRef: is missing: name the {} to deploy",
            kinds.join(" or ")
        );
        return Err(Fault::stall(Reason::InvalidSpec, message));
    };
    let Some(kind) = SourceKind::named(&reference.kind).filter(|kind| accepted.contains(kind)) else {
        return Err(Fault::unsupported("spec.sourceRef.kind", &reference.kind));
    };
    if let Some(given) = reference.api_version.as_deref().filter(|given| !given.is_empty()) {
        let known =
            |(group, version): (&str, &str)| group == kind.group() && kind.versions().contains(&version);
        if !given.split_once('/').is_some_and(known) {
            return Err(Fault::unsupported("spec.sourceRef.apiVersion", given));
        }
    }
    if reference.name.is_empty() {
        return Err(invalid(
            "spec.sourceRef.name",
            "\"\"",
            format_args!("must name a {kind}"),
        ));
    }
    check_segments("spec.sourceRef", &reference.name, reference.namespace.as_deref())
}

fn dependencies<C: Consumer>(object: &C::Object) -> Result<(), Fault> {
    let (own, kind) = (C::key(object), C::Object::kind(&()));
    for (i, reference) in C::depends_on(object).iter().enumerate() {
        let path = format!("spec.dependsOn[{i}]");
        let is_own = consumer::is_kind(reference, &kind);
        if is_own && consumer::dependency_key(reference, &own.namespace) == own {
            return Err(invalid(&path, own, "an object can't depend on itself"));
        }
        if !is_own && reference.api_version.as_deref().unwrap_or_default().is_empty() {
            let path = format!("{path}.apiVersion");
            return Err(invalid(&path, "\"\"", "is required for another kind"));
        }
        check_segments(&path, &reference.name, reference.namespace.as_deref())?;
    }
    Ok(())
}

/// Checks the expressions of an object's dependencies, on a thread of its namespace. The pass gives back its permit meanwhile.
///
/// # Errors
/// A stalling fault that names the dependency if one is not valid, or not of the type bool; one that is retried if the thread was needed for
/// other namespaces.
pub async fn check_expressions<C: Consumer>(pass: &Pass<'_, C::Object>) -> Result<(), Fault> {
    let references = C::depends_on(pass.object).into_iter();
    let expressions = references.filter_map(|reference| {
        let source = reference.ready_expr.filter(|source| !source.is_empty())?;
        Some((reference.name, source))
    });
    let expressions: Vec<_> = expressions.collect();
    if expressions.is_empty() {
        return Ok(());
    }
    let checked = compute(pass.namespace, move |cancelled| {
        check_all(&expressions, cancelled)
    });
    pass.slot.waiting(checked).await.unwrap_or_else(|| Err(stopped()))
}

fn check_all(expressions: &[(String, String)], cancelled: &AtomicBool) -> Result<(), Fault> {
    expressions
        .iter()
        .try_for_each(|(name, source)| match cancelled.load(Ordering::Relaxed) {
            true => Err(stopped()),
            false => compile(name, source).map(drop),
        })
}

/// Returns the fault of expressions without a result, because other namespaces waited for their threads.
pub(crate) fn stopped() -> Fault {
    Fault::retry(Reason::InternalError, "the expressions cannot be evaluated now")
}

/// Checks the names that say where and as whom to deploy.
fn target<C: Consumer>(object: &C::Object) -> Result<(), Fault> {
    const SECRET: &str = "spec.kubeConfig.secretRef.name";
    let secret = C::kube_config(object).map(|config| config.secret_ref.name.as_str());
    if secret.is_some_and(str::is_empty) {
        return Err(invalid(SECRET, "\"\"", "must name a Secret"));
    }
    let names = [
        ("spec.serviceAccountName", C::service_account_name(object)),
        (SECRET, secret),
    ];
    for (path, name) in names {
        // A colon in the name of a ServiceAccount would change which user is impersonated.
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            check_object_name(path, name)?;
        }
    }
    Ok(())
}

/// Checks the name and namespace of a reference to an object of any kind, such as a role, whose names have a wider alphabet.
fn check_segments(path: &str, name: &str, namespace: Option<&str>) -> Result<(), Fault> {
    if !is_path_segment(name) {
        let path = format!("{path}.name");
        return Err(invalid(
            &path,
            format_args!("{name:?}"),
            "is not a valid object name",
        ));
    }
    let namespace = namespace.filter(|namespace| !namespace.is_empty());
    namespace.map_or(Ok(()), |namespace| {
        check_object_name(&format!("{path}.namespace"), namespace)
    })
}

fn invalid(path: &str, value: impl fmt::Display, why: impl fmt::Display) -> Fault {
    Fault::stall(Reason::InvalidSpec, format!("{path}: {value}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_checked_until_the_thread_is_needed_for_others() {
        let expressions =
            ["dep.a == 1", "1 +"].map(|source| (format!("path of {source}"), source.to_owned()));
        let invalid = check_all(&expressions, &AtomicBool::new(false)).unwrap_err();
        assert_eq!(invalid.reason, Reason::InvalidCELExpression);
        assert!(
            invalid
                .message
                .starts_with("failed to evaluate dependency path of 1 +: failed to parse"),
            "{invalid}"
        );
        assert_eq!(check_all(&expressions, &AtomicBool::new(true)), Err(stopped()));
    }
}
