//! Access tokens of cloud identities for Providers without credentials: of a ServiceAccount, or of the controller.

use std::time::Duration;

use api::{
    Fault, Reason, Secret,
    notification::{Provider, ProviderSpec},
};
use cloud::{
    Ambient, Cloud, Token, Workload, WorkloadLogin,
    http::{Client as TokenClient, Settings},
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client, ResourceExt as _};
use limits::{CacheBounds, CredentialCache};
use net::{AddressPolicy, Proxies, Proxy};
use notification_specs::provider::{self, Audience};
use runtime::accounts::{AccountTokens, NoLogin, OBJECT_IDENTITIES, ServiceAccounts};

use crate::{
    error::Error,
    providers::interface::Config,
    served::{excerpt, is_name},
};

/// Maximum size of a response of a token service, in bytes.
const ANSWER: u64 = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct Identities {
    client: Client,
    addresses: AddressPolicy,
    ambient: Ambient,
    accounts: ServiceAccounts,
    logins: AccountTokens,
    tokens: CredentialCache<String, Secret<String>>,
}

/// Returns the fault of a Provider that names a service account while the feature gate is closed.
pub(super) fn refused(spec: &ProviderSpec, object_identities: bool) -> Option<Fault> {
    let is_named = spec.service_account_name.is_some();
    (is_named && !object_identities).then(|| {
        let message = format!(
            "spec.serviceAccountName: the feature gate {OBJECT_IDENTITIES} is off: start the controller with \
             --feature-gates={OBJECT_IDENTITIES}=true, or remove the field"
        );
        Fault::stall(Reason::FeatureGateDisabled, message)
    })
}

impl Identities {
    /// Starts without tokens; `client` creates tokens of service accounts in every replica.
    pub(crate) fn new(
        client: Client,
        addresses: AddressPolicy,
        accounts: ServiceAccounts,
        bounds: CacheBounds,
    ) -> Self {
        Self {
            client,
            addresses,
            ambient: Ambient::new(std::env::vars()).with_instance(),
            accounts,
            logins: AccountTokens::new(bounds),
            tokens: CredentialCache::new(bounds),
        }
    }

    /// Returns an access token for a Provider and its cache key; `None` if the Provider uses no identity.
    /// Fails when the identity gets no token, or the Provider has credentials and a service account.
    pub(super) async fn token(
        &self,
        provider: &Provider,
        config: &Config,
        proxy: Option<&Proxy>,
    ) -> Result<Option<(String, Secret<String>)>, Error> {
        let Some(audience) = provider::find(&provider.spec.type_).and_then(|rules| rules.audience) else {
            return Ok(None);
        };
        let named = provider.spec.service_account_name.as_deref();
        if config.has_credentials() {
            return match named {
                None => Ok(None),
                Some(_) => Err(Error::Config(
                    "there are credentials in the Secret or the address, so that spec.serviceAccountName must not be set",
                )),
            };
        }
        let login = match named.or(self.accounts.default.as_deref()) {
            None => None,
            Some(name) => Some(self.login(provider, name, audience.cloud).await?),
        };
        let account = login.as_ref().map(WorkloadLogin::key);
        let through = proxy.map(|proxy| proxy.url.as_str());
        let key = format!("{:?}", (account, audience.scope, through));
        let now = Timestamp::now().as_second();
        if let Some(token) = self.tokens.get(&key, now) {
            return Ok(Some((key, token)));
        }
        let token = self.ask(login.as_ref(), audience, proxy).await;
        let token = token.map_err(|error| {
            let whose = match &login {
                None => "the controller",
                Some(_) => "the service account",
            };
            Error::Identity(format!("no token for the identity of {whose}: {error}"))
        })?;
        let ends = now.saturating_add(i64::try_from(token.expires_in).unwrap_or_default());
        let namespace = provider.namespace().unwrap_or_default();
        let times = (ends, now);
        self.tokens
            .insert(&namespace, key.clone(), token.access.clone(), times);
        Ok(Some((key, token.access)))
    }

    pub(super) fn forget(&self, key: &str) {
        self.tokens.remove(&key.to_owned());
    }

    async fn login(&self, provider: &Provider, name: &str, cloud: Cloud) -> Result<WorkloadLogin, Error> {
        let namespace = provider.namespace().unwrap_or_default();
        let by_default = match provider.spec.service_account_name {
            Some(_) => "",
            None => {
                "; it is the --default-service-account of the controller, used because spec.serviceAccountName is not set"
            }
        };
        let failed = |what: &str, why: &str| {
            Error::Identity(format!(
                "failed to get {what} '{namespace}/{name}': {why}{by_default}"
            ))
        };
        if !is_name(name) {
            let why = format!("it is not a valid name{by_default}");
            return Err(Error::Identity(format!(
                "failed to get service account '{namespace}/{}': {why}",
                excerpt(name)
            )));
        }
        let api = Api::<ServiceAccount>::namespaced(self.client.clone(), &namespace);
        let account = api
            .get(name)
            .await
            .map_err(|error| failed("service account", &runtime::client::describe(&error)))?;
        let login = self.logins.login(&api, &account, cloud, &self.ambient).await;
        login.map_err(|error: NoLogin| failed(error.what(), &error.to_string()))
    }

    async fn ask(
        &self,
        login: Option<&WorkloadLogin>,
        audience: Audience,
        proxy: Option<&Proxy>,
    ) -> Result<Token, cloud::Error> {
        let client = TokenClient::new(Settings {
            addresses: self.addresses.clone(),
            answer_bytes: ANSWER,
            timeout: TIMEOUT,
            proxies: proxy.cloned().map_or(Proxies::Environment, Proxies::Only),
            ..Settings::default()
        })?;
        let id = Timestamp::now().as_nanosecond().to_string();
        match (login.map(WorkloadLogin::workload), audience.cloud) {
            (Some(Workload::Azure(application)), _) => application.token(&client, audience.scope, &id).await,
            (Some(Workload::Gcp(workload)), _) => {
                workload.token(&client, &self.ambient, audience.scope).await
            }
            (_, Cloud::Gcp) => self.ambient.gcp(&client).await,
            (_, _) => self.ambient.azure(&client, audience.scope, &id).await,
        }
    }
}
