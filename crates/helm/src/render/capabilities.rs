//! `.Capabilities`: the versions of the cluster, its APIs and Helm.

use std::rc::Rc;

use tree::Budget;

use super::{
    Options,
    records::{Field, Record, field},
};
use crate::template::{FormatError, FunctionError};
use crate::{
    Error, HelmVersion, List, Object, Value,
    template::{Signature, Type},
};

/// The version of Kubernetes whose client library Helm 4 is built with.
const CLIENT_VERSION: &str = "v1.37";

/// The API versions that Helm 3 assumes without a cluster.
const API_VERSIONS_3: &str = "v1 admissionregistration.k8s.io/v1 admissionregistration.k8s.io/v1alpha1 \
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

/// The API versions that Helm 4 assumes without a cluster.
const API_VERSIONS_4: &str = "v1 admissionregistration.k8s.io/v1 admissionregistration.k8s.io/v1alpha1 admissionregistration.k8s.io/v1beta1 \
    internal.apiserver.k8s.io/v1alpha1 apps/v1 apps/v1beta1 apps/v1beta2 authentication.k8s.io/v1 \
    authentication.k8s.io/v1alpha1 authentication.k8s.io/v1beta1 authorization.k8s.io/v1 \
    authorization.k8s.io/v1beta1 autoscaling/v1 autoscaling/v2 batch/v1 batch/v1beta1 certificates.k8s.io/v1 \
    certificates.k8s.io/v1beta1 certificates.k8s.io/v1alpha1 coordination.k8s.io/v1alpha2 \
    coordination.k8s.io/v1beta1 coordination.k8s.io/v1 discovery.k8s.io/v1 discovery.k8s.io/v1beta1 events.k8s.io/v1 \
    events.k8s.io/v1beta1 extensions/v1beta1 flowcontrol.apiserver.k8s.io/v1 flowcontrol.apiserver.k8s.io/v1beta1 \
    flowcontrol.apiserver.k8s.io/v1beta2 flowcontrol.apiserver.k8s.io/v1beta3 lifecycle.k8s.io/v1alpha1 \
    networking.k8s.io/v1 networking.k8s.io/v1beta1 node.k8s.io/v1 node.k8s.io/v1alpha1 node.k8s.io/v1beta1 policy/v1 \
    policy/v1beta1 rbac.authorization.k8s.io/v1 rbac.authorization.k8s.io/v1beta1 rbac.authorization.k8s.io/v1alpha1 \
    resource.k8s.io/v1 resource.k8s.io/v1beta2 resource.k8s.io/v1beta1 resource.k8s.io/v1alpha3 \
    scheduling.k8s.io/v1alpha3 scheduling.k8s.io/v1beta1 scheduling.k8s.io/v1 storage.k8s.io/v1beta1 \
    storage.k8s.io/v1 storage.k8s.io/v1alpha1 storagemigration.k8s.io/v1 storagemigration.k8s.io/v1beta1 \
    apiextensions.k8s.io/v1beta1 apiextensions.k8s.io/v1";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeVersion {
    /// The numbers, such as `v1.33.0`.
    pub version: String,
    pub major: String,
    pub minor: String,
    /// The version as given, with its suffix, such as `v1.33.0-gke.1`.
    given: String,
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
        let v = if text.starts_with('v') { "" } else { "v" };
        Ok(Self {
            version: format!("v{}", numbers.join(".")),
            major: part(0),
            minor: part(1),
            given: format!("{v}{text}"),
        })
    }
}

#[derive(Debug)]
pub(super) struct Capabilities {
    pub(super) kube_version: KubeVersion,
    api_versions: Vec<String>,
    helm: HelmVersion,
}

impl Capabilities {
    pub(super) fn new(options: &Options<'_>) -> Result<Self, Error> {
        let helm = options.helm_version;
        let given = options.kube_version.as_deref();
        let version = given
            .filter(|given| !given.is_empty())
            .unwrap_or(helm.kube_version());
        let kube_version = KubeVersion::parse(version)
            .map_err(|words| Error::Option(format!("invalid kube version '{version}': {words}")))?;
        let own = if options.only_api_versions {
            ""
        } else {
            helm.pick(API_VERSIONS_3, API_VERSIONS_4)
        };
        let own = own.split_whitespace().map(str::to_owned);
        Ok(Self {
            kube_version,
            api_versions: own.chain(options.api_versions.iter().cloned()).collect(),
            helm,
        })
    }

