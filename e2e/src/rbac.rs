//! Compares the RBAC rules of an account with its requests in the audit log.

pub mod right;
pub mod roles;

use std::collections::BTreeSet;

use k8s_openapi::api::rbac::v1::PolicyRule;
use testkit::audit::Entry;

#[derive(Debug, Default, PartialEq)]
pub struct RuleUsage {
    /// Requests that were denied.
    pub denied: BTreeSet<String>,
    /// Rules that no request needed.
    pub unused: BTreeSet<String>,
}

impl RuleUsage {
    #[must_use]
    pub fn fits(&self) -> bool {
        self.denied.is_empty() && self.unused.is_empty()
    }
}

/// Compares the rules of an account with its requests. `user` is its name in the audit log.
#[must_use]
pub fn compare(user: &str, rules: &[PolicyRule], entries: &[Entry]) -> RuleUsage {
    let own: Vec<&Entry> = entries
        .iter()
        .filter(|entry| entry.user == user && entry.impersonated.is_none())
        .collect();
    let impersonates = entries
        .iter()
        .any(|entry| entry.user == user && entry.impersonated.is_some());
    let denied = own
        .iter()
        .filter(|entry| entry.is_denied())
        .map(|entry| describe(entry))
        .collect();
    let unused = rules
        .iter()
        .filter(|rule| !own.iter().any(|entry| !entry.is_denied() && covers(rule, entry)))
        .filter(|rule| !(impersonates && lets_impersonate(rule)))
        .map(|rule| {
            let groups = rule.api_groups.clone().unwrap_or_default().join(",");
            let resources = rule.resources.clone().unwrap_or_default().join(",");
            format!("{} {groups}/{resources}", rule.verbs.join(","))
        })
        .collect();
    RuleUsage { denied, unused }
}

/// Returns true for the rule that a request as a service account needs.
fn lets_impersonate(rule: &PolicyRule) -> bool {
    let resources = rule.resources.as_deref().unwrap_or_default();
    rule.verbs == ["impersonate"] && resources == ["serviceaccounts"]
}

fn describe(entry: &Entry) -> String {
    let resource = resource(entry);
    format!(
        "{} {}/{resource} in {:?} ({})",
        entry.verb, entry.group, entry.namespace, entry.code
    )
}

fn resource(entry: &Entry) -> String {
    if entry.subresource.is_empty() {
        entry.resource.clone()
    } else {
        format!("{}/{}", entry.resource, entry.subresource)
    }
}

fn covers(rule: &PolicyRule, entry: &Entry) -> bool {
    let has = |list: &Option<Vec<String>>, value: &str| {
        list.as_ref()
            .is_some_and(|list| list.iter().any(|item| item == value || item == "*"))
    };
    let verb = rule.verbs.iter().any(|verb| verb == "*" || *verb == entry.verb);
    verb && has(&rule.api_groups, &entry.group) && has(&rule.resources, &resource(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(verbs: &[&str], group: &str, resource: &str) -> PolicyRule {
        PolicyRule {
            verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
            api_groups: Some(vec![group.to_owned()]),
            resources: Some(vec![resource.to_owned()]),
            ..PolicyRule::default()
        }
    }

    fn entry(verb: &str, group: &str, resource: &str, subresource: &str, code: u16) -> Entry {
        Entry {
            user: "me".to_owned(),
            impersonated: None,
            user_agent: String::new(),
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: "ns".to_owned(),
            name: "x".to_owned(),
            uri: String::new(),
            code,
            decision: if code == 403 { "forbid" } else { "allow" }.to_owned(),
            at: String::new(),
            request: None,
        }
    }

    #[test]
    fn compare_accepts_rules_that_are_all_used() {
        let rules = [
            rule(&["get", "patch"], "apps", "deployments"),
            rule(&["patch"], "apps", "deployments/status"),
        ];
        let entries = [
            entry("get", "apps", "deployments", "", 200),
            entry("patch", "apps", "deployments", "status", 200),
        ];
        assert!(compare("me", &rules, &entries).fits());
    }

    #[test]
    fn compare_names_denied_requests_and_unused_rules() {
        let rules = [rule(&["list"], "", "secrets")];
        let entries = [entry("delete", "apps", "deployments", "", 403)];
        let usage = compare("me", &rules, &entries);
        assert_eq!(usage.denied.len(), 1);
        assert_eq!(usage.unused, BTreeSet::from(["list /secrets".to_owned()]));
    }

    #[test]
    fn compare_counts_impersonated_requests_as_uses_of_that_rule_alone() {
        let rules = [
            rule(&["impersonate"], "", "serviceaccounts"),
            rule(&["get"], "apps", "deployments"),
        ];
        let mut entry = entry("get", "apps", "deployments", "", 200);
        entry.impersonated = Some("system:serviceaccount:ns:deployer".to_owned());
        let usage = compare("me", &rules, &[entry]);
        assert_eq!(usage.unused, BTreeSet::from(["get apps/deployments".to_owned()]));
        assert_eq!(compare("me", &rules, &[]).unused.len(), 2);
    }

    #[test]
    fn compare_ignores_requests_of_other_users() {
        let rules = [rule(&["list"], "", "secrets")];
        let mut other = entry("list", "", "secrets", "", 200);
        other.user = "you".to_owned();
        assert_eq!(compare("me", &rules, &[other]).unused.len(), 1);
    }
}
