//! Random indexes, names, challenges and manifests.

use testkit::fuzz::{self, Random};
use yaml::{Map, Value};

use crate::{
    Entry, Limits, Manifest, Reference, hop,
    index::{Stream, rewrite},
    registry::Challenge,
    version,
};

const NAMES: &[&str] = &[
    "redis",
    "a",
    "redis-cluster",
    "entries",
    "x.y",
    "1",
    "true",
    "null",
    "a: b",
    "#",
    "-",
    "é",
    "it's \"x\"",
];
const TEXTS: &[&str] = &[
    "\n",
    "  ",
    "redis:",
    "entries:",
    "- version: 9.9.9",
    "\"",
    "'",
    "#",
    "{",
    "}",
    "[",
    "]",
    ": ",
    "\\",
    "|",
    ">",
    "word",
    "\t",
    "é",
    "...",
    "---",
    "&a",
    "*a",
];

fn index(random: &mut Random) -> (Value, String, Option<Vec<Entry>>) {
    let wanted = (*random.pick(NAMES)).to_owned();
    let mut charts = Map::new();
    let mut expected = None;
    for _ in 0..random.below(5) {
        let name = *random.pick(NAMES);
        let entries = random.list(0..4, entry);
        let list = entries.iter().map(|(value, _)| value.clone()).collect();
        if name == wanted {
            let known = entries.into_iter().map(|(_, entry)| entry).collect();
            expected = Some(version::sort(known, |entry: &Entry| &entry.version));
        }
        charts.insert(name, Value::Seq(list));
    }
    let mut all = Map::new();
    if random.flag() {
        all.insert("apiVersion", "v1");
    }
    all.insert("entries", Value::Map(charts));
    all.insert("generated", random.text(TEXTS, 0..4));
    (Value::Map(all), wanted, expected)
}

fn entry(random: &mut Random) -> (Value, Entry) {
    let entry = Entry {
        version: format!(
            "{}.{}.0{}",
            random.below(3),
            random.below(3),
            random.pick(&["", "-rc.1", "+b"])
        ),
        urls: random.list(0..3, |random| {
            format!("https://h/{}.tgz", random.text(TEXTS, 0..2))
        }),
        digest: random.pick(&["", "aa"]).to_string(),
        created: None,
    };
    let mut map = Map::new();
    map.insert("name", "chart");
    map.insert("description", random.text(TEXTS, 0..6));
    map.insert("version", entry.version.as_str());
    let urls = entry.urls.iter().map(|url| Value::from(url.as_str())).collect();
    map.insert("urls", Value::Seq(urls));
    if !entry.digest.is_empty() {
        map.insert("digest", entry.digest.as_str());
    }
    (Value::Map(map), entry)
}

fn limits() -> Limits {
    Limits {
        index_bytes: 1 << 20,
        entry_bytes: 1 << 16,
        ..Limits::default()
    }
}

fn read(text: &[u8], chart: &str, random: &mut Random) -> Result<Option<Vec<Entry>>, String> {
    let mut stream = Stream::new(chart, "https://h/index.yaml", false, &limits());
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(random.within(1..41).min(rest.len()));
        rest = behind;
        match stream.push(piece) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return Err(error.to_string()),
        }
    }
    stream.finish().map_err(|error| error.to_string())
}

#[test]
fn fuzz_indexes_are_read_as_a_whole_reader_does() {
    fuzz::run("indexes", |random| {
        let (value, chart, expected) = index(random);
        let print: fn(&Value) -> String = *random.pick(&[
            yaml::print::goyaml as fn(&Value) -> String,
            yaml::print::kustomize,
            yaml::print::pyyaml,
            yaml::print::json,
        ]);
        let text = print(&value);
        random.note("chart, index", &(&chart, &text));
        assert_eq!(read(text.as_bytes(), &chart, random), Ok(expected.clone()));
        let mut json = Vec::new();
        let written = rewrite(text.as_bytes(), &mut json, "https://h/index.yaml", &limits());
        let is_whole = value.as_map().is_some_and(|map| map.get("apiVersion").is_some());
        assert_eq!(written.is_ok(), is_whole, "{written:?}");
        if is_whole {
            assert_eq!(read(&json, &chart, random), Ok(expected));
        }
    });
}

#[test]
fn fuzz_damaged_indexes_end_in_an_answer() {
    fuzz::run("damaged indexes", |random| {
        let (value, chart, _) = index(random);
        let mut text = if random.flag() {
            yaml::print::json(&value)
        } else {
            yaml::print::goyaml(&value)
        }
        .into_bytes();
        random.damage(&mut text, 4);
        random.note("chart, index", &(&chart, String::from_utf8_lossy(&text)));
        if let Err(error) = read(&text, &chart, random) {
            assert!(error.contains("https://h/index.yaml"), "{error}");
        }
        let mut json = Vec::new();
        match rewrite(text.as_slice(), &mut json, "https://h/index.yaml", &limits()) {
            Ok(_) => drop(serde_json::from_slice::<serde_json::Value>(&json).unwrap()),
            Err(error) => assert!(error.to_string().contains("https://h/index.yaml"), "{error}"),
        }
    });
}

#[test]
fn fuzz_references_lead_nowhere_else() {
    let parts = [
        "oci://", "h", ":5000", "/", "a", "..", ".", "-", "_", ":", "@", "sha256:", "1.0.0", "+b", "?", "#",
        "é", "%2e", "A",
    ];
    fuzz::run("references", |random| {
        let text = random.text(&parts, 0..10);
        random.note("text", &text);
        let Ok(reference) = Reference::parse(&text) else {
            return;
        };
        let url = format!(
            "https://{}/v2/{}/manifests/{}",
            reference.host(),
            reference.repository(),
            reference.wanted()
        );
        if let Ok(parsed) = url::Url::parse(&url) {
            assert!(
                parsed
                    .path()
                    .starts_with(&format!("/v2/{}/manifests/", reference.repository())),
                "{parsed}"
            );
            assert_eq!(
                (parsed.query(), parsed.fragment(), parsed.username()),
                (None, None, "")
            );
        }
        let again = Reference::parse(&reference.to_string()).unwrap();
        assert_eq!(
            (again.host(), again.repository()),
            (reference.host(), reference.repository())
        );
    });
}

#[test]
fn fuzz_answers_of_registries() {
    let parts = [
        "Bearer ",
        "Basic ",
        "realm=",
        "\"",
        "https://h/t",
        ",",
        "service=",
        "scope=",
        "\\",
        "=",
        " ",
        "x",
    ];
    let digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let manifest = format!(
        "{{\"config\": {{\"mediaType\": \"a\", \"digest\": \"{digest}\", \"size\": 1}}, \"layers\": [], \"annotations\": {{}}}}"
    );
    fuzz::run("answers of registries", |random| {
        let header = random.text(&parts, 0..12);
        let mut body = manifest.clone().into_bytes();
        random.damage(&mut body, 3);
        let location = random.text(
            &[
                "https://",
                "http://",
                "169.254.169.254",
                "/",
                "h",
                "..",
                "@",
                ":",
                "?",
                "[::1]",
            ],
            0..8,
        );
        random.note(
            "header, body, location",
            &(&header, String::from_utf8_lossy(&body), &location),
        );
        let _ = Challenge::parse(&header);
        let _ = Manifest::parse(&body, "u");
        let from = url::Url::parse("https://h/x").unwrap();
        if let Ok(to) = hop::next(&from, &location, 0) {
            assert_ne!(to.scheme(), "http", "{to}");
        }
    });
}
