//! Damaged files, random metadata and random keys: an answer, and never a panic.

use testkit::fuzz::{self, Random};
use tree::Budget;

use crate::{
    DataKey, Format, Keys,
    document::{Branch, Item, Value},
    file::File,
    is_encrypted, store,
    tests::{age_keys, fixture, opened},
};

const FILES: &[&str] = &[
    "notes.yaml",
    "notes.json",
    "shop.env",
    "shop.ini",
    "blob.bin",
    "comments.yaml",
    "mac-only.yaml",
    "shamir.yaml",
];
const PIECES: &[&str] = &[
    "sops:",
    "sops_",
    "[sops]",
    "mac: ",
    "age",
    "__list_",
    "__map_",
    "0",
    "1",
    "enc",
    "=",
    ":",
    "\n",
    "  ",
    "- ",
    "# c",
    "\"",
    "'",
    "`",
    "\"\"\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    "&a",
    "*a",
    "<<",
    "---",
    "|",
    ">",
    "\\",
    ";",
    "é",
    "\u{2028}",
    "ENC[AES256_GCM,data:AAAA,iv:AAAAAAAAAAAAAAAA,tag:AAAAAAAAAAAAAAAAAAAAAA==,type:str]",
    "lastmodified: 2020-01-01T00:00:00Z",
];

/// A damaged file is refused, not encrypted, or decrypted; its decrypted content can be read again.
#[test]
fn fuzz_damaged_files() {
    let keys = age_keys();
    let files: Vec<(&str, Vec<u8>)> = FILES.iter().map(|name| (*name, fixture(name))).collect();
    fuzz::run("damaged files", |random| {
        let (name, bytes) = random.pick(&files);
        let mut bytes = bytes.clone();
        random.damage(&mut bytes, 4);
        random.note("file", &(name, String::from_utf8_lossy(&bytes)));
        if let Ok(Some(found)) = opened(name, &bytes, &keys)
            && name.ends_with(".yaml")
        {
            yaml::read::written(&String::from_utf8_lossy(&found.content), &Budget::default()).unwrap();
        }
    });
}

#[test]
fn fuzz_random_texts() {
    let formats = [
        Format::Yaml,
        Format::Json,
        Format::Dotenv,
        Format::Ini,
        Format::Binary,
    ];
    fuzz::run("random texts", |random| {
        let text = random.text(PIECES, 0..40);
        let format = *random.pick(&formats);
        random.note("text", &(format, &text));
        let budget = Budget::default();
        let read = File::read(format, text.as_bytes(), &budget);
        if matches!(read, Ok(Some(_))) {
            assert!(is_encrypted(format, text.as_bytes(), &budget));
        }
        let key = DataKey::new(&[7; 32]).unwrap();
        if let Ok(Some(file)) = read {
            let _ = file.decrypt(&key, &budget);
        }
    });
}

#[test]
fn fuzz_keys() {
    let parts = [
        "AGE-SECRET-KEY-1",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n",
        "\n",
        "-----END",
        "#",
        "AAAA",
        "=",
        "lQ",
        "-----BEGIN OPENSSH PRIVATE KEY-----\n",
        "é",
    ];
    let good = [
        fixture("rsa.asc"),
        fixture("ecc.asc"),
        fixture("ssh-ed25519"),
        fixture("age.txt"),
    ];
    fuzz::run("keys", |random| {
        let mut bytes = random.text(&parts, 0..8).into_bytes();
        if random.flag() {
            bytes = random.pick(&good).clone();
            random.damage(&mut bytes, 3);
        }
        random.note("key", &String::from_utf8_lossy(&bytes));
        let mut keys = Keys::new();
        let _ = keys.add_pgp(&bytes.clone().into());
        if let Ok(text) = String::from_utf8(bytes) {
            let _ = keys.add_age(&text.clone().into());
            let _ = keys.add_ssh(&text.into());
        }
    });
}

fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth < 4 { 9 } else { 6 }) {
        0 => Value::Null,
        1 => Value::Bool(random.flag()),
        2 => Value::Int(random.int()),
        3 => Value::Float(fraction(random)),
        4 | 5 => Value::Text(text(random)),
        6 => Value::Seq(random.list(0..4, |random| value(random, depth + 1))),
        _ => Value::Map(branch(random, depth + 1)),
    }
}

fn fraction(random: &mut Random) -> f64 {
    let number = random.float();
    if number.is_finite() && number.fract() != 0.0 {
        number
    } else {
        0.5
    }
}

fn text(random: &mut Random) -> String {
    let pieces = [
        "a", " ", "\n", "\t", ": ", "- ", "#", "'", "\"", "yes", "1", "é", "💥", "|", "\\", "\u{85}",
        "\u{7}", "~",
    ];
    random.text(&pieces, 0..6)
}

fn branch(random: &mut Random, depth: usize) -> Branch {
    let mut entries: Vec<(String, Value)> = Vec::new();
    for _ in 0..random.below(5) {
        let key = text(random);
        if key != "sops" && !entries.iter().any(|(known, _)| *known == key) {
            entries.push((key, value(random, depth)));
        }
    }
    entries
        .into_iter()
        .map(|(key, value)| Item::Entry(key, value))
        .collect()
}

