//! Random durations, URLs and revisions.

use testkit::fuzz::{self, Random};

use crate::{DurationOrNever, GoDuration, SafeUrl, UrlText, redact, revision};

const DURATION: &[&str] = &[
    "0",
    "1",
    "9",
    "15",
    ".",
    "-",
    "+",
    "h",
    "m",
    "s",
    "ms",
    "us",
    "µs",
    "μs",
    "ns",
    "d",
    " ",
    "never",
    "e3",
    "9223372036854775807",
    "9223372036854775808",
    "99999999999999999999",
    "0.3333333333333333333",
];

#[test]
fn fuzz_durations_read_back() {
    fuzz::run("durations", |random| {
        let duration = GoDuration::from_nanos(random.int());
        assert_eq!(duration.to_string().parse(), Ok(duration));
        assert_eq!(
            GoDuration::from(duration.as_duration()).nanos(),
            duration.nanos().max(0)
        );
        let text = random.text(DURATION, 0..8);
        random.note("text", &text);
        match text.parse::<GoDuration>() {
            Ok(duration) => assert_eq!(duration.to_string().parse(), Ok(duration)),
            Err(error) => assert!(error.to_string().len() < 400, "{error}"),
        }
        let json = serde_json::to_string(&text).unwrap();
        let _ = serde_json::from_str::<DurationOrNever>(&json).map(|every| every.to_string());
    });
}

/// A secret that is found wherever it shows up, also in part.
const MARK: &str = "s3cr3t";

/// Returns a secret with random characters around it; with `whole`, also those that only a whole URL may have.
fn secret(random: &mut Random, whole: bool) -> String {
    const PIECES: &[&str] = &[
        "a", "1", "/", "?", "#", "@", ":", "[", "]", "%40", "%", "\\", "'", ")", ",", ".", ";", "!", "://",
        "é",
    ];
    const WHOLE: &[&str] = &["a", " ", "\n", "\"", "<", ">", "`", "@", ":", "/"];
    let mut around = || {
        let text = random.text(if whole { WHOLE } else { PIECES }, 0..4);
        let ends = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '<' | '>' | '`');
        if whole { text } else { text.replace(ends, "") }
    };
    format!("{}{MARK}{}", around(), around())
}

fn url(random: &mut Random, whole: bool) -> String {
    let scheme = *random.pick(&["https", "http", "ssh", "HTTP", "s3", "x+y"]);
    let slashes = match scheme {
        "s3" | "x+y" | "ssh" => "//",
        // The web's are read with any number of them.
        _ => *random.pick(&["//", "", "/", "///", "/\\"]),
    };
    let host = *random.pick(&[
        "host.example",
        "h",
        "10.0.0.1",
        "[::1]",
        "h:8443",
        "[::1]:9",
        "HOST",
    ]);
    let path = random
        .list(0..4, |random| {
            *random.pick(&["/", "/a", "/b.git", "/a@b", "/a:b", "/%2e", "/..", "/é"])
        })
        .concat();
    let user = *random.pick(&["me", "", "me%40x", "m-e"]);
    let (password, query) = (secret(random, whole), secret(random, whole));
    let begin = format!("{scheme}:{slashes}");
    match random.below(4) {
        0 => format!("{begin}{user}:{password}@{host}{path}"),
        // Without a colon, a string with a slash is a path.
        1 => format!(
            "{begin}{}@{host}{path}",
            password.replace(['/', '?', '#', '\\'], "")
        ),
        2 => format!("{begin}{host}{path}?key={query}"),
        _ => format!("{begin}{user}:{password}@{host}{path}?key={query}#{query}"),
    }
}

#[test]
fn fuzz_no_secret_of_a_url_is_shown() {
    fuzz::run("urls", |random| {
        let whole = random.flag();
        let url = url(random, whole);
        random.note("url", &url);
        if let Ok(parsed) = SafeUrl::parse(&url) {
            let open = parsed.host().contains(MARK) || parsed.path().contains(MARK);
            let shown = format!("{parsed} {parsed:?}");
            assert!(open || !shown.contains(MARK), "{shown}");
        }
        let mut shown = vec![format!("{0} {0:?}", UrlText::from(url.as_str()))];
        shown.extend(
            SafeUrl::parse(&url)
                .err()
                .map(|error| format!("{error} {error:?}")),
        );
        if !whole {
            let sentence = redact(&format!("cannot reach '{url}': no"));
            assert!(
                sentence.starts_with("cannot reach '") && sentence.ends_with(": no"),
                "{sentence}"
            );
            shown.extend([sentence, redact(&url)]);
        }
        for shown in &shown {
            assert!(!shown.contains(MARK), "{shown}");
        }
    });
}

#[test]
fn fuzz_redacting_only_removes() {
    fuzz::run("redacted texts", |random| {
        const PIECES: &[&str] = &[
            "://", "https", "http:", "@", ":", "/", "?", "#", "'", "\"", " ", "[", "]", "h", "12", ".", "\n",
            "é",
        ];
        let text = random.text(PIECES, 0..20);
        random.note("text", &text);
        for redacted in [redact(&text), UrlText::from(text.as_str()).to_string()] {
            let mut rest = text.chars();
            assert!(
                redacted.chars().all(|c| rest.any(|other| other == c)),
                "{redacted:?}"
            );
        }
        if !text.contains(':') {
            assert_eq!(redact(&text), text);
        }
    });
}

#[test]
fn fuzz_revisions_read_back() {
    fuzz::run("revisions", |random| {
        let commit: String = match random.below(3) {
            0 => random
                .list(64..65, |random| format!("{:x}", random.below(16)))
                .concat(),
            _ => random
                .list(40..41, |random| format!("{:x}", random.below(16)))
                .concat(),
        };
        // Names that Git allows hold no colon.
        let name = random
            .text(&["main", "/", "@", "v1.0", "refs/heads/", "-", "é"], 0..5)
            .replace([':', '\0'], "");
        random.note("name", &name);
        let given = Some(name.as_str()).filter(|name| !name.is_empty());
        let styles = [revision::Style::Rfc5, revision::Style::Legacy];
        let written = styles.map(|style| revision::write(style, given, &commit));
        assert!(revision::same(&written[0], &written[1]) || name == "HEAD");
        for text in &written {
            assert_eq!(revision::commit(text), commit);
            assert_eq!(
                revision::name(text),
                given.filter(|name| *name != "HEAD"),
                "{text}"
            );
        }
        let any = random.text(&["main", "/", "@", ":", "sha1", "HEAD", "0123"], 0..6);
        random.note("any", &any);
        let normal = revision::normalise(&any);
        assert_eq!(revision::normalise(&normal), normal);
        assert!(any.ends_with(revision::commit(&any)) && revision::same(&any, &normal));
        let _ = revision::name(&any);
    });
}
