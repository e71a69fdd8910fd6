//! `.Capabilities`: the versions of the cluster, its APIs and Helm.

use std::rc::Rc;

use super::{
    Options,
    records::{Field, Record, field},
};
use crate::template::FunctionError;
use crate::{
    Error, List, Object, Value,
    template::{Signature, Type},
};

/// The version of Helm that templates see.
const HELM_VERSION: &str = "v3.19.4";

/// The API versions that Helm assumes without a cluster.
const API_VERSIONS: &str = "v1 admissionregistration.k8s.io/v1 admissionregistration.k8s.io/v1alpha1 \
    admissionregistration.k8s.io/v1beta1 internal.apiserver.k8s.io/v1alpha1 apps/v1 apps/v1beta1 apps/v1beta2 \
    authentication.k8s.io/v1 authentication.k8s.io/v1alpha1 authentication.k8s.io/v1beta1 authorization.k8s.io/v1 \
    authorization.k8s.io/v1beta1 autoscaling/v1 autoscaling/v2 autoscaling/v2beta1 autoscaling/v2beta2 batch/v1 \
    batch/v1beta1 certificates.k8s.io/v1 certificates.k8s.io/v1beta1 certificates.k8s.io/v1alpha1 \
    coordination.k8s.io/v1alpha2 coordination.k8s.io/v1beta1 coordination.k8s.io/v1 discovery.k8s.io/v1 \
    discovery.k8s.io/v1beta1 events.k8s.io/v1 events.k8s.io/v1beta1 extensions/v1beta1 \
    flowcontrol.apiserver.k8s.io/v1 flowcontrol.apiserver.k8s.io/v1beta1 flowcontrol.apiserver.k8s.io/v1beta2 \
    flowcontrol.apiserver.k8s.io/v1beta3 networking.k8s.io/v1 networking.k8s.io/v1beta1 node.k8s.io/v1 \
    node.k8s.io/v1alpha1 node.k8s.io/v1beta1 policy/v1 policy/v1beta1 rbac.authorization.k8s.io/v1 \
    rbac.authorization.k8s.io/v1beta1 rbac.authorization.k8s.io/v1alpha1 resource.k8s.io/v1 resource.k8s.io/v1beta2 \
    resource.k8s.io/v1beta1 resource.k8s.io/v1alpha3 scheduling.k8s.io/v1alpha1 scheduling.k8s.io/v1beta1 \
    scheduling.k8s.io/v1 storage.k8s.io/v1beta1 storage.k8s.io/v1 storage.k8s.io/v1alpha1 \
    storagemigration.k8s.io/v1alpha1 apiextensions.k8s.io/v1beta1 apiextensions.k8s.io/v1";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeVersion {
    /// With all its parts, such as `v1.33.0`.
    pub version: String,
    pub major: String,
    pub minor: String,
}

/// An invalid Kubernetes version, as Helm reports it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeVersionError {
    #[error("could not parse {0:?} as version")]
    Invalid(String),
    #[error("illegal version string {0:?}")]
    TooFewNumbers(String),
    #[error("illegal zero-prefixed version component {component:?} in {version:?}")]
    LeadingZero { component: String, version: String },
    #[error(
        "illegal non-numeric version component {component:?} in {version:?}: strconv.ParseUint: parsing \
         {component:?}: value out of range"
    )]
    OutOfRange { component: String, version: String },
}

impl KubeVersion {
    /// Parses a version of at least two numbers of 64 bits; the rest is dropped.
    pub fn parse(text: &str) -> Result<Self, KubeVersionError> {
        let bare = text.trim_start();
        let bare = bare.strip_prefix('v').unwrap_or(bare);
        let mut numbers = Vec::new();
        let mut rest = bare;
        loop {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
            if digits.is_empty() {
                break;
            }
            numbers.push(digits);
            match behind.strip_prefix('.') {
                Some(next) => rest = next,
                None => break,
            }
        }
        if numbers.is_empty() || text.contains('\n') {
            return Err(KubeVersionError::Invalid(text.to_owned()));
        }
        if numbers.len() < 2 {
            return Err(KubeVersionError::TooFewNumbers(text.to_owned()));
        }
        let number = |(n, digits): (usize, &&str)| {
            let component = || (*digits).to_owned();
            if n == 0 && digits.len() > 1 && digits.starts_with('0') {
                return Err(KubeVersionError::LeadingZero {
                    component: component(),
                    version: text.to_owned(),
                });
            }
            let number = digits.parse::<u64>().map(|number| number.to_string());
            number.map_err(|_| KubeVersionError::OutOfRange {
                component: component(),
                version: text.to_owned(),
            })
        };
        let numbers = numbers
            .iter()
            .enumerate()
            .map(number)
            .collect::<Result<Vec<_>, _>>()?;
        let part = |n: usize| numbers.get(n).cloned().unwrap_or_default();
        Ok(Self {
            version: format!("v{}", numbers.join(".")),
            major: part(0),
            minor: part(1),
        })
    }
}

