//! The paths of `get_var`, with the values of jsonpath-ng 1.8.0.

use std::sync::Arc;

use jinja::{Renderer, Vars};
use tree::{Budget, Mem};

const VARS: &str = "{m: {a: 1, b: [1, 2], c: x}, ports: {'8080': http, '80': web}, l: [{'n': a, v: 1}, {'n': b, v: 2}], s: t, \
                    'a-b': {'c d': 5}, 'n': 2}";

#[test]
fn paths_find_what_the_original_finds() {
    let vars = yaml::read::goyaml(VARS, &Budget::default()).unwrap().value;
    let vars = Vars::sorted(vars.as_map().unwrap());
    let files: [(&str, String); 0] = [];
    let mut renderer = Renderer::new(Arc::new(Mem::from_files(files).unwrap()), &[], &vars);
    for (path, expected) in [
        ("ports.8080", "http"),
        ("ports.080", "web"),
        ("ports['8080']", "http"),
        ("ports[8080]", "none"),
        ("8080", "none"),
        ("m.a + 1", "2"),
        ("m.a + m.a", "2"),
        ("m.a - 1 - 1", "1"),
        ("m.a * 2 + 3", "5"),
        ("m.a+-1", "0"),
        ("1 + m.a", "2"),
        ("2 * 3", "6"),
        ("1.5 + 1.5", "3.0"),
        ("(m.a + 1) * 2", "4"),
        ("m.c + 'y'", "xy"),
        ("m.c + 1", "none"),
        ("m.b + m.b", "[1, 2, 1, 2]"),
        ("m.b[0] + m.b[1]", "3"),
        ("n + n", "nn"),
        ("$.n + $.n", "4"),
        ("m.zz + 1", "none"),
        ("m.zz|m.a", "none"),
        ("m.zz|a", "1"),
        ("m.(zz|a)", "1"),
        ("(m.zz|m.a)", "none"),
        ("$.m.b[0]|m.b[1]", "2"),
        ("m.`len`", "3"),
        ("m.b.`len` + 1", "3"),
        ("m.b.`sorted`", "[1, 2]"),
        ("m.`sorted`", "['a', 'b', 'c']"),
        ("m.a.`parent`.c", "x"),
        ("l[\\v]", "[{'n': 'b', 'v': 2}, {'n': 'a', 'v': 1}]"),
        ("l[/v]", "[{'n': 'a', 'v': 1}, {'n': 'b', 'v': 2}]"),
        ("l[?v>1].n", "b"),
        ("l[?v==1 & n=='a'].v", "1"),
        ("l[?n=~'a'].v", "1"),
        ("l[?zz].n", "none"),
        ("s.`sub(/t/, q)`", "q"),
        ("s.`sub(/z/, q)`", "none"),
        ("s.`split(x, *, -1)`", "['t']"),
        ("n.`str()`", "2"),
        ("m wherenot zz", "{'a': 1, 'b': [1, 2], 'c': 'x'}"),
        ("m wherenot a", "none"),
        ("s[0]", "t"),
        ("m.b[5]", "none"),
        ("a-b.'c d'", "5"),
        ("m.b[::2]", "1"),
    ] {
        let template = format!("{{{{ get_var({path:?}, 'none') }}}}");
        let found = renderer.render_str(&template, &Budget::default()).unwrap();
        assert_eq!(found, expected, "{path}");
    }
    for (path, expected) in [
        ("m.`keys`", "Only simple jsonpath supported"),
        ("m[0]", "KeyError: 0"),
        ("n[0]", "object of type 'int' has no len()"),
        ("m.b[-3]", "IndexError: list index out of range"),
        ("m & m", "NotImplementedError"),
        (
            "m.`a`",
            "Invalid json path 'm.`a`'. Error=Unknown named operator `a` at 1:4",
        ),
    ] {
        let template = format!("{{{{ get_var({path:?}) }}}}");
        let error = renderer.render_str(&template, &Budget::default()).unwrap_err();
        assert!(error.to_string().contains(expected), "{path}: {error}");
    }
}
