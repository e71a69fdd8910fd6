use go::path::Pattern;
use testkit::archive::{gzip, tar_gz, tar_gz_of_many};
use tree::{Disk, Limits, Mem};

use super::{archive::Unpacked, *};
use crate::Object as _;

fn mem(files: &[(&str, &str)]) -> Mem {
    Mem::from_files(files.iter().map(|(path, text)| (*path, (*text).to_owned()))).unwrap()
}

fn load(files: &[(&str, &str)]) -> Result<Chart, Error> {
    Chart::load(
        &mem(files),
        &TreePath::root(),
        HelmVersion::V3,
        &Budget::default(),
    )
}

fn error(files: &[(&str, &str)]) -> String {
    load(files).unwrap_err().to_string()
}

const META: &str = "apiVersion: v2\nname: c\nversion: 1.0.0\n";

#[test]
fn load_sorts_files_into_fields() {
    let chart = load(&[
        (
            "Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 1\nappVersion: 1.10\ntype: library\nunknown: {}\n",
        ),
        ("values.yaml", "\u{feff}a: 1"),
        ("values.schema.json", "{}"),
        ("templates/a.yaml", "x"),
        ("templates/.hidden", "x"),
        ("templates/sub/_b.tpl", "x"),
        ("crds/x.yaml", "x"),
        ("crds/README.md", "x"),
        ("README.md", "x"),
        ("charts/.git/x", "x"),
        ("charts/_off/x", "x"),
        ("charts/one/Chart.yaml", META),
        ("charts/one/crds/y.JSON", "x"),
        ("charts/sig.prov", "x"),
        (".helmignore", "*.bak\n"),
        ("x.bak", "x"),
    ])
    .unwrap();
    let names = |files: &[File]| files.iter().map(|file| file.name.clone()).collect::<Vec<_>>();
    assert_eq!(
        names(&chart.templates),
        ["templates/a.yaml", "templates/sub/_b.tpl"]
    );
    assert_eq!(
        names(&chart.files),
        [
            ".helmignore",
            "README.md",
            "charts/sig.prov",
            "crds/README.md",
            "crds/x.yaml"
        ]
    );
    assert_eq!(format!("{:?}", chart.values), r#"{"a": 1.0}"#);
    assert_eq!(
        (
            chart.metadata.version.as_str(),
            chart.metadata.app_version.as_str()
        ),
        ("1", "1.1")
    );
    assert!(chart.is_library() && chart.schema.is_some());
    let crds: Vec<String> = chart.crds().into_iter().map(|(path, _)| path).collect();
    assert_eq!(crds, ["c/crds/x.yaml", "c/charts/c/crds/y.JSON"]);
    assert_eq!(
        chart.check_installable(HelmVersion::V3).unwrap_err().to_string(),
        "library charts are not installable"
    );
}

#[test]
fn load_refuses_invalid_charts() {
    let table: &[(&[(&str, &str)], &str)] = &[
        (&[("x", "")], "Chart.yaml file is missing"),
        (
            &[("Chart.yaml", "name: c")],
            "validation: chart.metadata.version is required",
        ),
        (
            &[("Chart.yaml", "version: 1.0.0")],
            "validation: chart.metadata.name is required",
        ),
        (
            &[("Chart.yaml", "name: a/b\nversion: 1.0.0")],
            "validation: chart.metadata.name \"a/b\" is invalid",
        ),
        (
            &[("Chart.yaml", "name: c\nversion: one")],
            "validation: chart.metadata.version \"one\" is invalid",
        ),
        (
            &[("Chart.yaml", "name: c\nversion: 1.0.0\ntype: x")],
            "validation: chart.metadata.type must be application or library",
        ),
        (
            &[("Chart.yaml", "name: [c]\nversion: 1.0.0")],
            "cannot load Chart.yaml: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go \
             struct field Metadata.name of type string",
        ),
        (
            &[("Chart.yaml", "keywords: a\nname: c\ndeprecated: 'true'\nhome: []")],
            "cannot load Chart.yaml: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go \
             struct field Metadata.deprecated of type bool",
        ),
        (
            &[("Chart.yaml", "name: c\ndependencies: [{name: a, tags: t}]")],
            "cannot load Chart.yaml: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go \
             struct field Dependency.dependencies.tags of type []string",
        ),
        (
            &[("Chart.yaml", "name: c\ndependencies: [{name: a, tags: t}, text]")],
            "cannot load Chart.yaml: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go \
             struct field Dependency.dependencies.tags of type []string",
        ),
        (
            &[("Chart.yaml", META), ("values.yaml", "a: {{ .Values.b }}")],
            "cannot load values.yaml: error converting YAML to JSON: yaml: invalid map key: map[interface {}]interface \
             {}{\".Values.b\":interface {}(nil)}",
        ),
        (
            &[
                ("Chart.yaml", META),
                ("values.yaml", "? [1, {a: b}, null, ~, 1.5]\n: 1"),
            ],
            "cannot load values.yaml: error converting YAML to JSON: yaml: invalid map key: []interface {}{1, map[interface \
             {}]interface {}{\"a\":\"b\"}, interface {}(nil), interface {}(nil), 1.5}",
        ),
        (
            &[(
                "Chart.yaml",
                "name: c\nversion: 1.0.0\ndependencies: [{name: a, alias: 'a b'}]",
            )],
            "validation: dependency \"a\" has disallowed characters in the alias",
        ),
        (
            &[(
                "Chart.yaml",
                "name: c\nversion: 1.0.0\ndependencies: [{name: a}, {name: b, alias: a}]",
            )],
            "validation: more than one dependency with name or alias \"a\"",
        ),
        (
            &[("Chart.yaml", META), ("charts/README.txt", "")],
            "error unpacking subchart README.txt in c: Chart.yaml file is missing",
        ),
        (
            &[("Chart.yaml", META), ("charts/x.tgz/y", "no")],
            "error unpacking subchart tar in c: expected x.tgz, got x.tgz/y",
        ),
        (
            &[("Chart.yaml", META), ("charts/x.tgz", "no")],
            "error unpacking subchart x.tgz in c: the archive can't be read",
        ),
    ];
    for (files, expected) in table {
        let got = error(files);
        assert!(got.starts_with(expected), "{files:?}: {got}");
    }
    let asking = format!("{META}dependencies: [{{name: a, version: 1.x}}]");
    let chart = load(&[("Chart.yaml", &asking)]).unwrap();
    assert!(
        chart
            .check_installable(HelmVersion::V3)
            .unwrap_err()
            .to_string()
            .ends_with("missing in charts/ directory: a")
    );
}

#[test]
fn requirements_yaml_is_read_for_api_version_v1_only() {
    let files = [
        ("Chart.yaml", "name: c\nversion: 1.0.0"),
        ("requirements.yaml", "dependencies: [{name: a, version: 1}]"),
    ];
    let chart = load(&files).unwrap();
    assert_eq!(chart.metadata.api_version, "v1");
    assert_eq!(chart.metadata.dependencies.as_ref().map(Vec::len), Some(1));
    assert_eq!(chart.files.len(), 1);
    let chart = load(&[("Chart.yaml", META), files[1]]).unwrap();
    assert_eq!((chart.files.len(), chart.warnings.len()), (0, 1));
}

#[test]
fn ignore_rules_are_those_of_helm() {
    let rules = ignore::Rules::parse("# no\n\n*.bak\n/top\ndir/\na/*/c\n!b/keep.txt\n").unwrap();
    for (path, is_dir, expected) in [
        ("x.bak", false, true),
        ("b/x.bak", false, true),
        ("top", false, true),
        ("b/keep.txt", false, false),
        ("dir", true, true),
        ("a/b/c", false, true),
        // A negated rule ignores all other paths.
        ("b/other.txt", false, true),
    ] {
        assert_eq!(rules.ignore(path, is_dir), expected, "{path}");
    }
    assert!(
        ignore::Rules::parse("a/**")
            .unwrap_err()
            .to_string()
            .contains("double-star")
    );
    assert!(ignore::Rules::parse("[a").is_err());
    assert!(ignore::Rules::default().ignore("templates/.x", false));
    assert!(!ignore::Rules::default().ignore(".x", false));
}

#[test]
fn ignore_patterns_match_as_in_go() {
    let table = [
        ("a*c", "abbc", true),
        ("a*c", "a/c", false),
        ("a?c", "a/c", false),
        ("[a-c]x", "bx", true),
        ("[^a-c]x", "bx", false),
        (r"a\*", "a*", true),
        ("templates/*.yaml", "templates/x.yaml", true),
        ("[]a]", "a", false),
        ("[z-a]", "b", false),
        ("a.c", "abc", false),
        ("*a*b*", "xxaxxbxx", true),
        ("*ab", "aab", true),
        ("*ab", "aabx", false),
        ("*/*b", "x/ab", true),
        ("*/b", "x/y/b", false),
        ("*", "", true),
        ("", "a", false),
        ("a?", "aß", true),
        ("[^z-a]", "/", true),
    ];
    for (pattern, name, expected) in table {
        assert_eq!(
            Pattern::parse(pattern).is_ok_and(|pattern| pattern.is_match(name)),
            expected,
            "{pattern} {name}"
        );
    }
    for bad in ["[", "[a", "a[", r"a\", "[-]", "[]a]"] {
        assert!(Pattern::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn files_glob_finds_files() {
    let names = ["a.txt", "conf/a.conf", "conf/b.txt", "conf/sub/c.txt", "x{y"];
    let file = |name: &&str| File {
        name: (*name).to_owned(),
        data: Bytes::from(format!("of {name}\n")),
    };
    let files = Files::new(&names.iter().map(file).collect::<Vec<_>>(), HelmVersion::V3);
    for (pattern, expected) in [
        ("*", vec!["a.txt", "x{y"]),
        ("**", names.to_vec()),
        ("**.txt", vec!["a.txt", "conf/b.txt", "conf/sub/c.txt"]),
        ("conf/*", vec!["conf/a.conf", "conf/b.txt"]),
        ("conf/{a,sub/*}.*", vec!["conf/a.conf", "conf/sub/c.txt"]),
        ("conf/[ab].*", vec!["conf/a.conf", "conf/b.txt"]),
        ("conf/[!a]*", vec!["conf/b.txt"]),
        ("conf/[a-a]*", vec!["conf/a.conf"]),
        (r"x\{y", vec!["x{y"]),
        // An invalid pattern matches everything, but one without the end of its alternatives nothing.
        ("conf/[", names.to_vec()),
        ("{a", Vec::new()),
    ] {
        let found = files
            .call("Glob", &[Value::string(pattern)])
            .unwrap()
            .unwrap()
            .as_dict()
            .unwrap();
        let found: Vec<String> = found.borrow().keys().map(|key| key.to_string()).collect();
        assert_eq!(found, expected, "{pattern}");
    }
}

#[test]
fn files_methods_return_contents() {
    let file = |name: &str, text: &'static str| File {
        name: name.to_owned(),
        data: Bytes::from(text),
    };
    let files = Files::new(&[file("d/a", "1\n\n2\n"), file("empty", "")], HelmVersion::V3);
    let call =
        |method: &str, name: &str| format!("{:?}", files.call(method, &[Value::string(name)]).unwrap());
    assert_eq!(call("Get", "d/a"), r#"Ok("1\n\n2\n")"#);
    assert_eq!(call("Get", "none"), r#"Ok("")"#);
    assert_eq!(call("Lines", "d/a"), r#"Ok(["1", "", "2"])"#);
    assert_eq!(call("Lines", "none"), "Ok([])");
    assert_eq!(
        call("Lines", "empty"),
        r#"Err(Failed("runtime error: index out of range [-1]"))"#
    );
    assert_eq!(
        files.print(&Budget::default()).as_deref(),
        Ok("map[d/a:[49 10 10 50 10] empty:[]]")
    );
    assert!(files.call("Nope", &[]).is_none());
}

fn unpacked(files: &[(&str, &[u8])]) -> Result<Chart, Error> {
    let tree = Mem::from_files([("c.tgz", tar_gz(files))]).unwrap();
    Chart::load(
        &tree,
        &TreePath::parse("c.tgz").unwrap(),
        HelmVersion::V3,
        &Budget::default(),
    )
}

#[test]
fn load_reads_archives() {
    let inner = tar_gz(&[("in/Chart.yaml", b"name: in\nversion: 1.0.0")]);
    let chart = unpacked(&[("c/Chart.yaml", META.as_bytes()), ("c/charts/in.tgz", &inner)]).unwrap();
    assert_eq!(chart.name(), "c");
    assert_eq!(chart.dependencies[0].name(), "in");
    let table: &[(&str, &str)] = &[
        ("../../x", "references parent directory"),
        ("c//etc/x", "absolute paths"),
        ("c/C:/x", "illegally named"),
        ("Chart.yaml/x", "not in base directory"),
        ("Chart.yaml", "outside the base directory"),
        ("x", "outside the base directory"),
    ];
    for (path, expected) in table {
        let got = unpacked(&[("c/Chart.yaml", META.as_bytes()), (path, b"x")])
            .unwrap_err()
            .to_string();
        assert!(got.contains(expected), "{path}: {got}");
    }
}

#[test]
fn links_in_archives_are_empty_files_as_in_helm() {
    let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(
        Vec::new(),
        flate2::Compression::fast(),
    ));
    let mut header = tar::Header::new_gnu();
    header.set_size(META.len() as u64);
    archive
        .append_data(&mut header, "c/Chart.yaml", META.as_bytes())
        .unwrap();
    for (name, kind) in [
        ("c/symbolic", tar::EntryType::Symlink),
        ("c/hard", tar::EntryType::Link),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        archive.append_link(&mut header, name, "c/Chart.yaml").unwrap();
    }
    let data = archive.into_inner().unwrap().finish().unwrap();
    let files =
        super::archive::files(&data, 1 << 20, 1 << 20, &Unpacked::default(), &Budget::default()).unwrap();
    let read: Vec<_> = files
        .iter()
        .map(|file| (file.name.as_str(), file.data.len()))
        .collect();
    assert_eq!(read, [("Chart.yaml", META.len()), ("symbolic", 0), ("hard", 0)]);
}

#[test]
fn load_refuses_archives_over_the_limits() {
    // The header declares the size of the file.
    let mut header = tar::Header::new_gnu();
    header.set_path("c/x").unwrap();
    header.set_size(6 << 20);
    header.set_cksum();
    let got = archive::files(
        &gzip(header.as_bytes()),
        100 << 20,
        archive::MAX_FILE,
        &Unpacked::default(),
        &Budget::default(),
    )
    .unwrap_err()
    .to_string();
    assert!(got.contains("larger than the maximum file size 5242880"), "{got}");
    let many = tar_gz(&[
        ("c/a", &[0; 40_000]),
        ("c/b", &[0; 40_000]),
        ("c/c", &[0; 40_000]),
    ]);
    let got = archive::files(
        &many,
        100_000,
        archive::MAX_FILE,
        &Unpacked::default(),
        &Budget::default(),
    )
    .unwrap_err()
    .to_string();
    assert!(got.contains("larger than the maximum file size 100000"), "{got}");
    let mut bomb = tar_gz(&[("c/Chart.yaml", META.as_bytes())]);
    for _ in 0..25 {
        bomb = tar_gz(&[("c/Chart.yaml", META.as_bytes()), ("c/charts/c.tgz", &bomb)]);
    }
    let tree = Mem::from_files([("c.tgz", bomb)]).unwrap();
    let got = Chart::load(
        &tree,
        &TreePath::parse("c.tgz").unwrap(),
        HelmVersion::V3,
        &Budget::default(),
    )
    .unwrap_err();
    assert!(got.to_string().contains("deeper than 20"), "{got}");
}

#[test]
fn archives_of_countless_entries_are_refused_not_cut() {
    let meta = ("c/Chart.yaml", META.as_bytes());
    let read = |data: &[u8], max: u64| {
        let files = archive::files(
            data,
            max,
            archive::MAX_FILE,
            &Unpacked::default(),
            &Budget::default(),
        );
        files.map_err(|error| error.to_string())
    };
    let block = [("c/x", [].as_slice()); 1000];
    let files = tar_gz_of_many(&[meta], &block, 1000);
    let got = read(&files, archive::MAX_CHART).unwrap_err();
    assert_eq!(got, "the chart has more than 50000 files");
    // Directories are not counted as files. A file after them must not be lost: twice the size of a chart is read.
    let directories = |count: usize| {
        let mut entries: Vec<(&str, &[u8])> = vec![meta];
        entries.extend(std::iter::repeat_n(("c/d/", [].as_slice()), count));
        entries.push(("c/values.yaml", b"a: 1"));
        tar_gz(&entries)
    };
    let max = 512 * 100;
    assert_eq!(read(&directories(100), max).unwrap().len(), 2);
    let got = read(&directories(300), max).unwrap_err();
    assert_eq!(
        got,
        "decompressed chart is larger than the maximum file size 51200"
    );
}

#[test]
#[cfg(unix)]
fn links_in_circles_end() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("Chart.yaml"), META).unwrap();
    for name in ["a", "b"] {
        std::os::unix::fs::symlink(".", dir.path().join(name)).unwrap();
    }
    let tree = Disk::open(dir.path(), &Limits::default()).unwrap();
    let got = Chart::load(&tree, &TreePath::root(), HelmVersion::V3, &Budget::default())
        .unwrap_err()
        .to_string();
    assert_eq!(got, "a: links lead in a circle");
}

#[test]
fn load_refuses_large_files_before_reading_them() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("Chart.yaml"), META).unwrap();
    let big = std::fs::File::create(dir.path().join("big")).unwrap();
    big.set_len(1 << 30).unwrap();
    let limits = Limits {
        file_bytes: 5 << 20,
        ..Limits::default()
    };
    let tree = Disk::open(dir.path(), &limits).unwrap();
    let error = Chart::load(&tree, &TreePath::root(), HelmVersion::V3, &Budget::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "chart file \"big\" is larger than the maximum file size 5242880"
    );
}

