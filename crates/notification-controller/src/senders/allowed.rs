//! The ServiceAccounts that may send events, and the objects that each may report. Pure.

use std::collections::BTreeMap;

use api::Event;

/// The ServiceAccounts of the own namespace that may send by default: the name in which each reports, and the API groups of its
/// objects. The kluctl-controller reports in the names of both originals.
const CONTROLLERS: [(&str, &str, &[&str]); 4] = [
    (
        "source-controller",
        "source-controller",
        &["source.toolkit.fluxcd.io"],
    ),
    (
        "kustomize-controller",
        "kustomize-controller",
        &["kustomize.toolkit.fluxcd.io"],
    ),
    ("kluctl-controller", "flux-kluctl-controller", KLUCTL_GROUPS),
    ("kluctl-controller", "kluctl-controller", KLUCTL_GROUPS),
];
const KLUCTL_GROUPS: &[&str] = &["flux.kluctl.io", "gitops.kluctl.io"];

/// The allowed senders by user name, as in `system:serviceaccount:flux-system:source-controller`.
#[derive(Debug, Default)]
pub(super) struct Allowed(BTreeMap<String, Vec<Scope>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Scope {
    /// Value of `reportingController`.
    controller: String,
    /// API groups of the objects; all groups if empty.
    groups: Vec<String>,
}

impl Scope {
    fn admits(&self, event: &Event) -> bool {
        let group = event.group();
        self.controller == event.reporting_controller
            && (self.groups.is_empty() || self.groups.iter().any(|own| own == group))
    }
}

impl Allowed {
    /// Returns these senders; without any, our controllers in the namespace `own`.
    pub(super) fn new(senders: &[Sender], own: &str) -> Self {
        let mut allowed = Self::default();
        for sender in senders {
            allowed.add(&sender.namespace, &sender.account, sender.scope.clone());
        }
        if senders.is_empty() {
            for (account, controller, groups) in CONTROLLERS {
                let scope = Scope {
                    controller: controller.to_owned(),
                    groups: groups.iter().map(|&group| group.to_owned()).collect(),
                };
                allowed.add(own, account, scope);
            }
        }
        allowed
    }

    fn add(&mut self, namespace: &str, account: &str, scope: Scope) {
        let name = format!("system:serviceaccount:{namespace}:{account}");
        self.0.entry(name).or_default().push(scope);
    }

    pub(super) fn contains(&self, user: &str) -> bool {
        self.0.contains_key(user)
    }

    /// Returns true if a user may report an event: in the name of this controller, about an object of this API group.
    pub(super) fn admits(&self, user: &str, event: &Event) -> bool {
        let scopes = self.0.get(user).into_iter().flatten();
        scopes.into_iter().any(|scope| scope.admits(event))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender {
    namespace: String,
    account: String,
    scope: Scope,
}

impl std::str::FromStr for Sender {
    type Err = SenderError;

    fn from_str(text: &str) -> Result<Self, SenderError> {
        let fits = |part: &&str| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte))
        };
        let (sender, groups) = match text.split_once('=') {
            Some((sender, groups)) => (sender, groups.split('+').collect()),
            None => (text, Vec::new()),
        };
        let (namespace, account) = sender.split_once('/').ok_or(SenderError)?;
        let (account, controller) = account.split_once(':').unwrap_or((account, account));
        if !([namespace, account, controller].iter().all(fits) && groups.iter().all(fits)) {
            return Err(SenderError);
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            account: account.to_owned(),
            scope: Scope {
                controller: controller.to_owned(),
                groups: groups.into_iter().map(str::to_owned).collect(),
            },
        })
    }
}

/// The value is not a ServiceAccount with its namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a sender is a ServiceAccount, given as namespace/name, namespace/name:controller or namespace/name=group+group"
)]
pub struct SenderError;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(controller: &str, api_version: &str) -> Event {
        serde_json::from_value(json!({
            "involvedObject": {"apiVersion": api_version, "kind": "K", "name": "n", "namespace": "ns"},
            "message": "m", "reason": "r", "reportingController": controller,
        }))
        .unwrap()
    }

    fn admits(senders: &[&str], user: &str, controller: &str, api_version: &str) -> bool {
        let senders: Vec<Sender> = senders.iter().map(|text| text.parse().unwrap()).collect();
        let allowed = Allowed::new(&senders, "flux-system");
        let user = format!("system:serviceaccount:{user}");
        assert!(allowed.contains(&user), "{user}");
        allowed.admits(&user, &event(controller, api_version))
    }

    #[test]
    fn controllers_of_the_namespace_report_their_own_groups_in_their_own_name() {
        let (source, kluctl) = ("flux-system:source-controller", "flux-system:kluctl-controller");
        let (kustomize, kustomizations) = (
            "flux-system:kustomize-controller",
            "kustomize.toolkit.fluxcd.io/v1",
        );
        for (user, controller, version, expected) in [
            (kustomize, "kustomize-controller", kustomizations, true),
            (
                kustomize,
                "kustomize-controller",
                "source.toolkit.fluxcd.io/v1",
                false,
            ),
            (source, "kustomize-controller", kustomizations, false),
            (source, "source-controller", "source.toolkit.fluxcd.io/v1", true),
            (source, "source-controller", "flux.kluctl.io/v1alpha1", false),
            (source, "kluctl-controller", "source.toolkit.fluxcd.io/v1", false),
            (source, "source-controller", "v1", false),
            (source, "source-controller", "", false),
            (kluctl, "flux-kluctl-controller", "flux.kluctl.io/v1alpha1", true),
            (kluctl, "flux-kluctl-controller", "gitops.kluctl.io/v1beta1", true),
            (
                kluctl,
                "flux-kluctl-controller",
                "source.toolkit.fluxcd.io/v1",
                false,
            ),
            (source, "flux-kluctl-controller", "flux.kluctl.io/v1alpha1", false),
            (kluctl, "kluctl-controller", "flux.kluctl.io/v1alpha1", true),
            (kluctl, "kluctl-controller", "gitops.kluctl.io/v1beta1", true),
            (kluctl, "kluctl-controller", "source.toolkit.fluxcd.io/v1", false),
            (kluctl, "", "flux.kluctl.io/v1alpha1", false),
        ] {
            assert_eq!(
                admits(&[], user, controller, version),
                expected,
                "{user} {controller} {version}"
            );
        }
    }

    #[test]
    fn given_senders_replace_the_controllers_of_the_namespace() {
        let given = ["team/automation".parse().unwrap()];
        let names: Vec<String> = Allowed::new(&given, "flux-system").0.into_keys().collect();
        assert_eq!(names, ["system:serviceaccount:team:automation"]);
        for wrong in [
            "", "a", "/a", "a/", "a/b/c", "a:b/c", "A/b", "a/b:", "a/b=", "a/b=c+", "a/b=c,d", "a/b=C",
            "a/b:c:d",
        ] {
            assert!(wrong.parse::<Sender>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn given_senders_have_a_name_and_groups() {
        let user = "team:automation";
        let (any, named) = ("team/automation", "team/automation:robot=a.example+b.example");
        assert!(admits(&[any], user, "automation", "x.example/v1"));
        assert!(!admits(&[any], user, "robot", "x.example/v1"));
        assert!(admits(&[named], user, "robot", "b.example/v1"));
        assert!(!admits(&[named], user, "automation", "b.example/v1"));
        assert!(!admits(&[named], user, "robot", "c.example/v1"));
        assert!(
            admits(&[named, any], user, "automation", "c.example/v1"),
            "each entry counts"
        );
    }
}
