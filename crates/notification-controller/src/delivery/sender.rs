//! Sends a delivery: reads the Provider's Secrets, and follows the steps of its type.

use std::time::Duration;

use api::{Event, Secret, notification::Provider};
use kube::{Client, ResourceExt as _};
use limits::{INLINE_BYTES, compute};
use net::AddressPolicy;
use tokio::time::Instant;

use super::{
    clients::{self, Clients},
    identity::Identities,
    job::Delivery,
    lanes::LanePermit,
    secrets::ProviderSecrets,
    send,
    settings::Settings,
    steps,
};
use crate::{
    error::Error,
    providers::{self, interface::AlertName},
};

/// Default timeout of a delivery, retries included.
const TIMEOUT: Duration = Duration::from_secs(15);
const LONGEST: Duration = Duration::from_secs(300);
/// Maximum number of pauses of its provider that a delivery waits for.
const PAUSES: usize = 3;

pub(crate) struct Sender {
    client: Client,
    identities: Identities,
    clients: Clients,
}

impl Sender {
    pub(super) fn new(client: Client, addresses: AddressPolicy, identities: Identities) -> Self {
        Self {
            client,
            identities,
            clients: Clients::new(addresses),
        }
    }

    /// Checks that deliveries to a provider can work, without sending one.
    /// Fails when its Secrets, certificates or address are invalid, or its type needs a key that is missing.
    pub(crate) async fn examine(&self, provider: &Provider) -> Result<(), Error> {
        let (settings, _) = self.settings(provider).await?;
        let (kind, policy) = (
            providers::find(&provider.spec.type_)?,
            self.clients.addresses().clone(),
        );
        let namespace = provider.namespace().unwrap_or_default();
        let checked = compute(&namespace, move |_| {
            let addresses = providers::check(&kind, &settings.config)?;
            clients::check(&policy, &settings.connection)?;
            Ok(addresses)
        });
        for address in checked.await.unwrap_or(Err(Error::Busy))? {
            self.clients.check(address.expose())?;
        }
        Ok(())
    }

    /// Sends an event when the provider wants no pause, and again after a pause that it asked for.
    pub(super) async fn send(
        &self,
        delivery: &Delivery,
        event: &Event,
        permit: &LanePermit,
    ) -> Result<(), Error> {
        for _ in 0..PAUSES {
            permit.wait().await;
            match self.send_once(delivery, event, permit).await {
                Err(Error::Status(429 | 503)) if permit.is_paused() => {}
                result => return result,
            }
        }
        permit.wait().await;
        self.send_once(delivery, event, permit).await
    }

    async fn send_once(&self, delivery: &Delivery, event: &Event, permit: &LanePermit) -> Result<(), Error> {
        let timeout = delivery
            .provider
            .spec
            .timeout
            .map_or(TIMEOUT, |timeout| timeout.as_duration());
        let timeout = timeout.clamp(Duration::from_millis(100), LONGEST);
        let lane = delivery.lane();
        let sending = async {
            let (mut settings, identity) = self.settings(&delivery.provider).await?;
            settings.config.alert = AlertName {
                namespace: delivery.alert.namespace().unwrap_or_default(),
                name: delivery.alert.name_any(),
                uid: delivery.alert.uid().unwrap_or_default(),
            };
            let steps = steps::first(delivery, event, settings.config).await?;
            let connection = settings.connection;
            let transport = send::Transport::new(&self.clients, connection, permit, &lane.namespace).await?;
            let sent = send::follow(&transport, steps, Instant::now() + timeout).await;
            if let (Err(Error::Status(401 | 403)), Some(key)) = (&sent, identity) {
                self.identities.forget(&key);
            }
            sent
        };
        // The error of the last attempt is more precise than "no answer": give it a moment to end.
        let limit = timeout + Duration::from_millis(200);
        tokio::time::timeout(limit, sending)
            .await
            .unwrap_or(Err(Error::TimedOut(timeout.as_secs())))
    }

    /// Returns the settings of a Provider, and the cache key of its access token if it uses an identity.
    async fn settings(&self, provider: &Provider) -> Result<(Settings, Option<String>), Error> {
        let secrets = ProviderSecrets::read(&self.client, provider).await?;
        let mut settings = match secrets.size() {
            ..=INLINE_BYTES => Settings::of(provider, &secrets)?,
            _ => {
                let provider = provider.clone();
                let namespace = provider.namespace().unwrap_or_default();
                let read = compute(&namespace, move |_| Settings::of(&provider, &secrets));
                read.await.unwrap_or(Err(Error::Busy))?
            }
        };
        let proxy = settings.connection.proxy.as_ref();
        let token: Option<(String, Secret<String>)> =
            self.identities.token(provider, &settings.config, proxy).await?;
        let identity = token.map(|(key, token)| {
            settings.config.identity = Some(token);
            key
        });
        Ok((settings, identity))
    }
}