/// An archive of one entry of a kind with this content.
fn entry_of(kind: tar::EntryType, content: &[u8], more: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_path("././@LongLink").unwrap();
    header.set_cksum();
    archive.append(&header, content).unwrap();
    for (path, content) in more {
        let mut header = tar::Header::new_gnu();
        header.set_path(path).unwrap();
        header.set_size(content.len() as u64);
        header.set_cksum();
        archive.append(&header, *content).unwrap();
    }
    gzip(&archive.into_inner().unwrap())
}

fn names_of(archive: &[u8]) -> Result<Vec<String>, String> {
    let files = super::unpack(archive, "c.tgz", &Budget::default()).map_err(|error| error.to_string())?;
    Ok(files.into_iter().map(|file| file.name).collect())
}

#[test]
fn extension_headers_are_read_up_to_a_limit() {
    let long = format!("c/{}/f", "d".repeat(300));
    let file = [("c/short", b"x".as_slice())];
    let name = entry_of(tar::EntryType::GNULongName, format!("{long}\0").as_bytes(), &file);
    assert_eq!(names_of(&name).unwrap(), [long[2..].to_owned()]);
    let record = format!("{} path={long}\n", long.len() + 10);
    let name = entry_of(tar::EntryType::XHeader, record.as_bytes(), &file);
    assert_eq!(names_of(&name).unwrap(), [long[2..].to_owned()]);
    let name = entry_of(tar::EntryType::XHeader, b"9 size=1\n", &file);
    assert_eq!(names_of(&name).unwrap(), ["short"]);
    let name = entry_of(tar::EntryType::XHeader, b"9 size=2\n", &file);
    assert!(names_of(&name).unwrap_err().ends_with("a file has two sizes"));
    for kind in [
        tar::EntryType::GNULongName,
        tar::EntryType::GNULongLink,
        tar::EntryType::XHeader,
    ] {
        let error = names_of(&entry_of(kind, &vec![b'a'; 70_000], &file)).unwrap_err();
        assert!(error.ends_with("a header is larger than 65536 bytes"), "{error}");
    }
}

