//! Watches the addresses of the controllers and of the API server, which the URLs of users must not lead to.
//!
//! Without the rights to watch them, addresses are only known by the environment of the Pod; the log says so.

use std::{
    collections::HashMap,
    fmt::Debug,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures::StreamExt as _;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{
    Api, Resource, ResourceExt,
    core::NamespaceResourceScope,
    runtime::watcher::{self, Event, watcher},
};
use serde::de::DeserializeOwned;

use crate::{backoff::Backoff, context::Context, watch_backoff::WatchFailures};

/// The namespace and the label of the endpoints of the API server.
const DEFAULT: &str = "default";
const API_SERVER: &str = "kubernetes.io/service-name=kubernetes";
/// Maximum number of objects of a kind that count.
const MOST: usize = 10_000;
const RETRIES: Backoff = Backoff {
    min: Duration::from_secs(1),
    max: Duration::from_secs(300),
};

/// Watches until it is dropped. Without a namespace of its own, the process has no neighbours.
pub(crate) async fn watch(ctx: Context) {
    let namespace = ctx.flags().runtime_namespace.clone();
    // A controller of one namespace has rights there only.
    let watched = ctx.flags().watch_namespace();
    if namespace.is_empty() || watched.is_some_and(|watched| watched != namespace) {
        return;
    }
    let own = || ctx.addresses().own_addresses().clone();
    let (endpoints, services, api_server) = (own(), own(), own());
    let all = watcher::Config::default();
    let kubernetes = watcher::Config::default().labels(API_SERVER);
    tokio::join!(
        each::<EndpointSlice, _>(&ctx, &namespace, all.clone(), sockets, move |found| {
            endpoints.set_endpoints(found.values().flatten().copied());
        }),
        each::<Service, _>(&ctx, &namespace, all, cluster_ips, move |found| {
            services.set_services(found.values().flatten().copied());
        }),
        each::<EndpointSlice, _>(&ctx, DEFAULT, kubernetes, sockets, move |found| {
            api_server.set_api_server(found.values().flatten().copied());
        }),
    );
}

/// Calls `set` with the addresses of all objects after each change.
async fn each<K, A>(
    ctx: &Context,
    namespace: &str,
    config: watcher::Config,
    addresses: fn(&K) -> Vec<A>,
    set: impl Fn(&HashMap<Arc<str>, Vec<A>>),
) where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + 'static,
{
    let api = Api::<K>::namespaced(ctx.client().clone(), namespace);
    let mut events = watcher(api, config).boxed();
    let (mut known, mut listed) = (HashMap::new(), HashMap::new());
    let mut failures = WatchFailures::new(RETRIES);
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                let pause = failures.error();
                report::<K>(namespace, &error, failures.is_first());
                tokio::time::sleep(pause).await;
                continue;
            }
        };
        failures.event(&event);
        match event {
            Event::Init => listed = HashMap::new(),
            Event::InitApply(object) => insert(&mut listed, &object, addresses),
            Event::InitDone => known = std::mem::take(&mut listed),
            Event::Apply(object) => insert(&mut known, &object, addresses),
            Event::Delete(object) => drop(known.remove(object.name_any().as_str())),
        }
        if listed.is_empty() {
            set(&known);
        }
    }
}

fn report<K: Resource<DynamicType = ()>>(namespace: &str, error: &watcher::Error, is_first: bool) {
    let (error, plural) = (api::redact(&error.to_string()), K::plural(&()));
    match is_first {
        true => tracing::warn!(
            error,
            namespace,
            "cannot watch the {plural} of the controllers: URLs of users may lead to them; give the right to list and watch them"
        ),
        false => tracing::debug!(error, namespace, "cannot watch the {plural} of the controllers"),
    }
}

fn insert<K: ResourceExt, A>(map: &mut HashMap<Arc<str>, Vec<A>>, object: &K, addresses: fn(&K) -> Vec<A>) {
    let name: Arc<str> = object.name_any().into();
    if map.len() < MOST || map.contains_key(&name) {
        map.insert(name, addresses(object));
    }
}

/// Returns the sockets of a slice: each of its addresses with each of its ports. Those that are not ready count, too.
fn sockets(slice: &EndpointSlice) -> Vec<SocketAddr> {
    let ports = slice.ports.iter().flatten().filter_map(|port| port.port);
    let ports: Vec<u16> = ports.filter_map(|port| u16::try_from(port).ok()).collect();
    let addresses = slice.endpoints.iter().flat_map(|endpoint| &endpoint.addresses);
    let addresses = addresses.filter_map(|address| address.parse().ok());
    addresses
        .flat_map(|address| ports.iter().map(move |port| SocketAddr::new(address, *port)))
        .collect()
}

fn cluster_ips(service: &Service) -> Vec<IpAddr> {
    let Some(spec) = &service.spec else {
        return Vec::new();
    };
    let all = spec.cluster_ips.iter().flatten().chain(&spec.cluster_ip);
    all.filter_map(|address| address.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn addresses_of_slices_and_services_are_read() {
        let slice = json!({
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.244.0.5", "none"]}, {"addresses": ["10.244.0.6"], "conditions": {"ready": false}}],
            "ports": [{"port": 9090}, {"name": "all"}, {"port": 70000}],
        });
        let slice: EndpointSlice = serde_json::from_value(slice).unwrap();
        let expected: Vec<SocketAddr> = ["10.244.0.5:9090", "10.244.0.6:9090"]
            .map(|text| text.parse().unwrap())
            .into();
        assert_eq!(sockets(&slice), expected);
        let service = json!({"spec": {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7", "fd00::7"]}});
        let service: Service = serde_json::from_value(service).unwrap();
        let unique: std::collections::BTreeSet<_> = cluster_ips(&service).into_iter().collect();
        assert_eq!(unique.len(), 2);
        let headless: Service = serde_json::from_value(json!({"spec": {"clusterIP": "None"}})).unwrap();
        assert!(cluster_ips(&headless).is_empty());
    }
}
