use clap::Parser;
use runtime::flags::{IDLE_IN_ALL, OBEYED_BY_ALL, differences};

use super::*;
use crate::Cli;

fn parse(args: &[&str]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from([&["source-controller"], args].concat())
}

/// Flags with an effect, besides the common ones.
const OBEYED: &[&str] = &[
    "events-addr",
    "events-token-file",
    "storage-path",
    "storage-addr",
    "storage-adv-addr",
    "artifact-retention-ttl",
    "artifact-retention-records",
    "artifact-digest-algo",
    "storage-quota-per-object",
    "storage-quota-per-namespace",
    "temporary-files-max-size",
    "requeue-dependency",
    "default-service-account",
    "revision-format",
    "sigstore-trusted-root",
    "helm-index-max-size",
    "helm-chart-max-size",
    "helm-chart-file-max-size",
    "token-cache-max-size",
    "token-cache-max-duration",
    "ssh-kex-algos",
    "ssh-hostkey-algos",
    "artifact-tokens",
    "require-artifact-tokens",
    "artifact-consumers",
    "artifact-token-audience",
    "shared-store-bucket",
    "shared-store-endpoint",
    "shared-store-region",
    "shared-store-prefix",
    "shared-store-insecure",
    "shared-store-ca-file",
];
/// Flags without an effect, each with a value that is not its default.
const IDLE: &[(&str, &str)] = &[
    ("no-cross-namespace-refs", "true"),
    ("helm-cache-max-size", "1"),
    ("helm-cache-ttl", "1m"),
    ("helm-cache-purge-interval", "1m"),
    ("watch-configs-label-selector", "a=b"),
    ("feature-gates", "CacheSecretsAndConfigMaps=true"),
];

#[test]
fn each_flag_has_an_effect_or_is_said_to_have_none() {
    let said = |cli: &Cli| [cli.common.idle(), cli.own.idle(&cli.common)].concat();
    let (obeyed, idle) = ([OBEYED_BY_ALL, OBEYED].concat(), [IDLE_IN_ALL, IDLE].concat());
    assert_eq!(differences(&obeyed, &idle, said), [] as [&str; 0]);
}

#[test]
fn every_flag_of_upstream_parses() {
    let cli = parse(&[
        "--events-addr=http://notification-controller.flux-system.svc.cluster.local./",
        "--metrics-addr=:8080",
        "--health-addr=:9440",
        "--concurrent=2",
        "--requeue-dependency=30s",
        "--interval-jitter-percentage=5",
        "--min-retry-delay=750ms",
        "--max-retry-delay=15m",
        "--storage-path=/data",
        "--storage-addr=:9090",
        "--storage-adv-addr=source-controller.flux-system.svc.cluster.local.",
        "--artifact-retention-ttl=60s",
        "--artifact-retention-records=2",
        "--artifact-digest-algo=sha512",
        "--helm-index-max-size=52428800",
        "--helm-chart-max-size=10485760",
        "--helm-chart-file-max-size=5242880",
        "--helm-cache-max-size=0",
        "--helm-cache-ttl=15m",
        "--helm-cache-purge-interval=1m",
        "--ssh-kex-algos=curve25519-sha256,ecdh-sha2-nistp256",
        "--ssh-hostkey-algos=ssh-ed25519",
        "--default-service-account=default",
        "--token-cache-max-size=100",
        "--token-cache-max-duration=1h",
        "--kube-api-qps=50",
        "--kube-api-burst=300",
        "--watch-all-namespaces=true",
        "--watch-label-selector=a=b",
        "--watch-configs-label-selector=c=d",
        "--enable-leader-election",
        "--leader-election-lease-duration=35s",
        "--leader-election-renew-deadline=30s",
        "--leader-election-retry-period=5s",
        "--leader-election-release-on-cancel",
        "--log-level=info",
        "--log-encoding=json",
        "--feature-gates=CacheSecretsAndConfigMaps=true,ObjectLevelWorkloadIdentity=true",
        "--revision-format=legacy",
    ])
    .unwrap();
    assert_eq!(cli.own.artifact_digest_algo, Algorithm::Sha512);
    assert_eq!(Style::from(cli.own.revision_format), Style::Legacy);
    assert_eq!(
        cli.own.advertised(),
        "source-controller.flux-system.svc.cluster.local."
    );
}

#[test]
fn defaults_are_upstreams_and_nonsense_is_refused() {
    let own = parse(&[]).unwrap().own;
    assert_eq!(own.retention(), Retention::default());
    assert_eq!(own.artifact_digest_algo, Algorithm::Sha256);
    assert_eq!(own.revision_format, RevisionFormat::Rfc5);
    for bad in [
        "--feature-gates=Nonsense=true",
        "--feature-gates=CacheSecretsAndConfigMaps",
        "--artifact-digest-algo=md5",
        "--revision-format=new",
        "--artifact-retention-ttl=60",
    ] {
        assert!(parse(&[bad]).is_err(), "{bad}");
    }
}

#[test]
fn unsupported_ssh_algorithms_are_left_out_unless_none_remains() {
    let named = |args: &[&str]| {
        parse(args)
            .unwrap()
            .own
            .ssh_algorithms()
            .map(|(_, unknown)| unknown)
    };
    assert_eq!(named(&[]).unwrap(), [] as [&str; 0]);
    assert_eq!(named(&["--ssh-kex-algos=x,curve25519-sha256"]).unwrap(), ["x"]);
    let error = named(&["--ssh-hostkey-algos=x,y"]).unwrap_err().to_string();
    assert!(error.contains("x, y; supported: ssh-ed25519"), "{error}");
}