#[test]
fn archives_in_archives_share_the_limits_of_a_chart() {
    let zeros = vec![0; 5 << 20];
    let inner: Vec<(String, &[u8])> = (0..8).map(|n| (format!("c/f{n}"), zeros.as_slice())).collect();
    let mut inner: Vec<(&str, &[u8])> = inner.iter().map(|(name, data)| (name.as_str(), *data)).collect();
    inner.push(("c/Chart.yaml", META.as_bytes()));
    let inner = tar_gz(&inner);
    let outer: Vec<String> = (0..3).map(|n| format!("c/charts/c{n}.tgz")).collect();
    let mut outer: Vec<(&str, &[u8])> = outer
        .iter()
        .map(|name| (name.as_str(), inner.as_slice()))
        .collect();
    outer.push(("c/Chart.yaml", META.as_bytes()));
    let load = |data: Vec<u8>| {
        let tree = Mem::from_files([("c.tgz", data)]).unwrap();
        Chart::load(
            &tree,
            &TreePath::parse("c.tgz").unwrap(),
            HelmVersion::V3,
            &Budget::default(),
        )
        .map_err(|error| error.to_string())
    };
    let error = load(tar_gz(&outer)).unwrap_err();
    assert!(
        error.contains("decompressed chart is larger than the maximum file size"),
        "{error}"
    );
    let values = vec![b' '; 5 << 20];
    let names: Vec<String> = (0..4).map(|n| format!("c/charts/c{n}/")).collect();
    let files: Vec<(String, &[u8])> = names
        .iter()
        .flat_map(|name| {
            [
                (format!("{name}values.yaml"), values.as_slice()),
                (format!("{name}Chart.yaml"), META.as_bytes()),
            ]
        })
        .collect();
    let mut files: Vec<(&str, &[u8])> = files.iter().map(|(name, data)| (name.as_str(), *data)).collect();
    files.push(("c/Chart.yaml", META.as_bytes()));
    let error = load(tar_gz(&files)).unwrap_err();
    assert!(error.contains("are larger than 16777216 bytes"), "{error}");
}

#[test]
fn unpacking_is_counted() {
    let data = tar_gz(&[("c/Chart.yaml", META.as_bytes()), ("c/f", &vec![0; 4 << 20])]);
    let budget = Budget::new(Limits {
        steps: 10_000,
        ..Limits::default()
    });
    let error = super::unpack(&data, "c.tgz", &budget).unwrap_err();
    assert!(matches!(error, Error::Exceeded(_)), "{error}");
}
