use super::*;
use crate::{
    model::{configs::SECRET, shapes::GENERATOR_OPTIONS},
    options::Profile,
    transform::{decode, testing},
};

const FILES: &[(&str, &[u8])] = &[
    ("dir/app.env", b"\xef\xbb\xbfA=1\r\n# no\n\n  B\nC='x' \n"),
    ("dir/sub/text.txt", b"line\n"),
    ("dir/data.bin", b"\xff\xfe\0"),
    ("dir/bad.env", b"A=1\nB=\xff\n"),
];

type Make = fn(&GeneratorArgs, Option<&GeneratorOptions>, &PluginContext<'_>) -> Result<Resource, Error>;

fn made(make: Make, args: &str, global: Option<&str>) -> Result<Resource, String> {
    let args: GeneratorArgs = decode::config(&testing::config(args), &SECRET).unwrap();
    let global: Option<GeneratorOptions> =
        global.map(|text| decode::config(&testing::config(text), &GENERATOR_OPTIONS).unwrap());
    testing::ctx(FILES, Profile::default(), |ctx| {
        make(&args, global.as_ref(), ctx).map_err(|error| error.to_string())
    })
}

fn printed(resource: Resource) -> String {
    testing::text(&[resource].into_iter().collect())
}

#[test]
fn config_map_contains_its_sources() {
    let args =
        "{name: x, namespace: team, literals: [d=4], envs: [app.env], files: [sub/text.txt, k=data.bin]}";
    assert_eq!(
        printed(made(config_map, args, None).unwrap()),
        "apiVersion: v1\nbinaryData:\n  k: //4A\ndata:\n  A: \"1\"\n  B: \"\"\n  C: '''x'' '\n  d: \"4\"\n  text.txt: |\n    line\n\
         kind: ConfigMap\nmetadata:\n  name: x\n  namespace: team\n"
    );
    let empty = printed(made(config_map, "{name: '12'}", None).unwrap());
    assert_eq!(
        empty,
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"12\"\n"
    );
}

#[test]
fn a_secret_is_base64() {
    let secret_of = |args| printed(made(secret, args, None).unwrap());
    assert_eq!(
        secret_of("{name: x, literals: [a=1]}"),
        "apiVersion: v1\ndata:\n  a: MQ==\nkind: Secret\nmetadata:\n  name: x\ntype: Opaque\n"
    );
    assert_eq!(
        secret_of("{name: x, type: t}"),
        "apiVersion: v1\ndata: {}\nkind: Secret\nmetadata:\n  name: x\ntype: t\n"
    );
}

#[test]
fn options_of_all_generators_fill_in() {
    let args = "{name: x, behavior: merge, options: {labels: {a: own}, immutable: true}}";
    let global = "{labels: {a: all, b: all}, annotations: {c: all}, disableNameSuffixHash: true}";
    let resource = made(config_map, args, Some(global)).unwrap();
    assert!(!resource.history.needs_hash);
    assert_eq!(resource.history.behavior, Behavior::Merge);
    assert_eq!(
        printed(resource),
        "apiVersion: v1\nimmutable: true\nkind: ConfigMap\nmetadata:\n  annotations:\n    c: all\n  labels:\n    a: own\n    \
         b: all\n  name: x\n"
    );
    assert!(made(config_map, args, None).unwrap().history.needs_hash);
}

#[test]
fn invalid_generator_sources_are_refused() {
    for (args, expected) in [
        ("{}", "a configmap must have a name"),
        (
            "{name: x, literals: [a=1, a=2]}",
            "configmap x illegally repeats the key `a`",
        ),
        (
            "{name: x, literals: [A=1], envs: [app.env]}",
            "configmap x illegally repeats the key `A`",
        ),
        (
            "{name: x, files: [a=b=c]}",
            "loading KV pairs: file sources: [a=b=c]: source \"a=b=c\" key name or file path contains '='",
        ),
        (
            "{name: x, envs: [bad.env]}",
            "loading KV pairs: env source files: [bad.env]: line 2 of dir/bad.env has invalid utf8 bytes",
        ),
    ] {
        assert_eq!(made(config_map, args, None).unwrap_err(), expected);
    }
    let error = made(secret, "{name: x, files: [none.txt]}", None).unwrap_err();
    assert!(
        error.starts_with("loading KV pairs: file sources: [none.txt]: "),
        "{error}"
    );
}

#[test]
fn overlong_env_line_ends_the_file() {
    let long = format!("A=1\nB={}\nC=3\n", "x".repeat(64 * 1024));
    let files: &[(&str, &[u8])] = &[("dir/long.env", long.as_bytes())];
    let args: GeneratorArgs =
        decode::config(&testing::config("{name: x, envs: [long.env]}"), &SECRET).unwrap();
    let resource = testing::ctx(files, Profile::default(), |ctx| config_map(&args, None, ctx)).unwrap();
    assert!(printed(resource).contains("data:\n  A: \"1\"\nkind"));
}

fn generated(config: &str) -> String {
    testing::ctx(FILES, Profile::default(), |ctx| {
        let generator = from_config(&testing::config(config));
        match generator.and_then(|generator| generator.generate(ctx)) {
            Ok(resources) => testing::text(&resources),
            Err(error) => error.to_string(),
        }
    })
}

#[test]
fn generators_are_configured_by_objects() {
    assert_eq!(
        generated("{kind: ConfigMapGenerator, metadata: {name: x, namespace: team}, literals: [a=b]}"),
        "apiVersion: v1\ndata:\n  a: b\nkind: ConfigMap\nmetadata:\n  name: x\n  namespace: team\n"
    );
    assert_eq!(
        generated("{kind: SecretGenerator, metadata: {name: x}, name: 'y', type: t, options: null}"),
        "apiVersion: v1\ndata: {}\nkind: Secret\nmetadata:\n  name: \"y\"\ntype: t\n"
    );
    let policy = "{kind: IAMPolicyGenerator, cloud: gke, kubernetesService: {name: x, namespace: team}, \
                   serviceAccount: {name: sa, projectId: 'p'}}";
    assert_eq!(
        generated(policy),
        "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  annotations:\n    iam.gke.io/gcp-service-account: \
         sa@p.iam.gserviceaccount.com\n  name: x\n  namespace: team\n"
    );
    let other = policy.replace("gke", "other");
    assert_eq!(generated(&other), "cloud provider other not supported yet");
    assert_eq!(generated("{kind: Other}"), "there is no generator Other");
}
