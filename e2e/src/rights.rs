//! Compares what an account was granted with what the audit log shows that it did.

use std::collections::BTreeSet;

use k8s_openapi::api::rbac::v1::PolicyRule;
use testkit::audit::Entry;

/// The verdict on one account.
#[derive(Debug, Default, PartialEq)]
pub struct Verdict {
    /// Requests that were refused for want of a right.
    pub denied: BTreeSet<String>,
    /// Rules that no request made use of.
    pub unused: BTreeSet<String>,
}

impl Verdict {
    /// Whether the rights fit exactly.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.denied.is_empty() && self.unused.is_empty()
    }
}

/// Judges an account by its rules and its requests. `user` is the account as the audit log names it.
#[must_use]
pub fn judge(user: &str, rules: &[PolicyRule], entries: &[Entry]) -> Verdict {
    let own: Vec<&Entry> = entries
        .iter()
        .filter(|entry| entry.user == user && entry.impersonated.is_none())
        .collect();
    let denied = own
        .iter()
        .filter(|entry| entry.is_denied())
        .map(|entry| describe(entry))
        .collect();
    let unused = rules
        .iter()
        .filter(|rule| !own.iter().any(|entry| !entry.is_denied() && covers(rule, entry)))
        .map(|rule| {
            let groups = rule.api_groups.clone().unwrap_or_default().join(",");
            let resources = rule.resources.clone().unwrap_or_default().join(",");
            format!("{} {groups}/{resources}", rule.verbs.join(","))
        })
        .collect();
    Verdict { denied, unused }
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
    fn rights_that_are_used_fit() {
        let rules = [
            rule(&["get", "patch"], "apps", "deployments"),
            rule(&["patch"], "apps", "deployments/status"),
        ];
        let entries = [
            entry("get", "apps", "deployments", "", 200),
            entry("patch", "apps", "deployments", "status", 200),
        ];
        assert!(judge("me", &rules, &entries).fits());
    }

    #[test]
    fn a_denied_request_and_an_unused_rule_are_named() {
        let rules = [rule(&["list"], "", "secrets")];
        let entries = [entry("delete", "apps", "deployments", "", 403)];
        let verdict = judge("me", &rules, &entries);
        assert_eq!(verdict.denied.len(), 1);
        assert_eq!(verdict.unused, BTreeSet::from(["list /secrets".to_owned()]));
    }

    #[test]
    fn what_others_did_does_not_count() {
        let rules = [rule(&["list"], "", "secrets")];
        let mut other = entry("list", "", "secrets", "", 200);
        other.user = "you".to_owned();
        assert_eq!(judge("me", &rules, &[other]).unused.len(), 1);
    }
}
