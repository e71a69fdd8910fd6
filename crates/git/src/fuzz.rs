//! Random references and ranges against random refs.

use testkit::fuzz::{self, Random};
use versions::Version;

use crate::{
    Advertised, Error, KnownHosts, Range, Reference, Selector,
    refs::{describe, select_polling},
    select,
};

const NAMES: &[&str] = &[
    "main",
    "master",
    "v1.0.0",
    "1.2.3",
    "v",
    "1",
    ".",
    "0",
    "-",
    "-rc.1",
    "+b",
    "/",
    "..",
    "refs/heads/",
    "refs/tags/",
    "@{",
    "^{}",
    "~",
    " ",
    "HEAD",
    ".lock",
    "\\",
    "*",
    "é",
];
const RANGES: &[&str] = &[
    "1",
    "2",
    "0",
    "11",
    ".",
    "x",
    "*",
    "X",
    "v",
    "1.2.3",
    "1.2",
    ">=",
    "<=",
    "=>",
    "=<",
    ">",
    "<",
    "=",
    "!=",
    "~",
    "~>",
    "^",
    "||",
    ",",
    " ",
    " - ",
    "-",
    "-0",
    "-rc.1",
    "+b",
    "18446744073709551615",
    "18446744073709551616",
    "\t",
];

fn hash(random: &mut Random) -> String {
    random
        .list(40..41, |random| format!("{:x}", random.below(16)))
        .concat()
}

fn version(random: &mut Random) -> String {
    let number = |random: &mut Random| match random.below(12) {
        11 => u64::MAX,
        small => small as u64,
    };
    let numbers = [number(random), number(random), number(random)].map(|number| number.to_string());
    let pre = *random.pick(&["", "", "", "-rc.1", "-0", "-alpha"]);
    format!(
        "{}{}{pre}{}",
        random.pick(&["v", ""]),
        numbers.join("."),
        random.pick(&["", "", "+b"])
    )
}

fn refs(random: &mut Random) -> Vec<Advertised> {
    random.list(0..12, |random| Advertised {
        name: match random.below(4) {
            0 => random.text(NAMES, 0..5),
            1 => format!("refs/heads/{}", random.text(NAMES, 1..3)),
            2 => "HEAD".to_owned(),
            _ => format!("refs/tags/{}", version(random)),
        },
        object: hash(random),
        peeled: random.flag().then(|| hash(random)),
        target: None,
    })
}

fn range(random: &mut Random) -> String {
    if random.flag() {
        let parts = random.list(1..4, |random| {
            format!(
                "{}{}",
                random.pick(&["^", "~", ">=", "<", "", "!=", ">", "<="]),
                version(random)
            )
        });
        return parts.join([" ", ", ", " || "][random.below(3)]);
    }
    random.text(RANGES, 0..8)
}

#[test]
fn fuzz_references_select_the_named_commits() {
    fuzz::run("git references", |random| {
        let name = |random: &mut Random| random.one_in(3).then(|| random.text(NAMES, 0..5));
        let selector = Selector {
            branch: name(random),
            tag: name(random),
            name: name(random),
            semver: random.one_in(3).then(|| range(random)),
            commit: match random.below(6) {
                5 => Some(hash(random)),
                4 => Some(random.text(NAMES, 0..42)),
                _ => None,
            },
        };
        let refs = refs(random);
        random.note("selector, refs", &(&selector, &refs));
        let reference = match selector.reference() {
            Ok(reference) => reference,
            Err(error) => return assert!(!error.to_string().is_empty()),
        };
        assert!(!reference.prefixes().is_empty() && !describe(&reference, &refs).is_empty());
        match select(&reference, &refs) {
            Ok(resolved) => {
                assert_eq!(resolved.commit.len(), 40);
                assert!(resolved.want().is_ok() && resolved.revision().ends_with(&resolved.commit));
                assert!(resolved.legacy_revision().ends_with(&resolved.commit));
                let known = |listed: &Advertised| listed.object == resolved.want;
                assert!(matches!(reference, Reference::Commit { .. }) || refs.iter().any(known));
            }
            Err(Error::RefNotFound { .. } | Error::NoMatch(_)) => {}
            Err(other) => panic!("a valid reference is found or not: {other}"),
        }
        // The order of the refs says nothing about a version.
        if let Reference::Semver(_) = &reference {
            let backwards: Vec<_> = refs.iter().rev().cloned().collect();
            let answer = |refs: &[Advertised]| select(&reference, refs).map(|found| found.name).ok();
            assert_eq!(answer(&refs), answer(&backwards));
        }
    });
}

#[test]
fn fuzz_ranges_of_versions() {
    fuzz::run("semver ranges", |random| {
        let (text, version) = (range(random), version(random));
        random.note("range, version", &(&text, &version));
        let version = Version::parse(&version).unwrap();
        let Ok(range) = Range::parse(&text) else { return };
        assert_eq!(range.to_string(), text);
        let matches = range.matches(&version);
        if !version.pre.is_empty() && !text.contains('-') {
            assert!(!matches, "no part of the range mentions a pre-release");
        }
        // A longer range, written twice, is over the maximum size.
        if text.len() > 1000 {
            return;
        }
        // Alternatives may be swapped. Without spaces, `||` becomes a part of the versions of a hyphen range, as in the
        // original's grammar.
        let either = Range::parse(&format!("{text} || {text}")).unwrap();
        assert_eq!(either.matches(&version), matches);
        let plain = Range::parse(&format!("{text} || ={version}")).unwrap();
        assert!(plain.matches(&version));
    });
}

#[test]
fn fuzz_ranges_times_tags_are_polled_and_known_hosts_are_bounded() {
    fuzz::run("ranges times tags", |random| {
        let text = range(random).repeat(1 + random.below(200));
        let tags: Vec<_> = (0..random.below(3000))
            .map(|patch| format!("refs/tags/1.2.{patch}"))
            .collect();
        let refs: Vec<_> = tags
            .into_iter()
            .map(|name| Advertised {
                name,
                object: String::new(),
                peeled: None,
                target: None,
            })
            .collect();
        random.note("range, tags", &(&text, refs.len()));
        if let Ok(range) = Range::parse(&text) {
            let steps = (10 + range.steps()) * refs.len() as u64;
            let mut polls = 0;
            let _ = select_polling(
                &Reference::Semver(range),
                &refs,
                |_| false,
                || {
                    polls += 1;
                    Ok(())
                },
            );
            assert!(polls >= steps / 40_000, "{polls} polls in {steps} steps");
        }
        let hosts = random.text(&["*", "?", "a", "a.io", "[", "]:22", ",", "!", "|1|"], 0..9);
        let line = format!("{} ssh-ed25519 AAAA\n", hosts.repeat(1 + random.below(100)));
        let _ = KnownHosts::parse(line.repeat(1 + random.below(100)).as_bytes());
    });
}
