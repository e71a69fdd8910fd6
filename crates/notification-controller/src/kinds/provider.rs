//! Provider: its type and fields are supported, and its Secrets make a usable configuration for its type.

use std::{sync::Arc, time::Duration};

use api::{
    Fault, Reason, finalizer,
    notification::{Provider, ProviderStatus},
};
use kube::ResourceExt;
use limits::compute;
use notification_specs::provider;
use runtime::{ObjectKey, Outcome, Pass, Reconciler, Requeue};

use super::outcome;
use crate::{
    delivery::{Reports, Routes, Sender},
    error::Error,
};

/// Interval of ready providers: their Secret may change.
const INTERVAL: Duration = Duration::from_secs(600);

pub(crate) struct Providers {
    routes: Arc<Routes>,
    sender: Arc<Sender>,
    reports: Arc<Reports>,
}

impl Providers {
    pub(crate) fn new(routes: Arc<Routes>, sender: Arc<Sender>, reports: Arc<Reports>) -> Self {
        Self {
            routes,
            sender,
            reports,
        }
    }
}

impl Providers {
    fn delivered(&self, object: &Provider) -> Option<super::Delivered> {
        let key = ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any());
        self.reports.health().provider(&key)
    }
}

impl Reconciler for Providers {
    type Object = Provider;
    type Status = ProviderStatus;

    const FINALIZER: &'static str = "";
    const OBSOLETE_FINALIZERS: &'static [&'static str] = &[finalizer::FLUX];

    fn suspended(object: &Provider) -> bool {
        object.spec.suspend
    }

    fn timeout(&self, _: &Provider) -> Duration {
        Duration::from_secs(60)
    }

    fn validate(&self, object: &Provider) -> Result<(), Fault> {
        self.routes.refused(&object.spec).map_or(Ok(()), Err)
    }

    fn progressing(&self, _: &Provider) -> Option<ProviderStatus> {
        None
    }

    fn faulted(&self, object: &Provider, fault: &Fault) -> Outcome<ProviderStatus> {
        outcome(
            &object.metadata,
            object.status.as_ref(),
            Some(fault.clone()),
            self.delivered(object).as_ref(),
            Requeue::from(fault.class),
        )
    }

    async fn reconcile(&self, pass: &Pass<'_, Provider>) -> Outcome<ProviderStatus> {
        if let Some(fault) = invalid_expression(pass).await {
            return self.faulted(pass.object, &fault);
        }
        // Tokens of an identity may come through a proxy of the namespace.
        match pass.slot.waiting(self.sender.examine(pass.object)).await {
            Ok(()) => {
                let past = pass.object.status.as_ref();
                outcome(
                    &pass.object.metadata,
                    past,
                    None,
                    self.delivered(pass.object).as_ref(),
                    Requeue::Interval(INTERVAL),
                )
            }
            Err(error) => self.faulted(pass.object, &fault(&error)),
        }
    }

    async fn finalize(&self, _: &Pass<'_, Provider>) -> Result<(), Fault> {
        Ok(())
    }
}

async fn invalid_expression(pass: &Pass<'_, Provider>) -> Option<Fault> {
    pass.object.spec.commit_status_expr.as_ref()?;
    let spec = pass.object.spec.clone();
    let checked = compute(pass.namespace, move |_| provider::check_expression(&spec).err());
    let unfinished = || {
        let message = "the expression cannot be checked now";
        Some(Fault::retry(Reason::InternalError, message))
    };
    // Passes of other namespaces go on while this one waits for a thread.
    pass.slot.waiting(checked).await.unwrap_or_else(unfinished)
}

/// Converts an error into a fault. All are retried: a Secret can be corrected without a change of the object.
fn fault(error: &Error) -> Fault {
    let message = error.to_string();
    match error {
        Error::NoSecret(_)
        | Error::BadName { .. }
        | Error::UnreadableSecret(..)
        | Error::BadSecret { .. }
        | Error::NoToken
        | Error::BadToken
        | Error::Identity(_)
        | Error::Certificates(_)
        | Error::BadProxy { .. } => Fault::retry(Reason::AuthenticationFailed, message),
        Error::BadAddress
        | Error::LongAddress(_)
        | Error::NoAddress
        | Error::RefusedAddress(_)
        | Error::RefusedProxy(_) => Fault::retry(Reason::URLInvalid, message),
        Error::Config(_) => Fault::retry(Reason::InvalidConfig, message),
        _ => Fault::retry(Reason::Failed, message),
    }
}