#[derive(Debug)]
pub(super) struct Capabilities {
    pub(super) kube_version: KubeVersion,
    api_versions: Vec<String>,
}

impl Capabilities {
    pub(super) fn new(options: &Options<'_>) -> Result<Self, Error> {
        let given = options.kube_version.as_deref();
        let version = given.filter(|given| !given.is_empty()).unwrap_or("1.20.0");
        let kube_version = KubeVersion::parse(version)
            .map_err(|words| Error::Option(format!("invalid kube version '{version}': {words}")))?;
        let own = if options.only_api_versions {
            ""
        } else {
            API_VERSIONS
        };
        let own = own.split_whitespace().map(str::to_owned);
        Ok(Self {
            kube_version,
            api_versions: own.chain(options.api_versions.iter().cloned()).collect(),
        })
    }

    pub(super) fn value(&self) -> Value {
        let text = |text: &str| Value::string(text);
        let KubeVersion {
            version,
            major,
            minor,
        } = &self.kube_version;
        let printed = format!(
            "&{{{{{version} {major} {minor}}} [{}] {{{HELM_VERSION}   }}}}",
            self.api_versions.join(" ")
        );
        let versions = VersionSet(Rc::new(self.api_versions.iter().map(|one| text(one)).collect()));
        Value::Object(Rc::new(Record {
            type_name: "*chartutil.Capabilities",
            kind_name: "ptr",
            fields: vec![
                field(
                    "KubeVersion",
                    "KubeVersion",
                    Value::Object(Rc::new(self.kube_version.record())),
                ),
                field("APIVersions", "APIVersions", Value::Object(Rc::new(versions))),
                field(
                    "HelmVersion",
                    "HelmVersion",
                    Value::Object(Rc::new(helm_record())),
                ),
            ],
            text: printed,
            argument: None,
        }))
    }
}

impl KubeVersion {
    fn record(&self) -> Record {
        let KubeVersion {
            version,
            major,
            minor,
        } = self;
        let mut kube = vec![
            field("Version", "Version", Value::string(version.as_str())),
            field("Major", "Major", Value::string(major.as_str())),
            field("Minor", "Minor", Value::string(minor.as_str())),
        ];
        for method in ["GitVersion", "String"] {
            kube.push(Field {
                json: None,
                ..field(method, "", Value::string(version.as_str()))
            });
        }
        Record {
            type_name: "chartutil.KubeVersion",
            kind_name: "struct",
            fields: kube,
            text: version.clone(),
            argument: Some(format!("{{{version} {major} {minor}}}")),
        }
    }
}

fn helm_record() -> Record {
    Record {
        type_name: "version.BuildInfo",
        kind_name: "struct",
        fields: vec![
            field("Version", "version", Value::string(HELM_VERSION)),
            Field {
                json: None,
                ..field("GitCommit", "", Value::string(""))
            },
            Field {
                json: None,
                ..field("GitTreeState", "", Value::string(""))
            },
            Field {
                json: None,
                ..field("GoVersion", "", Value::string(""))
            },
        ],
        text: format!("{{{HELM_VERSION}   }}"),
        argument: None,
    }
}

#[derive(Debug)]
struct VersionSet(List);

impl Object for VersionSet {
    fn type_name(&self) -> &str {
        "chartutil.VersionSet"
    }

    fn kind_name(&self) -> &'static str {
        "slice"
    }

    fn field(&self, _: &str) -> Option<Value> {
        None
    }

    fn signature(&self, name: &str) -> Option<Signature> {
        (name == "Has").then(|| Signature::fixed(&[Type::String]))
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, FunctionError>> {
        self.signature(name)?;
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            _ => None,
        };
        let wanted = arguments.first().and_then(text);
        Some(Ok(Value::Bool(self.0.iter().any(|one| text(one) == wanted))))
    }

    fn as_list(&self) -> Option<List> {
        Some(self.0.clone())
    }

    fn print(&self) -> String {
        let text = |value: &Value| match value {
            Value::String(text) => text.to_string(),
            _ => String::new(),
        };
        let items: Vec<String> = self.0.iter().map(text).collect();
        format!("[{}]", items.join(" "))
    }

    fn truth(&self) -> bool {
        !self.0.is_empty()
    }
}
