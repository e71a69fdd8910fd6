//! Variables of the cluster, the environment, servers and stores.

use super::*;

/// Renders an expression with these sources of variables.
fn v(sources: &str, expression: &str) -> String {
    let deployment = format!("vars:\n- values: {{who: me}}\n{sources}\ndeployments: [{{path: app}}]\n");
    let map = MAP.replace(" v ", &format!(" {expression} "));
    let files = [("deployment.yaml", deployment.as_str()), ("app/m.yaml", &map)];
    match render_files(&files, &request(Repositories(Vec::new()))) {
        Ok(rendered) => values(&rendered).join(","),
        Err(error) => {
            let error = error.to_string();
            assert!(!error.contains("s3cret"), "{error}");
            error
        }
    }
}

#[test]
fn vars_load_from_environment_cluster_http_and_stores() {
    for (sources, expression, expected) in [
        (
            "- clusterConfigMap: {name: one, namespace: ns, key: k}",
            "cm",
            "me",
        ),
        (
            "- clusterConfigMap: {name: one, namespace: ns, key: s, targetPath: a.b}",
            "a.b + 1",
            "43",
        ),
        (
            "- clusterConfigMap: {labels: {x: z}, namespace: ns, key: v, targetPath: a}",
            "a",
            "2",
        ),
        ("- clusterSecret: {name: s, namespace: ns, key: k}", "sec", "True"),
        (
            "- clusterConfigMap: {name: nope, namespace: ns, key: k}\n  ignoreMissing: true",
            "cm | default('none')",
            "none",
        ),
        (
            "- clusterObject: {kind: ConfigMap, labels: {a: b}, list: true, path: metadata.name}\n  targetPath: found",
            "found | join('-')",
            "one-two",
        ),
        (
            "- clusterObject: {kind: ConfigMap, name: one, path: data.k, render: true, parseYaml: true}\n  targetPath: found",
            "found.cm",
            "me",
        ),
        (
            "- systemEnvVars: {a: {b: NUMBER}, c: 'NOPE:7', d: 'NOPE:', e: EMPTY}",
            "(a.b + c) ~ d ~ e",
            "11None",
        ),
        (
            "- systemEnvVars: {a: 'EMPTY:x', b: 'EMPTY:', c: {d: EMPTY}}",
            "(a is none) ~ (b is none) ~ (c.d is none)",
            "TrueTrueTrue",
        ),
        (
            "- values: {a: 9223372036854775807, b: 12345678901234567890, c: 18446744073709551615, d: 1e20, e: 1e21}",
            "[a, b, c, d, e]",
            "[9223372036854776000, 12345678901234567000, 18446744073709552000, 100000000000000000000, 1e+21]",
        ),
        (
            "- values: {a: 9007199254740993, b: -9223372036854775808, c: 1.5e20, d: -1e20, e: 9007199254740992}",
            "[a, b, c, d, e]",
            "[9007199254740992, -9223372036854776000, 150000000000000000000, -100000000000000000000, 9007199254740992]",
        ),
        (
            "- systemEnvVars: {a: NOPE}\n  ignoreMissing: true",
            "a | default('none')",
            "none",
        ),
        (
            "- http: {url: 'https://x/v?key=s3cret', method: POST}",
            "m",
            "POST",
        ),
        ("- http: {url: 'https://x/v?key=s3cret', jsonPath: in}", "a", "1"),
        (
            "- http: {url: https://x/gone}\n  ignoreMissing: true",
            "m | default('none')",
            "none",
        ),
        (
            "- awsSecretsManager: {secretName: there, region: r, profile: p}",
            "aws",
            "p me",
        ),
        ("- vault: {address: 'https://x', path: there}", "vault", "1"),
    ] {
        assert_eq!(v(sources, expression), expected, "{sources}");
    }
}

#[test]
fn missing_vars_fail_unless_ignored() {
    for (sources, expected) in [
        (
            "- clusterConfigMap: {name: nope, namespace: ns, key: k}",
            "vars[1]: configmaps \"nope\" not found",
        ),
        (
            "- clusterConfigMap: {name: one, namespace: ns, key: nope}",
            "key nope not found in ns/ConfigMap/one on cluster",
        ),
        (
            "- clusterConfigMap: {name: one, namespace: ns, key: s}",
            "from kubernetes object ns/ConfigMap/one and key s: value is not a YAML dictionary",
        ),
        (
            "- clusterSecret: {labels: {q: r}, namespace: ns, key: s}",
            "no object found with labels map[q:r]",
        ),
        (
            "- clusterConfigMap: {labels: {a: b}, namespace: ns, key: v}",
            "found more than one objects with labels map[a:b]",
        ),
        (
            "- clusterObject: {kind: ConfigMap, name: one, path: data.nope}\n  targetPath: found",
            "and json path data.nope: json path not found",
        ),
        (
            "- clusterObject: {kind: ConfigMap, name: one, path: data.*}\n  targetPath: found",
            "json path resulted in multiple matches",
        ),
        (
            "- systemEnvVars: {a: [NUMBER]}",
            "failed to set value for $[\"a\"][0]: key is not a string",
        ),
        ("- systemEnvVars: {a: 1}", "value at $[\"a\"] is not a string"),
        (
            "- http: {url: 'https://x/bad?key=s3cret'}",
            "failed with status code 500",
        ),
        ("- gcpSecretManager: {secretName: x}", "no such secret"),
        (
            "- git: {url: https://x/y, path: p}",
            "failed to fetch https://x/y: no HEAD",
        ),
    ] {
        let error = v(sources, "1");
        assert!(error.contains(expected), "{error}\nexpected {expected}");
    }
}

#[test]
fn errors_of_sensitive_vars_do_not_quote_them() {
    for (sources, expected) in [
        (
            "- systemEnvVars: {a: NUMBER, b: TOKEN}",
            "vars[1]: the environment variable TOKEN is not valid YAML (its content is sensitive and not shown) in its line 1",
        ),
        (
            "- vault: {address: 'https://x', path: broken}",
            "vars[1]: its value is not valid YAML (its content is sensitive and not shown) in its line 2",
        ),
        (
            "- vault: {address: 'https://x', path: broken}\n  multidoc: true\n  targetPath: a",
            "vars[1]: its value is not valid YAML",
        ),
        (
            "- vault: {address: 'https://x', path: template}",
            "its value holds templates that can't be rendered (its content is sensitive and not shown) in its line 2",
        ),
        (
            "- vault: {address: 'https://x', path: tag}",
            "its value holds templates that can't be rendered",
        ),
    ] {
        let error = v(sources, "1");
        assert!(error.contains(expected), "{error}\nexpected {expected}");
    }
}

#[test]
fn outline_marks_sensitive_vars() {
    let text = "vars:\n- clusterSecret: {name: s, namespace: ns, key: k}\n- values: {v: 1}\n- values: {v: 2}\n  when: 'false'\ndeployments:\n- path: app\n- path: app\n  when: v == 3\n- barrier: true\n";
    let rendered = render(text, Repositories(Vec::new())).unwrap();
    let expected = yaml(
        "vars:\n- {clusterSecret: {name: s, namespace: ns, key: k}, renderedVars: {sec: true}, renderedSensitive: true}\n\
         - {values: {v: 1}, renderedVars: {v: 1}}\n- {values: {v: 2}, when: 'false'}\n\
         deployments:\n- {path: app, tags: [app], renderedObjects: [{version: v1, kind: ConfigMap, name: m}]}\n\
         - {path: app, tags: [app], when: v == 3}\n- {barrier: true}\n",
    );
    assert_eq!(rendered.deployment(), expected);
}
