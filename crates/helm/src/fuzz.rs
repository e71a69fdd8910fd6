//! No content of a chart's files or of an archive makes a render panic.

use bytes::Bytes;
use testkit::fuzz::{self, Random};
use tree::{Budget, Limits, Mem, TreePath};

use crate::{Options, functions::Environment, template};

struct Still;

impl Environment for Still {
    fn now(&self) -> (i64, u32) {
        (1_700_000_000, 0)
    }

    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

const TEMPLATE: &[&str] = &[
    "{{",
    "}}",
    "{{-",
    "-}}",
    "{{ if ",
    "{{ range ",
    "{{ with ",
    "{{ end }}",
    "{{ else }}",
    "{{ else if ",
    "{{ define \"t\" }}",
    "{{ template \"t\" . }}",
    "{{ include \"t\" . }}",
    "{{ block \"b\" . }}",
    "{{ break }}",
    "{{ continue }}",
    "/*",
    "*/",
    "(",
    ")",
    "|",
    ":=",
    "=",
    "$x",
    "$",
    ".",
    ".Values",
    ".a",
    ".Files.Glob \"*\"",
    ".Release.Name",
    "\"",
    "`",
    "'a'",
    "1",
    "-1",
    "0x1p-2",
    "1e9",
    "nil",
    "true",
    " ",
    "\n",
    "---\n",
    "a: ",
    "- ",
    "tpl ",
    "toYaml ",
    "fromYaml ",
    "printf \"%v %d\" ",
    "dict ",
    "list ",
    "index ",
    "slice ",
    "until 3",
    "regexMatch \"(a|b)*\" ",
    "nindent 2 ",
    "default ",
    "required \"x\" ",
    "semverCompare \">1\" ",
    "date \"2006\" ",
    "é",
    "\u{0}",
    "%",
];
const LINES: &[&str] = &[
    "apiVersion: v2\n",
    "apiVersion: v1\n",
    "name: c\n",
    "version: 1.0.0\n",
    "version: x\n",
    "type: library\n",
    "kubeVersion: '>=1.2'\n",
    "dependencies:\n",
    "- name: d\n",
    "  alias: e\n",
    "  condition: d.on\n",
    "  tags: [t]\n",
    "  version: '*'\n",
    "  import-values: [a, {child: b, parent: c}]\n",
    "a: 1\n",
    "a: {b: [1, null]}\n",
    "global: {x: 1}\n",
    "d: {on: false}\n",
    "tags: {t: false}\n",
    "b: &x [1]\n",
    "c: *x\n",
    "? [a]\n",
    "\t",
    "a: |\n  x\n",
    "é: ~\n",
];
const SCHEMA: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"type\"",
    "\"object\"",
    "\"properties\"",
    "\"a\"",
    "\"$ref\"",
    "\"#\"",
    "\"#/definitions/x\"",
    "\"required\"",
    "\"anyOf\"",
    "\"pattern\"",
    "\"^(a+)+$\"",
    "\"minimum\"",
    "1",
    "true",
    "null",
    "\"enum\"",
    "\"items\"",
    "\"additionalProperties\"",
    "{\"type\": \"string\"}",
];
const IGNORED: &[&str] = &[
    "*",
    "!",
    "/",
    "**",
    "[a-",
    "]",
    "?",
    "\\",
    "templates",
    "\n",
    "#",
    " ",
];

fn files(random: &mut Random) -> Vec<(String, String)> {
    let metadata = |random: &mut Random| {
        let start = if random.one_in(8) {
            ""
        } else {
            "apiVersion: v2\nname: c\nversion: 1.0.0\n"
        };
        format!("{start}{}", random.text(LINES, 0..5))
    };
    let mut files = vec![
        ("Chart.yaml".to_owned(), metadata(random)),
        ("templates/x.yaml".to_owned(), random.text(TEMPLATE, 0..25)),
        ("values.yaml".to_owned(), random.text(LINES, 0..6)),
    ];
    for _ in 0..random.below(4) {
        files.push(match random.below(7) {
            0 => ("templates/_t.tpl".to_owned(), random.text(TEMPLATE, 0..15)),
            1 => ("templates/NOTES.txt".to_owned(), random.text(TEMPLATE, 0..9)),
            2 => ("values.schema.json".to_owned(), random.text(SCHEMA, 0..15)),
            3 => (".helmignore".to_owned(), random.text(IGNORED, 0..9)),
            4 => ("charts/d/Chart.yaml".to_owned(), metadata(random)),
            5 => ("charts/d/values.yaml".to_owned(), random.text(LINES, 0..5)),
            _ => ("crds/x.yaml".to_owned(), random.text(LINES, 0..5)),
        });
    }
    files
}

fn budget() -> Budget {
    Budget::new(Limits {
        steps: 2_000_000,
        bytes: 1 << 20,
        ..Limits::default()
    })
}

#[test]
fn fuzz_charts() {
    fuzz::run("charts", |random| {
        let files = files(random);
        random.note("files", &files);
        let Ok(tree) = Mem::from_files(files) else { return };
        let _ = template(&tree, &TreePath::root(), &Options::new("demo", &Still), &budget());
    });
}

#[test]
fn fuzz_archives() {
    fuzz::run("chart archives", |random| {
        let mut archive = Vec::new();
        for (name, text) in files(random) {
            let mut header = tar::Header::new_ustar();
            let path = format!("c/{name}");
            if let Some(field) = header.as_mut_bytes().get_mut(..path.len()) {
                field.copy_from_slice(path.as_bytes());
            }
            header.set_size(text.len() as u64);
            header.set_cksum();
            archive.extend_from_slice(header.as_bytes());
            archive.extend_from_slice(text.as_bytes());
            archive.resize(archive.len().next_multiple_of(512), 0);
        }
        random.damage(&mut archive, 3);
        let mut bytes = testkit::archive::gzip(&archive);
        if random.one_in(4) {
            random.damage(&mut bytes, 2);
        }
        random.note("archive", &bytes);
        let tree = Mem::from_files([("c.tgz", Bytes::from(bytes))]).unwrap();
        let path = TreePath::parse("c.tgz").unwrap();
        let _ = template(&tree, &path, &Options::new("demo", &Still), &budget());
    });
}
