use super::*;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn services() -> ClusterServices {
    let variables = [
        ("KUBERNETES_SERVICE_HOST", "10.96.0.1"),
        ("KUBERNETES_SERVICE_PORT", "443"),
        ("SOURCE_CONTROLLER_SERVICE_HOST", "10.96.7.7"),
        ("_SERVICE_HOST", "10.96.7.8"),
        ("BROKEN_SERVICE_HOST", "none"),
        ("HOME", "/"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    ClusterServices {
        api_server_sockets: vec!["127.0.0.1:6443".parse().unwrap()],
        ..ClusterServices::from_variables(variables, "flux-system")
    }
}

fn check(policy: &AddressPolicy, table: &[(&str, Option<Refusal>)]) {
    for (text, refusal) in table {
        assert_eq!(policy.check_url(&url(text)).err(), *refusal, "{text}");
    }
}

#[test]
fn services_come_from_the_variables_of_a_pod() {
    let found = services();
    assert_eq!(found.api_server, ["10.96.0.1".parse::<IpAddr>().unwrap()]);
    assert_eq!(found.own_services, ["10.96.7.7".parse::<IpAddr>().unwrap()]);
    let outside = ClusterServices::from_variables([], "flux-system");
    assert_eq!(outside, ClusterServices::default());
}

#[test]
fn controllers_refuse_addresses_that_only_they_reach() {
    use Refusal::{
        ApiServer, Broadcast, LinkLocal, Loopback, Metadata, Multicast, NoHost, OwnService, Scheme,
        Unspecified,
    };
    check(
        &AddressPolicy::controller(services()),
        &[
            ("http://169.254.169.254/latest", Some(LinkLocal)),
            ("http://2852039166/", Some(LinkLocal)),
            ("http://0xa9fea9fe/", Some(LinkLocal)),
            ("http://[fe80::1]/x", Some(LinkLocal)),
            ("http://[::ffff:169.254.169.254]/", Some(LinkLocal)),
            ("http://[64:ff9b::a9fe:a9fe]/", Some(LinkLocal)),
            ("http://168.63.129.16/", Some(Metadata)),
            ("http://[fd00:ec2::254]/", Some(Metadata)),
            ("http://127.0.0.1:1/x", Some(Loopback)),
            ("http://127.1/x", Some(Loopback)),
            ("http://[::1]:8080/", Some(Loopback)),
            ("http://[::ffff:7f00:1]:8080/", Some(Loopback)),
            ("http://0.0.0.0:9090/", Some(Unspecified)),
            ("http://[::]/", Some(Unspecified)),
            ("http://224.0.0.1/", Some(Multicast)),
            ("http://255.255.255.255/", Some(Broadcast)),
            ("https://10.96.0.1/api", Some(ApiServer)),
            ("https://10.96.0.1:8443/api", Some(ApiServer)),
            ("https://127.0.0.1:6443/api", Some(ApiServer)),
            ("https://[::ffff:127.0.0.1]:6443/api", Some(ApiServer)),
            ("https://kubernetes/", Some(ApiServer)),
            ("https://Kubernetes.default./", Some(ApiServer)),
            ("https://kubernetes.default.svc:443/", Some(ApiServer)),
            ("https://kubernetes.default.svc.cluster.local/", Some(ApiServer)),
            ("http://10.96.7.7/", Some(OwnService)),
            ("http://source-controller/", Some(OwnService)),
            ("http://source-controller.flux-system/", Some(OwnService)),
            ("http://x.flux-system.svc/", Some(OwnService)),
            ("http://x.flux-system.svc.cluster.local./", Some(OwnService)),
            ("ftp://example.com/x", Some(Scheme)),
            ("file:///etc/passwd", Some(Scheme)),
            ("http://./", Some(NoHost)),
            ("http://10.0.0.1/", None),
            ("http://git.team.svc.cluster.local/", None),
            ("https://kubernetes.io/", None),
            ("https://kubernetes-charts.example.com/", None),
            ("https://flux-system.example.com/", None),
            ("https://example.com/x", None),
            ("https://[2001:db8::1]/x", None),
        ],
    );
}

#[test]
fn the_command_line_refuses_metadata_services_alone() {
    check(
        &AddressPolicy::command_line(),
        &[
            ("http://169.254.169.254/latest", Some(Refusal::LinkLocal)),
            ("http://100.100.100.200/", Some(Refusal::Metadata)),
            ("file:///etc/passwd", Some(Refusal::Scheme)),
            ("http://127.0.0.1:1/x", None),
            ("http://localhost:1/x", None),
            ("https://kubernetes.default.svc/", None),
            ("http://10.0.0.1/", None),
        ],
    );
    let unrestricted = AddressPolicy::unrestricted();
    check(
        &unrestricted,
        &[
            ("http://169.254.169.254/latest", None),
            ("file:///etc/passwd", Some(Refusal::Scheme)),
        ],
    );
}

#[test]
fn private_networks_are_refused_on_demand() {
    let policy = AddressPolicy::controller(services()).refusing_private();
    check(
        &policy,
        &[
            ("http://10.0.0.1/", Some(Refusal::Private)),
            ("http://192.168.1.1/", Some(Refusal::Private)),
            ("http://[fd12::1]/", Some(Refusal::Private)),
            ("http://[64:ff9b::a00:1]/", Some(Refusal::Private)),
            ("https://example.com/", None),
        ],
    );
}

#[test]
fn exceptions_allow_the_named_addresses_only() {
    let allow = |list: &[&str]| {
        let exceptions = list.iter().map(|text| text.parse().unwrap());
        AddressPolicy::controller(services()).allowing(exceptions)
    };
    check(
        &allow(&["127.0.0.0/8", "*.flux-system.svc", "fe80::/10"]),
        &[
            ("http://127.0.0.1:8080/", None),
            ("http://[::ffff:127.0.0.1]:8080/", None),
            ("http://git.flux-system.svc/", None),
            ("http://[fe80::1]/", None),
            // A network does not include the API server.
            ("https://127.0.0.1:6443/", Some(Refusal::ApiServer)),
            ("http://[::1]/", Some(Refusal::Loopback)),
            ("http://git/", Some(Refusal::OwnService)),
        ],
    );
    check(
        &allow(&["kubernetes.default.svc", "127.0.0.1", "10.96.0.1"]),
        &[
            ("https://kubernetes.default.svc/", None),
            ("https://127.0.0.1:6443/", None),
            ("https://10.96.0.1/", None),
            ("https://kubernetes/", Some(Refusal::ApiServer)),
        ],
    );
}

#[test]
fn single_rules_can_be_lifted() {
    let policy = AddressPolicy::controller(services());
    check(
        &policy.clone().allowing_own_services(),
        &[
            ("http://source-controller.flux-system.svc/", None),
            ("http://10.96.7.7/", None),
            ("https://10.96.0.1/", Some(Refusal::ApiServer)),
        ],
    );
    check(
        &policy.allowing_api_server(),
        &[
            ("https://10.96.0.1/", None),
            ("https://kubernetes.default.svc/", None),
            ("http://source-controller/", Some(Refusal::OwnService)),
        ],
    );
    check(
        &AddressPolicy::command_line().refusing_api_server(services()),
        &[
            ("https://kubernetes.default.svc/", Some(Refusal::ApiServer)),
            ("http://127.0.0.1:1/", None),
        ],
    );
}

#[tokio::test]
async fn addresses_of_names_are_checked() {
    let policy = AddressPolicy::controller(services());
    let resolve = async |policy: &AddressPolicy, text: &str| policy.resolve(&url(text)).await;
    let found = resolve(&policy, "http://localhost:8080/").await;
    assert_eq!(found, Err(Unresolved::Refused(Refusal::Loopback)));
    let network = policy
        .clone()
        .allowing(["127.0.0.0/8", "::1"].map(|text| text.parse().unwrap()));
    assert!(resolve(&network, "http://localhost:8080/").await.is_ok());
    let only = resolve(&network, "http://localhost:6443/").await;
    let four = |found: Vec<SocketAddr>| found.iter().any(SocketAddr::is_ipv4);
    assert!(!only.is_ok_and(four), "the API server is told apart by its port");
    let host = policy.clone().allowing(["localhost".parse().unwrap()]);
    assert!(resolve(&host, "http://localhost:6443/").await.is_ok());
    let unknown = resolve(&policy, "http://host.invalid/").await;
    assert_eq!(unknown, Err(Unresolved::Unknown));
    assert_eq!(
        resolve(&policy, "http://192.0.2.1/").await,
        Ok(vec!["192.0.2.1:80".parse().unwrap()])
    );
}

#[test]
fn controllers_refuse_their_own_pods_and_the_api_server_behind_its_service() {
    let policy = AddressPolicy::controller(services());
    let own = policy.own_addresses();
    own.set_endpoints(["10.244.0.5:9090", "127.0.0.7:9090"].map(|text| text.parse().unwrap()));
    own.set_services(["10.96.9.9".parse().unwrap()]);
    own.set_api_server(["192.0.2.1:6443".parse().unwrap()]);
    let table: &[(&str, Option<Refusal>)] = &[
        (
            "http://10.244.0.5:9090/helmchart/victim/app/latest.tar.gz",
            Some(Refusal::OwnService),
        ),
        ("http://[::ffff:10.244.0.5]:9090/", Some(Refusal::OwnService)),
        ("http://10.96.9.9:9090/", Some(Refusal::OwnService)),
        ("https://192.0.2.1:6443/", Some(Refusal::ApiServer)),
        ("https://192.0.2.1/", None),
        ("http://10.244.0.6:9090/", None),
        ("https://10.0.0.4:10250/pods", Some(Refusal::NodePort)),
        ("https://node.example.com:10250/pods", Some(Refusal::NodePort)),
        ("http://10.0.0.4:10255/pods", Some(Refusal::NodePort)),
    ];
    check(&policy, table);
    check(
        &policy.clone().allowing_own_services(),
        &[("http://10.244.0.5:9090/", None)],
    );
    let allow = |text: &str| policy.clone().allowing([text.parse().unwrap()]);
    check(
        &allow("127.0.0.0/8"),
        &[
            ("http://127.0.0.1:9090/", None),
            // A network does not include the endpoints.
            ("http://127.0.0.7:9090/", Some(Refusal::OwnService)),
        ],
    );
    check(&allow("127.0.0.7"), &[("http://127.0.0.7:9090/", None)]);
    check(&allow("10.0.0.4"), &[("https://10.0.0.4:10250/pods", None)]);
    check(
        &allow("node.example.com"),
        &[("https://node.example.com:10250/", None)],
    );
    check(
        &AddressPolicy::command_line(),
        &[("https://10.0.0.4:10250/pods", None)],
    );
}

#[tokio::test]
async fn ports_of_the_process_are_refused_whatever_addresses_are_allowed() {
    crate::add_listener("127.0.0.1:61009".parse().unwrap());
    let policy = AddressPolicy::controller(services());
    let allowing = policy.clone().allowing(["127.0.0.1".parse().unwrap()]);
    check(
        &allowing,
        &[
            ("http://127.0.0.1:61009/", Some(Refusal::Itself)),
            ("http://127.0.0.1:61010/", None),
        ],
    );
    check(
        &allowing.clone().allowing_own_services(),
        &[("http://127.0.0.1:61009/", None)],
    );
    let named = allowing.resolve(&url("http://localhost:61009/")).await;
    assert!(matches!(named, Err(Unresolved::Refused(_))), "{named:?}");
}
