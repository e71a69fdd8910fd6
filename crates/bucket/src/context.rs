//! Policy and credentials for requests.

use cloud::Ambient;
use net::{AddressPolicy, Proxies, Proxy, Tls};

use crate::Error;

#[derive(Debug, Clone)]
pub struct Context {
    pub addresses: AddressPolicy,
    pub ambient: Ambient,
}

impl Context {
    #[must_use]
    pub fn new(addresses: AddressPolicy) -> Self {
        Self {
            addresses,
            ambient: Ambient::default(),
        }
    }

    pub(crate) fn tokens(&self, tls: Tls, proxy: Option<&Proxy>) -> Result<cloud::http::Client, Error> {
        let settings = cloud::http::Settings {
            addresses: self.addresses.clone(),
            tls,
            proxies: proxies(proxy),
            ..cloud::http::Settings::default()
        };
        Ok(cloud::http::Client::new(settings)?)
    }
}

pub(crate) fn proxies(proxy: Option<&Proxy>) -> Proxies {
    proxy.map_or(Proxies::Environment, |proxy| Proxies::Only(proxy.clone()))
}
