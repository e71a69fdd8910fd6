//! Single rights: one verb on one kind.

use k8s_openapi::api::rbac::v1::PolicyRule;
use testkit::audit::Entry;

use super::{covers, roles::Granted};

/// One verb on one kind, or on everything.
#[derive(Debug, Clone, PartialEq)]
pub struct Right {
    /// A rule with one group, one resource and one verb.
    pub rule: PolicyRule,
    /// `None` for all namespaces.
    pub namespace: Option<String>,
}

impl Right {
    /// Splits rules into the rights that they give.
    #[must_use]
    pub fn all_of(granted: &[Granted]) -> Vec<Self> {
        let mut rights = Vec::new();
        for Granted { rule, namespace } in granted {
            let (groups, resources) = (rule.api_groups.iter().flatten(), rule.resources.iter().flatten());
            for (group, resource) in groups.flat_map(|group| resources.clone().map(move |one| (group, one))) {
                rights.extend(rule.verbs.iter().map(|verb| Self {
                    rule: PolicyRule {
                        verbs: vec![verb.clone()],
                        api_groups: Some(vec![group.clone()]),
                        resources: Some(vec![resource.clone()]),
                        ..rule.clone()
                    },
                    namespace: namespace.clone(),
                }));
            }
        }
        rights
    }

    #[must_use]
    pub fn verb(&self) -> &str {
        self.rule.verbs.first().map(String::as_str).unwrap_or_default()
    }

    #[must_use]
    pub fn group(&self) -> &str {
        first(self.rule.api_groups.as_ref())
    }

    #[must_use]
    pub fn resource(&self) -> &str {
        first(self.rule.resources.as_ref())
    }

    /// Returns true for a verb on all kinds.
    #[must_use]
    pub fn is_on_everything(&self) -> bool {
        self.resource() == "*"
    }

    /// Returns true if this request was allowed, and needs this right or one that includes it.
    #[must_use]
    pub fn was_used_by(&self, entry: &Entry) -> bool {
        if entry.is_denied() || self.namespace.as_ref().is_some_and(|own| *own != entry.namespace) {
            return false;
        }
        match &entry.impersonated {
            Some(_) => self.verb() == "impersonate",
            None => covers(&self.rule, entry),
        }
    }

    /// Returns the words of the API server about a request without this right.
    #[must_use]
    pub fn denial(&self) -> String {
        let (verb, resource, group) = (self.verb(), self.resource(), self.group());
        format!("cannot {verb} resource \"{resource}\" in API group \"{group}\"")
    }
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}/{}", self.verb(), self.group(), self.resource())?;
        self.namespace.iter().try_for_each(|name| write!(f, " in {name}"))
    }
}

fn first(list: Option<&Vec<String>>) -> &str {
    list.and_then(|list| list.first())
        .map(String::as_str)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(verbs: &[&str], groups: &[&str], resources: &[&str]) -> Granted {
        let list = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        Granted {
            rule: PolicyRule {
                verbs: list(verbs),
                api_groups: Some(list(groups)),
                resources: Some(list(resources)),
                resource_names: Some(list(&["own"])),
                ..PolicyRule::default()
            },
            namespace: Some("ns".to_owned()),
        }
    }

    #[test]
    fn rules_give_a_right_for_each_verb_on_each_kind() {
        let rights = Right::all_of(&[granted(&["get", "patch"], &["", "events.k8s.io"], &["events"])]);
        let texts: Vec<String> = rights.iter().map(Right::to_string).collect();
        assert_eq!(
            texts,
            [
                "get /events in ns",
                "patch /events in ns",
                "get events.k8s.io/events in ns",
                "patch events.k8s.io/events in ns"
            ]
        );
        assert!(
            rights
                .iter()
                .all(|right| right.rule.resource_names == Some(vec!["own".to_owned()]))
        );
        assert_eq!(
            rights[1].denial(),
            "cannot patch resource \"events\" in API group \"\""
        );
    }

    #[test]
    fn requests_use_the_rights_that_allow_them() {
        let rights = Right::all_of(&[granted(&["get"], &[""], &["secrets"])]);
        let mut request = Entry {
            verb: "get".to_owned(),
            resource: "secrets".to_owned(),
            namespace: "ns".to_owned(),
            decision: "allow".to_owned(),
            ..Entry::default()
        };
        assert!(rights[0].was_used_by(&request));
        request.namespace = "other".to_owned();
        assert!(!rights[0].was_used_by(&request));
        request.namespace = "ns".to_owned();
        request.impersonated = Some("someone".to_owned());
        assert!(!rights[0].was_used_by(&request));
        request.impersonated = None;
        request.decision = "forbid".to_owned();
        assert!(!rights[0].was_used_by(&request));
    }
}