#[test]
fn gates_are_closed_unless_their_last_value_is_true() {
    let is_open = |args: &[&str]| parse(args).unwrap().own.is_gate_open(OBJECT_IDENTITIES);
    assert!(!is_open(&[]));
    assert!(is_open(&["--feature-gates=ObjectLevelWorkloadIdentity=true"]));
    assert!(!is_open(&["--feature-gates=CacheSecretsAndConfigMaps=true"]));
    let both = "--feature-gates=ObjectLevelWorkloadIdentity=true,ObjectLevelWorkloadIdentity=false";
    assert!(!is_open(&[both]));
}

#[test]
fn a_default_service_account_needs_the_gate_and_a_name() {
    const OPEN: &str = "--feature-gates=ObjectLevelWorkloadIdentity=true";
    let accounts = |args: &[&str]| {
        let cli = parse(args).unwrap();
        let accounts = cli.own.service_accounts(&cli.common)?;
        Ok((accounts.of_objects, accounts.default))
    };
    assert_eq!(accounts(&[]), Ok((false, None)));
    assert_eq!(accounts(&[OPEN]), Ok((true, None)));
    let named = accounts(&[OPEN, "--default-service-account=tenant"]);
    assert_eq!(named, Ok((true, Some("tenant".to_owned()))));
    let closed = accounts(&["--default-service-account=tenant"]);
    assert_eq!(closed, Err(InvalidDefaultAccount::Gate));
    let invalid = accounts(&[OPEN, "--default-service-account=a/../b"]);
    assert_eq!(invalid, Err(InvalidDefaultAccount::Name("a/../b".to_owned())));
}

#[test]
fn quotas_have_units_and_zero_is_none() {
    let quotas = |args: &[&str]| parse(args).map(|cli| cli.own.quotas());
    let default = Quotas {
        object: 2 << 30,
        namespace: 5 << 30,
    };
    assert_eq!(quotas(&[]).unwrap(), default);
    let none = ["--storage-quota-per-object=0", "--storage-quota-per-namespace=0"];
    assert_eq!(quotas(&none).unwrap(), Quotas::UNLIMITED);
}

#[test]
fn the_advertised_host_follows_the_address() {
    assert_eq!(derived(":9090", None), "localhost:9090");
    assert_eq!(derived("0.0.0.0:9090", Some("pod")), "pod:9090");
    assert_eq!(derived("[::]:9090", None), "localhost:9090");
    assert_eq!(derived("10.0.0.1:80", Some("pod")), "10.0.0.1:80");
}

#[test]
fn flags_of_the_shared_store_need_a_bucket_and_are_checked() {
    let settings = |args: &[&str]| parse(args).unwrap().own.shared_store.settings();
    assert!(settings(&[]).unwrap().is_none());
    let given = settings(&["--shared-store-bucket=b", "--shared-store-prefix=clusters/a/"]).unwrap();
    assert_eq!(given.unwrap().prefix, "clusters/a/");
    for (args, message) in [
        (
            &["--shared-store-prefix=a/"][..],
            "have no effect without --shared-store-bucket",
        ),
        (
            &["--shared-store-bucket=b", "--shared-store-prefix=/a"],
            "--shared-store-prefix=/a: it begins with '/'",
        ),
        (
            &["--shared-store-bucket=b", "--shared-store-prefix=a/../b/"],
            "has '.' or '..' between slashes",
        ),
        (
            &["--shared-store-bucket=b", "--shared-store-endpoint=https://h"],
            "write it as host or host:port",
        ),
        (
            &["--shared-store-bucket=b", "--shared-store-ca-file=/missing"],
            "--shared-store-ca-file=/missing",
        ),
    ] {
        let error = format!("{:#}", settings(args).unwrap_err());
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn artifact_tokens_need_consumers() {
    let users = |args: &[&str], own: &str| parse(args).unwrap().own.consumers.users(own);
    assert!(users(&[], "").unwrap().is_none(), "an audit without consumers");
    assert!(
        users(&["--artifact-tokens=off"], "flux-system")
            .unwrap()
            .is_none()
    );
    for (args, enforced) in [
        (&[][..], false),
        (&["--artifact-tokens=audit"], false),
        (&["--artifact-tokens=enforced"], true),
        (&["--artifact-tokens=off", "--require-artifact-tokens"], true),
    ] {
        assert!(users(args, "flux-system").unwrap().is_some(), "{args:?}");
        assert_eq!(
            parse(args).unwrap().own.consumers.is_enforced(),
            enforced,
            "{args:?}"
        );
    }
    let idle = parse(&["--artifact-tokens=off", "--artifact-consumers=a/b"]).unwrap();
    assert_eq!(idle.own.idle(&idle.common).len(), 1);
    let required = "--require-artifact-tokens";
    for flag in [required, "--artifact-tokens=enforced"] {
        let error = users(&[flag], "").unwrap_err().to_string();
        assert!(
            error.starts_with(flag) && error.contains("RUNTIME_NAMESPACE"),
            "{error}"
        );
    }
    for (args, accepted, refused) in [
        (
            &[required][..],
            "system:serviceaccount:flux-system:kluctl-controller",
            "system:serviceaccount:team:kluctl-controller",
        ),
        (
            &[required, "--artifact-consumers=team/deployer"],
            "system:serviceaccount:team:deployer",
            "system:serviceaccount:flux-system:kluctl-controller",
        ),
    ] {
        let users = users(args, "flux-system").unwrap().unwrap();
        assert!((users.accepts)(accepted) && !(users.accepts)(refused), "{args:?}");
        assert_eq!(users.audience, "weir-artifacts");
    }
    for wrong in ["a", "/a", "a/", "a/b/c", "A/b", "a:b/c"] {
        assert!(
            parse(&[&format!("--artifact-consumers={wrong}")]).is_err(),
            "{wrong}"
        );
    }
    assert!(parse(&["--artifact-token-audience="]).is_err());
}
