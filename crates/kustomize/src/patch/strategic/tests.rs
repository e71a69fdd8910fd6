use std::{cell::Cell, collections::BTreeMap};

use super::*;
use crate::options::OpenApi;

fn node(text: &str) -> Node {
    yaml::read::node(text, &tree::Budget::default()).unwrap().unwrap()
}

fn merged_with(object: &str, patch: &str, schema: &Schema) -> Result<String, String> {
    let merged = merge(node(object), &node(patch), schema, &|_| Ok(())).map_err(|error| error.to_string())?;
    Ok(merged.map_or_else(
        || "nothing".to_owned(),
        |node| yaml::print::json_sorted(&node.to_value().unwrap()),
    ))
}

/// Returns the value under `key` after a merge into a map of an unknown kind.
fn merged(object: &str, patch: &str) -> String {
    merged_with(object, patch, &Schema::default()).unwrap_or_else(|error| format!("error: {error}"))
}

fn containers(object: &str, patch: &str) -> String {
    let deployment = |containers: &str| {
        let meta = "apiVersion: apps/v1, kind: Deployment, metadata: {name: a}";
        format!("{{{meta}, spec: {{template: {{spec: {{containers: {containers}}}}}}}}}")
    };
    let merged = merged(&deployment(object), &deployment(patch));
    let Some((_, rest)) = merged.split_once(r#""template":{"spec":{"#) else {
        return merged;
    };
    let containers = rest.trim_end_matches('}').strip_prefix(r#""containers":"#);
    containers.unwrap_or_default().replace('"', "")
}

fn ports(object: &str, patch: &str) -> String {
    let service = |ports: &str| format!("{{apiVersion: v1, kind: Service, spec: {{ports: {ports}}}}}");
    let merged = merged(&service(object), &service(patch));
    let (_, rest) = merged.split_once(r#""ports":"#).unwrap();
    rest.trim_end_matches('}').replace('"', "")
}

#[test]
fn maps_are_merged_and_scalars_replaced() {
    for (object, patch, expected) in [
        (
            "{a: 1, b: {c: 1}}",
            "{a: x, b: {d: 2}}",
            r#"{"a":"x","b":{"c":1,"d":2}}"#,
        ),
        ("{a: 1}", "{a: null}", "{}"),
        ("{a: {b: 1}}", "{a: null, c: null}", "{}"),
        ("{a: {b: 1}}", "{a: {}, c: {}}", r#"{"a":{"b":1},"c":{}}"#),
        ("{a: null, b: ~}", "{c: 1}", r#"{"a":null,"b":null,"c":1}"#),
        ("{a: , b: {c: }}", "{c: 1}", r#"{"b":{},"c":1}"#),
        ("{a: null}", "{a: {b: null, c: {d: null}}}", r#"{"a":{"c":{}}}"#),
        ("{a: '1', b: x}", "{a: 2, b: 3}", r#"{"a":"2","b":3}"#),
        ("{a: [1, 2]}", "{a: [3]}", r#"{"a":[3]}"#),
        (
            "{a: [{name: x}]}",
            "{a: [{name: y, $patch: delete}]}",
            r#"{"a":[{"$patch":"delete","name":"y"}]}"#,
        ),
        ("{a: [1]}", "{a: []}", r#"{"a":[]}"#),
        ("{a: 1.10}", "{b: 0x1F}", r#"{"a":1.1,"b":31}"#),
        (
            "{a: {b: 1}}",
            "{a: 5}",
            "error: wrong node kind: expected MappingNode but got ScalarNode",
        ),
        (
            "{$setElementOrder/a: [1]}",
            "{$retainKeys: [b]}",
            r#"{"$retainKeys":["b"],"$setElementOrder/a":[1]}"#,
        ),
    ] {
        assert_eq!(merged(object, patch), expected, "{object} {patch}");
    }
}

#[test]
fn directives_of_maps_are_obeyed() {
    for (object, patch, expected) in [
        ("{a: 1}", "{$patch: delete}", "nothing"),
        ("{a: 1}", "{$patch: replace, b: 1}", r#"{"a":1}"#),
        ("{a: 1}", "{$patch: merge, b: 1}", r#"{"a":1,"b":1}"#),
        (
            "{a: 1}",
            "{$patch: shout}",
            "error: unknown patch strategy 'shout'",
        ),
        ("{a: 1}", "{$patch: null}", "error: unknown patch strategy 'null'"),
        (
            "{a: {b: 1, c: 2}}",
            "{a: {$patch: replace, d: null, e: 3}}",
            r#"{"a":{"e":3}}"#,
        ),
        ("{a: {b: 1}}", "{a: {$patch: delete}}", "{}"),
        ("{b: 1}", "{a: {$patch: delete, x: 1}}", r#"{"b":1}"#),
        (
            "{b: 1}",
            "{a: {$patch: replace, x: {$patch: delete}}}",
            r#"{"a":{},"b":1}"#,
        ),
        (
            "{b: 1}",
            "{a: {$patch: shout}}",
            r#"{"a":{"$patch":"shout"},"b":1}"#,
        ),
        (
            "{b: 1}",
            "{a: {x: {$patch: shout}}}",
            "error: unknown patch strategy 'shout'",
        ),
    ] {
        assert_eq!(merged(object, patch), expected, "{object} {patch}");
    }
}

#[test]
fn merged_strings_are_quoted_only_if_necessary() {
    for (made, expected) in [("prod", "{\"a\":5}"), ("1", "{\"a\":\"5\"}")] {
        let mut object = Node::map();
        object.set("a", Node::string(made));
        let merged = merge(object, &node("{a: 5}"), &Schema::default(), &|_| Ok(()));
        let merged = merged.unwrap().unwrap().to_value().unwrap();
        assert_eq!(yaml::print::json_sorted(&merged), expected, "{made}");
    }
}

#[test]
fn only_the_first_of_equal_keys_takes_part() {
    let merged = merge(
        node("{a: 1, b: 2, a: 3}"),
        &node("{a: 4, c: 5, a: 6, c: 7}"),
        &Schema::default(),
        &|_| Ok(()),
    );
    let merged = merged.unwrap().unwrap();
    let entries: Vec<_> = merged
        .as_map()
        .unwrap()
        .iter()
        .map(|(k, v)| (k.to_owned(), text(v).to_owned()))
        .collect();
    let expected = [("a", "4"), ("b", "2"), ("a", "3"), ("c", "5")];
    assert_eq!(entries, expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
}

#[test]
fn elements_are_merged_by_their_key_and_come_first() {
    for (object, patch, expected) in [
        (
            "[{name: a}, {name: b}]",
            "[{name: b, image: x}]",
            "[{image:x,name:b},{name:a}]",
        ),
        (
            "[{name: a}, {name: b}]",
            "[{name: c}]",
            "[{name:c},{name:a},{name:b}]",
        ),
        (
            "[{name: a}, {name: b}]",
            "[{name: a, $patch: delete}]",
            "[{name:b}]",
        ),
        (
            "[{name: a, x: 1}, {name: b}]",
            "[{name: b, $patch: replace, y: 1}]",
            "[{name:b},{name:a,x:1}]",
        ),
        ("[{name: a}]", "[]", "[{name:a}]"),
        ("[{name: a}]", "null", ""),
        (
            "[{name: a}]",
            "[{name: z, v: {$patch: delete}}, {$patch: replace}]",
            "[{name:z}]",
        ),
        ("[{name: a}]", "[{name: z}, {$patch: delete}]", ""),
        (
            "[{name: a}]",
            "[{$patch: shout}]",
            "error: unknown patch strategy 'shout'",
        ),
        (
            "[{name: a}]",
            "[{name: a, $patch: shout}]",
            "error: unknown patch strategy 'shout'",
        ),
        (
            "[{name: a, env: [{name: x, value: '1'}]}]",
            "[{name: a, env: [{name: y}]}]",
            "[{env:[{name:y},{name:x,value:1}],name:a}]",
        ),
        (
            "[{name: a, args: [x]}]",
            "[{name: a, args: [y]}]",
            "[{args:[y],name:a}]",
        ),
        ("null", "[{name: a, x: null}]", "[{name:a}]"),
    ] {
        assert_eq!(containers(object, patch), expected, "{object} {patch}");
    }
}

#[test]
fn irregular_lists_merge_with_the_original_quirks() {
    for (object, patch, expected) in [
        ("[{name: a}, {name: b}]", "[{image: x}]", "[]"),
        ("[{name: a}, {image: z}]", "[{image: x}]", "[{image:z}]"),
        ("[{image: z}]", "[{image: x}, {name: q}]", "[{image:z}]"),
        (
            "[{image: z}, {name: q}, {image: k}]",
            "[{name: q, image: 1}]",
            "[{image:k}]",
        ),
        ("[{name: q}]", "[{name: null, image: 1}]", "[]"),
        (
            "[{name: q, a: 1}, {name: q, b: 2}]",
            "[{name: r, image: 1}]",
            "[{image:1,name:r},{b:2,name:q}]",
        ),
        (
            "[{name: q, a: 1}]",
            "[{name: q, b: 2}, {name: q, c: 3}]",
            "[{a:1,b:2,name:q}]",
        ),
        (
            "[{name: q, a: 1}]",
            "[{name: q, b: 2}, null, {}]",
            "[{a:1,b:2,name:q}]",
        ),
        (
            "[{name: q, a: 1}, 5]",
            "[{name: q, b: 2}]",
            "error: wrong node kind: expected MappingNode but got ScalarNode",
        ),
        (
            "[]",
            "[{name: q, ports: [{containerPort: 1, protocol: UDP}, {name: x}, {containerPort: 1}, {$patch: replace}]}, \
             {$patch: replace}, {name: z, $patch: delete}, {name: k, $patch: replace}]",
            "[{name:q,ports:[{name:x},{containerPort:1}]}]",
        ),
        (
            "[]",
            "[{name: q, ports: [{containerPort: 1}, {containerPort: 1, protocol: TCP}]}]",
            "[{name:q,ports:[{containerPort:1},{containerPort:1,protocol:TCP}]}]",
        ),
        (
            "[{name: q, ports: [{containerPort: 1}]}]",
            "[{name: q, ports: [{containerPort: 1, protocol: TCP, $patch: delete}]}]",
            "[{name:q,ports:[{containerPort:1}]}]",
        ),
        (
            "[{name: q, ports: [{containerPort: 1}, {containerPort: 1, name: b}, {containerPort: 2, name: c}]}]",
            "[{name: q, ports: [{containerPort: 1, protocol: UDP}]}]",
            "[{name:q,ports:[{containerPort:1,name:b},{containerPort:2,name:c}]}]",
        ),
        (
            "[{name: q, ports: [{containerPort: 1, protocol: null}, {name: b}, {containerPort: 2, name: c}]}]",
            "[{name: q, ports: [{containerPort: 1, protocol: UDP}, {name: x}]}]",
            "[{name:q,ports:[{name:b},{containerPort:2,name:c}]}]",
        ),
    ] {
        assert_eq!(containers(object, patch), expected, "{object} {patch}");
    }
}

#[test]
fn ports_are_merged_by_number_and_protocol() {
    for (object, patch, expected) in [
        (
            "[{port: 80}]",
            "[{port: 80, name: http}]",
            "[{name:http,port:80}]",
        ),
        (
            "[{port: 80}, {port: 81, protocol: UDP}]",
            "[{port: 80, name: http}]",
            "[{name:http,port:80},{port:81,protocol:UDP}]",
        ),
        (
            "[{port: 80, protocol: TCP}]",
            "[{port: 80, name: http}]",
            "[{port:80,protocol:TCP}]",
        ),
        (
            "[{port: 80}]",
            "[{port: 80, name: http, protocol: TCP}]",
            "[{port:80}]",
        ),
        (
            "[{port: 80, name: a}]",
            "[{port: 90, name: a}]",
            "[{name:a,port:90},{name:a,port:80}]",
        ),
        (
            "[{port: 80, name: a}, {port: 80, name: b}]",
            "[{port: 80, x: 1}]",
            "[{name:b,port:80}]",
        ),
        (
            "[{port: 80, protocol: TCP}, {port: 80, protocol: UDP}]",
            "[{port: 80, protocol: UDP, $patch: delete}]",
            "[{port:80,protocol:TCP}]",
        ),
        ("[{}]", "[{port: 80}, {port: 80, protocol: TCP}]", "[{}]"),
    ] {
        assert_eq!(ports(object, patch), expected, "{object} {patch}");
    }
}

#[test]
fn sets_of_scalars_are_joined() {
    let pod =
        |finalizers: &str| format!("{{apiVersion: v1, kind: Pod, metadata: {{finalizers: {finalizers}}}}}");
    for (object, patch, expected) in [
        ("[a, b]", "[c, b]", r#"["c","b","a"]"#),
        ("[a, a]", "[b]", r#"["b","a"]"#),
        ("[a]", "[]", r#"["a"]"#),
        ("[a, b]", "[{$patch: replace}, c]", r#"["c"]"#),
        ("['1']", "['2']", r#"["2","1"]"#),
    ] {
        let merged = merged(&pod(object), &pod(patch));
        assert!(
            merged.contains(&format!("\"finalizers\":{expected}")),
            "{object} {patch}: {merged}"
        );
    }
}

#[test]
fn embedded_objects_merge_by_their_kind() {
    let holder = |pod: &str| format!("{{apiVersion: x.io/v1, kind: Holder, spec: {{inner: {pod}}}}}");
    let pod = |name: &str| format!("{{apiVersion: v1, kind: Pod, spec: {{containers: [{{name: {name}}}]}}}}");
    let both = merged(&holder(&pod("a")), &holder(&pod("b")));
    assert!(both.contains(r#"[{"name":"b"},{"name":"a"}]"#), "{both}");
    let unknown = |name: &str| holder(&format!("{{spec: {{containers: [{{name: {name}}}]}}}}"));
    let second = merged(&unknown("a"), &unknown("b"));
    assert!(second.contains(r#"[{"name":"b"}]"#), "{second}");
}

#[test]
fn custom_schemas_set_merge_keys() {
    let document = "{definitions: {x: {x-kubernetes-group-version-kind: [{group: x.io, version: v1, kind: Shop}],
        properties: {shelves: {type: array, x-kubernetes-patch-strategy: merge, x-kubernetes-patch-merge-key: id}}}}}";
    let mut schema = Schema::default();
    let budget = tree::Budget::default();
    let set = schema.set(
        &BTreeMap::new(),
        Some(document.as_bytes()),
        true,
        OpenApi::Replace,
        &budget,
    );
    set.unwrap();
    let shop = |shelves: &str| format!("{{apiVersion: x.io/v1, kind: Shop, shelves: {shelves}}}");
    let merged = merged_with(&shop("[{id: 1, a: 1}]"), &shop("[{id: 1, b: 2}]"), &schema).unwrap();
    assert!(merged.contains(r#"[{"a":1,"b":2,"id":1}]"#), "{merged}");
}

/// Both algorithms must agree wherever the short one is used.
#[test]
fn regular_lists_merge_equally_in_both_algorithms() {
    let schema = Schema::default();
    let merger = Merger {
        schema: &schema,
        step: &|_| Ok(()),
        written: RefCell::default(),
    };
    let mut state = 7_u32;
    let mut random = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % below
    };
    for _ in 0..400 {
        let mut list = |directives: bool| {
            let mut names = vec!["a", "b", "c", "d"];
            let mut items = Vec::new();
            for _ in 0..random(5) {
                let name =
                    names.remove(usize::try_from(random(u32::try_from(names.len()).unwrap())).unwrap());
                let directive = match random(6) {
                    0 if directives => ", $patch: delete",
                    1 if directives => ", $patch: replace",
                    _ => "",
                };
                let value = ["1", "null", "", "2"][usize::try_from(random(4)).unwrap()];
                items.push(format!(
                    "{{name: {name}, v{}: {value}{directive}, m: {{x: {value}}}}}",
                    random(2)
                ));
            }
            node(&format!("[{}]", items.join(", ")))
                .as_seq()
                .unwrap()
                .to_vec()
        };
        let (object, patch) = (list(false), list(true));
        let (mut short, mut long) = (object.clone(), object.clone());
        let mut other = patch.clone();
        merger
            .elements(&mut short, list::Other::List(&mut patch.clone()), &["name"], None)
            .unwrap();
        merger
            .slowly(&mut long, list::Other::List(&mut other), &["name"], None)
            .unwrap();
        assert_eq!(short, long, "{object:?} {patch:?}");
        let (mut short, mut long) = (patch.clone(), patch.clone());
        merger
            .elements(&mut short, list::Other::Same, &["name"], None)
            .unwrap();
        merger
            .slowly(&mut long, list::Other::Same, &["name"], None)
            .unwrap();
        assert_eq!(short, long, "{patch:?}");
    }
}

#[test]
fn merging_counts_steps() {
    let counted = Cell::new(0);
    let step = |n| {
        counted.set(counted.get() + n);
        Ok(())
    };
    merge(
        node("{a: {b: 1, c: 2}}"),
        &node("{a: {b: 3}}"),
        &Schema::default(),
        &step,
    )
    .unwrap();
    assert_eq!(counted.get(), 4);
    let end = |_| Err(Error::new(Step::Patch, "enough"));
    assert!(merge(node("{a: 1}"), &node("{a: 2}"), &Schema::default(), &end).is_err());
}