    /// Returns the version of Kubernetes as messages name it.
    pub(super) fn full_kube_version(&self) -> &str {
        self.kube_version.full(self.helm)
    }

    pub(super) fn value(&self) -> Value {
        let helm = self.helm;
        let build = build_info(helm);
        let printed = format!(
            "{{{} [{}] {}}}",
            self.kube_version.printed(helm),
            self.api_versions.join(" "),
            build.text
        );
        let versions = VersionSet {
            type_name: helm.pick("chartutil.VersionSet", "common.VersionSet"),
            versions: Rc::new(
                self.api_versions
                    .iter()
                    .map(|one| Value::string(one.as_str()))
                    .collect(),
            ),
        };
        Value::Object(Rc::new(Record {
            type_name: helm.pick("*chartutil.Capabilities", "*common.Capabilities"),
            kind_name: "ptr",
            fields: vec![
                field(
                    "KubeVersion",
                    "KubeVersion",
                    Value::Object(Rc::new(self.kube_version.record(helm))),
                ),
                field("APIVersions", "APIVersions", Value::Object(Rc::new(versions))),
                field("HelmVersion", "HelmVersion", Value::Object(Rc::new(build))),
            ],
            argument: Some(format!("&{printed}")),
            text: printed,
        }))
    }
}

impl KubeVersion {
    /// Returns the field `Version`: Helm 4 retains the suffix.
    fn full(&self, helm: HelmVersion) -> &str {
        helm.pick(&self.version, &self.given)
    }

    /// Formats the struct, in Helm 4 with its private field.
    fn printed(&self, helm: HelmVersion) -> String {
        let KubeVersion {
            version,
            major,
            minor,
            given,
        } = self;
        match helm {
            HelmVersion::V3 => format!("{{{version} {major} {minor}}}"),
            HelmVersion::V4 => format!("{{{given} {version} {major} {minor}}}"),
        }
    }

    fn record(&self, helm: HelmVersion) -> Record {
        let full = self.full(helm);
        let mut kube = vec![
            field("Version", "Version", Value::string(full)),
            field("Major", "Major", Value::string(self.major.as_str())),
            field("Minor", "Minor", Value::string(self.minor.as_str())),
        ];
        for (method, version) in [("GitVersion", full), ("String", &self.version)] {
            kube.push(Field {
                json: None,
                ..field(method, "", Value::string(version))
            });
        }
        Record {
            type_name: helm.pick("chartutil.KubeVersion", "common.KubeVersion"),
            kind_name: "struct",
            fields: kube,
            text: self.version.clone(),
            argument: Some(self.printed(helm)),
        }
    }
}

fn build_info(helm: HelmVersion) -> Record {
    let release = helm.release();
    let hidden = |name: &'static str| Field {
        json: None,
        ..field(name, "", Value::string(""))
    };
    let mut fields = vec![
        field("Version", "version", Value::string(release)),
        hidden("GitCommit"),
        hidden("GitTreeState"),
        hidden("GoVersion"),
    ];
    let mut text = format!("{{{release}   ");
    if helm.is_four() {
        fields.push(field(
            "KubeClientVersion",
            "kube_client_version",
            Value::string(CLIENT_VERSION),
        ));
        text = format!("{text} {CLIENT_VERSION}");
    }
    Record {
        type_name: "version.BuildInfo",
        kind_name: "struct",
        fields,
        text: format!("{text}}}"),
        argument: None,
    }
}

#[derive(Debug)]
struct VersionSet {
    type_name: &'static str,
    versions: List,
}

impl Object for VersionSet {
    fn type_name(&self) -> &str {
        self.type_name
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
        Some(Ok(Value::Bool(
            self.versions.iter().any(|one| text(one) == wanted),
        )))
    }

    fn as_list(&self) -> Option<List> {
        Some(self.versions.clone())
    }

    fn print(&self, budget: &Budget) -> Result<String, FormatError> {
        budget.step(self.versions.len() as u64)?;
        let text = |value: &Value| match value {
            Value::String(text) => text.to_string(),
            _ => String::new(),
        };
        let items: Vec<String> = self.versions.iter().map(text).collect();
        Ok(format!("[{}]", items.join(" ")))
    }

    fn truth(&self) -> bool {
        !self.versions.is_empty()
    }
}
