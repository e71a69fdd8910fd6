//! Faults of charts, in the words of the original. Pure.

use api::{Class, Fault, Reason, condition_type as types};

use source_specs::helm_chart::invalid_reference;

use crate::source_kind::failure_conditions;

/// Returns a fault that starts with the summary of its reason. It stalls if only a change of the object or its source helps.
pub(super) fn build(reason: Reason, why: &str) -> Fault {
    let summary = match reason {
        Reason::InvalidChartReference => return invalid_reference(why),
        Reason::ChartPullError => "chart pull error",
        Reason::MetadataPatchError => "chart metadata patch error",
        Reason::ValuesFilesError => "values files merge error",
        Reason::DependencyBuildError => "dependency build error",
        Reason::ChartVerificationError => "chart verification error",
        _ => "chart package error",
    };
    let message = format!("{summary}: {why}");
    match reason {
        Reason::ChartPullError if is_refusal(why) => Fault::retry(Reason::AuthenticationFailed, message),
        Reason::MetadataPatchError | Reason::ValuesFilesError => Fault::stall(reason, message),
        _ => Fault::retry(reason, message),
    }
}

/// Returns true if a server refused the credentials, or its certificate was refused, by words of the message, as in the original.
fn is_refusal(why: &str) -> bool {
    [
        "401 Unauthorized",
        "authentication failed for",
        "invalid peer certificate",
    ]
    .iter()
    .any(|words| why.contains(words))
}

/// Words a fault of another kind as a failure of this reason. Faults of secrets and of the storage are unchanged.
pub(super) fn reworded(reason: Reason, prefix: &str, fault: Fault) -> Fault {
    let why = format!("{prefix}{}", fault.message);
    match fault.reason {
        Reason::GitOperationFailed
        | Reason::OCIArtifactPullFailed
        | Reason::OCIArtifactLayerOperationFailed
        | Reason::ReadOperationFailed
        | Reason::VerificationError
        | Reason::Failed
        | Reason::IndexationFailed => Fault {
            class: fault.class,
            ..build(reason, &why)
        },
        _ => fault,
    }
}

pub(super) fn unfound(chart: &str, range: &str, error: &oci::Error) -> Fault {
    let why = match error {
        oci::Error::NoChart { .. } => "no chart name found".to_owned(),
        oci::Error::NoVersion { .. } => format!("no '{chart}' chart with version matching '{range}' found"),
        error => error.to_string(),
    };
    let why = format!("failed to get chart version for remote reference: {why}");
    match error {
        oci::Error::NoChart { .. } | oci::Error::NoVersion { .. } | oci::Error::InvalidRange { .. } => {
            build(Reason::InvalidChartReference, &why)
        }
        _ => build(Reason::ChartPullError, &why),
    }
}

pub(super) fn pull(fault: Fault) -> Fault {
    let prefix = "failed to get chart version for remote reference: ";
    reworded(Reason::ChartPullError, prefix, fault)
}

/// Makes a fault one that is retried: nothing wakes a chart of a registry when it gets another version.
pub(super) fn retried(fault: Fault) -> Fault {
    Fault {
        class: match fault.class {
            Class::Stall => Class::Retry,
            class => class,
        },
        ..fault
    }
}

pub(super) fn conditions(reason: Reason) -> &'static [&'static str] {
    match reason {
        Reason::MetadataPatchError
        | Reason::ValuesFilesError
        | Reason::DependencyBuildError
        | Reason::ChartPackageError => &[types::BUILD_FAILED],
        Reason::ChartVerificationError => &[types::BUILD_FAILED, types::SOURCE_VERIFIED],
        Reason::SourceUnavailable
        | Reason::UnsupportedSourceKind
        | Reason::NoSourceArtifact
        | Reason::InvalidChartReference
        | Reason::ChartPullError
        | Reason::Failed => &[types::FETCH_FAILED],
        reason => failure_conditions(reason),
    }
}