#[test]
fn fuzz_printed_yaml() {
    fuzz::run("printed yaml", |random| {
        let branch = branch(random, 0);
        random.note("branch", &branch);
        let printed = store::print(Format::Yaml, std::slice::from_ref(&branch)).unwrap();
        let mut text = String::from_utf8(printed).unwrap();
        random.note("printed", &text);
        if branch.is_empty() {
            text.clear();
        }
        text.push_str("sops: {lastmodified: x}\n");
        let loaded = store::load(Format::Yaml, text.as_bytes(), &Budget::default())
            .unwrap()
            .unwrap();
        assert_eq!(loaded.documents, [branch]);
    });
}

/// Every number of a JSON document is the nearest float.
#[test]
fn fuzz_json_numbers() {
    fuzz::run("json numbers", |random| {
        let words: Vec<String> = random.list(1..8, |random| {
            let number = f64::from_bits(random.bits());
            let number = if number.is_finite() { number } else { 1.5 };
            if random.flag() {
                format!("{number:e}")
            } else {
                format!("{number}")
            }
        });
        let key = text(random)
            .replace(['"', '\\'], "\\\"1")
            .replace(char::is_control, "");
        let list = words.join(", ");
        let json = format!("{{\"lastmodified {key}\": [{list}, \"{key} 2\"], \"sops\": {{}}}}");
        random.note("json", &json);
        let loaded = store::load(Format::Json, json.as_bytes(), &Budget::default())
            .unwrap()
            .unwrap();
        let Some(Item::Entry(_, Value::Seq(items))) = loaded.documents[0].first() else {
            panic!("{:?}", loaded.documents);
        };
        let expected: Vec<Value> = words
            .iter()
            .map(|word| Value::Float(word.parse().unwrap()))
            .collect();
        assert_eq!(items[..words.len()], expected);
    });
}

/// Rules times keys and comments of large documents end within the steps of the budget.
#[test]
fn fuzz_large_documents_take_bounded_work() {
    const SIZES: &[usize] = &[0, 1, 50, 2000];
    const RULES: &[&str] = &["x", "^(data|stringData)$", r"\w{20}x", "(a?){50}b", r"\w{900}"];
    const SELECTIONS: &[&str] = &[
        "encrypted_regex",
        "unencrypted_regex",
        "encrypted_comment_regex",
        "unencrypted_comment_regex",
        "encrypted_suffix",
    ];
    let key = DataKey::new(&[7; 32]).unwrap();
    fuzz::run("large documents", |random| {
        let comments = "# aa\n".repeat(*random.pick(SIZES));
        let parent = "a".repeat(1 + *random.pick(SIZES));
        let values: String = (0..*random.pick(SIZES))
            .map(|n| format!("  # c\n  k{n}: v\n"))
            .collect();
        let (selection, rule) = (random.pick(SELECTIONS), random.pick(RULES));
        let text = format!(
            "{comments}{parent}:\n  z: v\n{values}sops:\n  age: [{{recipient: x, enc: y}}]\n  \
             lastmodified: 2020-01-01T00:00:00Z\n  {selection}: '{rule}'\n"
        );
        random.note("file", &text);
        let limits = tree::Limits {
            steps: 5_000_000,
            ..tree::Limits::default()
        };
        let budget = Budget::new(limits);
        if let Ok(Some(file)) = File::read(Format::Yaml, text.as_bytes(), &budget) {
            let _ = file.decrypt(&key, &budget);
        }
    });
}

/// Keys and messages of any size end in an answer.
#[test]
fn fuzz_keys_and_messages_take_bounded_work() {
    const PIECES: &[&str] = &[
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n",
        "-----END PGP PRIVATE KEY BLOCK-----\n",
        "-----BEGIN AGE ENCRYPTED FILE-----\n",
        "AGE-SECRET-KEY-1",
        "\u{99}",
        "lQ",
        "YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSA",
        "=",
        "\n",
        "A",
    ];
    let (rsa, ecc) = (fixture("rsa.asc"), fixture("ecc.asc"));
    fuzz::run("keys of secrets", |random| {
        let mut text = match random.below(3) {
            0 => rsa.clone(),
            1 => ecc.clone(),
            _ => random
                .text(PIECES, 0..9)
                .repeat(1 + random.below(50))
                .into_bytes(),
        };
        if random.flag() {
            random.damage(&mut text, 4);
        }
        random.note("key", &String::from_utf8_lossy(&text));
        let mut keys = Keys::new();
        for name in [
            "a.asc",
            "a.agekey",
            "sops.aws-kms",
            "sops.gcp-kms",
            "sops.azure-kv",
        ] {
            let _ = keys.add_entry(name, &text);
        }
    });
}

#[test]
fn deep_documents_are_refused_before_their_indentation_is_printed() {
    let key = DataKey::new(&[7; 32]).unwrap();
    let sops = "\"sops\": {\"age\": [{\"recipient\": \"x\", \"enc\": \"y\"}], \"lastmodified\": \"2020-01-01T00:00:00Z\", \
                \"encrypted_suffix\": \"_x\"}";
    let document = |depth: usize, items: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let text = format!("{{\"a\": {open}1{}{close}, {sops}}}", ",1".repeat(items));
        let budget = Budget::new(tree::Limits {
            file_bytes: 100_000,
            ..tree::Limits::default()
        });
        let file = File::read(Format::Json, text.as_bytes(), &budget)
            .unwrap()
            .unwrap();
        file.decrypt(&key, &budget).map(|found| found.content.len())
    };
    assert!(document(1, 20_000).unwrap() < 400_000);
    let error = document(90, 20_000).unwrap_err().to_string();
    assert!(error.contains("400000 bytes of one decrypted file"), "{error}");
}
