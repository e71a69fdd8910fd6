//! The overview of the commands in `weir --help`, grouped by purpose.

use clap::Command;

/// Headings, with the commands below them.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Install the controllers",
        &[
            "install",
            "bootstrap",
            "check",
            "version",
            "migrate",
            "uninstall",
            "controller",
        ],
    ),
    (
        "Look at the cluster",
        &[
            "status", "explain", "get", "tree", "trace", "events", "logs", "stats", "debug", "export",
        ],
    ),
    (
        "Steer the controllers",
        &["create", "reconcile", "suspend", "resume", "trigger", "gitops"],
    ),
    ("Preview local manifests", &["build", "diff", "validate"]),
    (
        "Deploy kluctl projects",
        &[
            "deploy",
            "prune",
            "delete",
            "render",
            "poke-images",
            "list-targets",
            "list-images",
            "helm-pull",
            "helm-update",
            "oci",
        ],
    ),
    ("Tools", &["kustomize", "helm", "completion", "man"]),
];

/// Lets the help of the program list its commands in groups.
pub(crate) fn grouped(program: Command) -> Command {
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (heading, names) in GROUPS {
        text.push_str(&format!("\n{heading}:\n"));
        for name in *names {
            let about = program.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {name:<width$}  {about}\n"));
        }
    }
    text.push_str("\nOptions:\n{options}");
    program.help_template(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let program = crate::Cli::command();
        let all: BTreeSet<&str> = program.get_subcommands().map(Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        assert_eq!(grouped.len(), all.len());
        assert_eq!(grouped.into_iter().collect::<BTreeSet<_>>(), all);
        let help = super::grouped(program).render_help().to_string();
        assert!(help.contains("\nLook at the cluster:\n  status "), "{help}");
        assert!(help.contains("\nOptions:\n  -h, --help"), "{help}");
    }
}
