//! Flags that are accepted without an effect, and the check that no other flag is.

use clap::Parser;

/// A flag that was given and has no effect, and the reason.
pub type Idle = (&'static str, &'static str);

/// Returns the given flags without effect; each input has true if it is given.
#[must_use]
pub fn idle(flags: impl IntoIterator<Item = (&'static str, bool, &'static str)>) -> Vec<Idle> {
    let given = flags.into_iter().filter(|(_, given, _)| *given);
    given.map(|(flag, _, why)| (flag, why)).collect()
}

pub fn report_idle(flags: &[Idle]) {
    for (flag, why) in flags {
        tracing::info!(flag, why, "this flag has no effect");
    }
}

/// The flags of [`CommonFlags`](super::CommonFlags) with an effect in every controller, for [`differences`].
pub const OBEYED_BY_ALL: &[&str] = &[
    "metrics-addr",
    "metrics-per-object",
    "health-addr",
    "concurrent",
    "watch-all-namespaces",
    "watch-label-selector",
    "runtime-namespace",
    "enable-leader-election",
    "leader-election-lease-duration",
    "leader-election-renew-deadline",
    "leader-election-retry-period",
    "leader-election-release-on-cancel",
    "log-level",
    "log-encoding",
    "min-retry-delay",
    "max-retry-delay",
    "max-timeout",
    "crash-marks-path",
    "work-memory-max-size",
    "interval-jitter-percentage",
    "allow-addresses",
    "private-addresses",
    "proxies-check-addresses",
];

/// The flags of [`CommonFlags`](super::CommonFlags) without an effect anywhere, each with a value that is not its default.
pub const IDLE_IN_ALL: &[(&str, &str)] = &[("kube-api-qps", "5"), ("kube-api-burst", "5")];

/// Returns the differences between a command line and the lists of its flags: `obeyed`, and those without effect, each with a value that is
/// not its default, which `said` must report. For the tests of the controllers, so that no flag is accepted silently.
#[must_use]
pub fn differences<C: Parser>(
    obeyed: &[&str],
    without_effect: &[(&str, &str)],
    said: impl Fn(&C) -> Vec<Idle>,
) -> Vec<String> {
    let command = C::command();
    let names: Vec<_> = command.get_arguments().filter_map(|arg| arg.get_long()).collect();
    let mut differences = Vec::new();
    let mut expect = |args: &[String], expected: &[String]| {
        let program = [command.get_name().to_owned()];
        let found = match C::try_parse_from(program.iter().chain(args)) {
            Ok(cli) => said(&cli),
            Err(error) => return differences.push(format!("{args:?}: {error}")),
        };
        if !found.iter().map(|(flag, _)| flag).eq(expected) {
            differences.push(format!("{args:?}: said of {found:?}, not of {expected:?}"));
        }
    };
    expect(&[], &[]);
    for (name, value) in without_effect {
        expect(&[format!("--{name}={value}")], &[format!("--{name}")]);
    }
    let idle = without_effect.iter().map(|(name, _)| name);
    let known: Vec<_> = obeyed.iter().chain(idle).collect();
    let unlisted = names.iter().filter(|name| !known.contains(name));
    differences.extend(unlisted.map(|name| format!("--{name} is in neither list")));
    let gone = known.iter().filter(|name| !names.contains(name));
    differences.extend(gone.map(|name| format!("there is no --{name} any more")));
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Parser)]
    struct Small {
        #[arg(long)]
        works: bool,
        #[arg(long)]
        rests: Option<u8>,
    }

    #[test]
    fn each_flag_must_be_in_the_right_list() {
        let said = |cli: &Small| idle([("--rests", cli.rests.is_some(), "it rests")]);
        let differences = |obeyed: &[&str], idle: &[(&str, &str)]| differences(obeyed, idle, said);
        assert_eq!(differences(&["works"], &[("rests", "1")]), [] as [&str; 0]);
        assert_eq!(
            differences(&[], &[("rests", "1")]),
            ["--works is in neither list"]
        );
        assert_eq!(
            differences(&["works", "sings"], &[("rests", "1")]),
            ["there is no --sings any more"]
        );
        for wrong in ["none", "256"] {
            let found = differences(&["works"], &[("rests", wrong)]);
            assert!(
                found[0].starts_with(&format!("[\"--rests={wrong}\"]: error")),
                "{found:?}"
            );
        }
        let silent = super::differences(&["works"], &[("rests", "1")], |_: &Small| Vec::new());
        assert_eq!(silent, [r#"["--rests=1"]: said of [], not of ["--rests"]"#]);
        let noisy = super::differences(&["works", "rests"], &[], |cli: &Small| {
            idle([("--works", !cli.works, "it rests")])
        });
        assert_eq!(noisy, [r#"[]: said of [("--works", "it rests")], not of []"#]);
    }
}
