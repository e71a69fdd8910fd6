//! Decides if an event is for an alert: its sources, expressions and labels.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::{Event, Reason, notification::Alert};
use kube::Client;
use tokio::sync::OnceCell;

use super::reports::Reports;
use crate::{
    alerts::{
        self, Verdict,
        expressions::Matcher,
        labels::{LabelReader, LabelsError},
    },
    event::object_name,
};

/// Maximum time of matching an event with the expressions of the Alerts of one namespace, their wait for a thread included.
const EXPRESSIONS_TIME: Duration = Duration::from_secs(20);

/// The labels of an event's object, read when the first alert needs them.
pub(super) type Labels = OnceCell<Result<BTreeMap<String, String>, LabelsError>>;

pub(super) struct Candidate<'a> {
    pub(super) alert: &'a Alert,
    /// The result of [`Selection::passing`].
    pub(super) passes: bool,
    pub(super) labels: &'a Labels,
}

pub(super) struct Selection {
    expressions: Matcher,
    labels: LabelReader,
    reports: Arc<Reports>,
    own_namespace_only: bool,
}

impl Selection {
    pub(super) fn new(client: Client, reports: Arc<Reports>, own_namespace_only: bool) -> Self {
        Self {
            expressions: Matcher::default(),
            labels: LabelReader::new(client),
            reports,
            own_namespace_only,
        }
    }

    /// Returns true if an alert sends events of the object of an event, apart from their severity and the object's labels.
    pub(super) fn names(&self, alert: &Alert, event: &Event) -> bool {
        alerts::names(alert, event, self.own_namespace_only)
    }

    /// Returns for each alert if an event is for it, apart from labels.
    pub(super) async fn passing(&self, alerts: &[Arc<Alert>], event: &Event) -> Vec<bool> {
        let is_candidate =
            |alert: &Arc<Alert>| alerts::verdict(alert, event, self.own_namespace_only) != Verdict::No;
        let mut passing: Vec<_> = alerts.iter().map(is_candidate).collect();
        // Expressions cost the most, so that they come last.
        let chosen = alerts.iter().zip(&passing).filter(|(_, passes)| **passes);
        let chosen: Vec<_> = chosen.map(|(alert, _)| Arc::clone(alert)).collect();
        let matching = self.expressions.matches(&chosen, &event.message);
        let matches = tokio::time::timeout(EXPRESSIONS_TIME, matching).await;
        if let (Err(_), Some(alert)) = (&matches, chosen.first()) {
            let message = format!(
                "the expressions of the Alerts of the namespace took more than {} s for {}: use fewer or smaller ones",
                EXPRESSIONS_TIME.as_secs(),
                object_name(event)
            );
            self.reports
                .warn(alert, Reason::NotificationDispatchFailed, message);
        }
        let mut matches = matches.unwrap_or_default().into_iter();
        for passes in &mut passing {
            *passes = *passes && matches.next().unwrap_or_default();
        }
        passing
    }

    pub(super) async fn is_for(&self, candidate: &Candidate<'_>, event: &Event) -> bool {
        let (alert, object) = (candidate.alert, &event.involved_object);
        let wanted = match alerts::verdict(alert, event, self.own_namespace_only) {
            Verdict::IfLabels(wanted) if candidate.passes => wanted,
            Verdict::Yes => return candidate.passes,
            Verdict::No | Verdict::IfLabels(_) => return false,
        };
        match candidate.labels.get_or_init(|| self.labels.labels(object)).await {
            Ok(labels) => wanted
                .iter()
                .any(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value))),
            Err(why) => {
                let message = format!("cannot read the labels of {}: {why}", object_name(event));
                self.reports.warn(alert, Reason::SourceFetchFailed, message);
                false
            }
        }
    }
}
