//! A whole controller for a kind of its own, as small as one can be. The tests of this crate run it as a process.

use std::{process::ExitCode, time::Duration};

use api::{Class, Condition, Fault, GoDuration, Reason, Time, annotation, condition_type, conditions};
use clap::Parser;
use k8s_openapi::{api::core::v1::ConfigMap, jiff::Timestamp};
use kube::{
    Api, Client, CustomResource,
    api::{Patch, PatchParams},
};
use runtime::{
    CommonFlags, EventDraft, EventsFlags, Outcome, Pass, Reconciler, Requeue, RunOptions, Severity, Spec,
    run_kind,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Behaviour {
    #[default]
    Rest,
    Write,
    Fail,
    Panic,
    /// Panics in validation, before the pass proper.
    PanicEarly,
    Hang,
    /// Goes on for a second, whatever happens.
    Slow,
    /// Waits for a second, without its permit.
    Wait,
    Checkpoint,
    CheckpointHang,
    AnnounceRest,
    AnnounceSlow,
    /// Ends the process.
    Abort,
    /// Ends the process by recursion.
    Overflow,
    /// Blocks its worker for ever.
    Block,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "weir.test",
    version = "v1",
    kind = "Probe",
    namespaced,
    status = "ProbeStatus"
)]
#[serde(rename_all = "camelCase")]
struct ProbeSpec {
    interval: GoDuration,
    #[serde(default)]
    behaviour: Behaviour,
    #[serde(default)]
    timeout: Option<GoDuration>,
    #[serde(default)]
    suspend: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ProbeStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    observed_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_handled_reconcile_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Value>")]
    conditions: Vec<Condition>,
}

struct Probes {
    client: Client,
}

impl Probes {
    fn status(object: &Probe, fault: Option<&Fault>) -> ProbeStatus {
        let mut status = object.status.clone().unwrap_or_default();
        let (reason, message) = match fault {
            None => (Reason::Succeeded, "rested"),
            Some(fault) => (fault.reason, fault.message.as_str()),
        };
        let generation = object.metadata.generation;
        let now = Time(Timestamp::now());
        let ready = Condition::new(
            condition_type::READY,
            fault.is_none(),
            reason.as_str(),
            message,
            generation,
            now,
        );
        conditions::remove(&mut status.conditions, condition_type::STALLED);
        conditions::remove(&mut status.conditions, condition_type::RECONCILING);
        if let Some(fault) = fault {
            let (name, reason) = match fault.class {
                Class::Stall => (condition_type::STALLED, fault.reason),
                _ => (condition_type::RECONCILING, Reason::ProgressingWithRetry),
            };
            let outlook = Condition::new(
                name,
                true,
                reason.as_str(),
                message,
                generation,
                ready.last_transition_time.clone(),
            );
            conditions::set(&mut status.conditions, outlook);
        }
        conditions::set(&mut status.conditions, ready);
        status.observed_generation = generation;
        let annotations = object.metadata.annotations.as_ref();
        status.last_handled_reconcile_at = annotations
            .and_then(|all| all.get(annotation::RECONCILE_REQUESTED_AT))
            .cloned();
        status
    }

    /// Writes a status that only a checkpoint has: the generation, and no condition.
    async fn checkpoint(pass: &Pass<'_, Probe>) -> Result<(), Fault> {
        let generation = pass.object.metadata.generation.unwrap_or_default();
        let status = ProbeStatus {
            checkpoint: Some(format!("in generation {generation}")),
            ..pass.object.status.clone().unwrap_or_default()
        };
        pass.checkpoint(&status).await
    }

    async fn write(&self, pass: &Pass<'_, Probe>) -> Result<(), Fault> {
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), pass.namespace);
        let map = serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": pass.name},
            "data": {"at": Timestamp::now().to_string()},
        });
        let params = PatchParams::apply("probe").force();
        let written = api.patch(pass.name, &params, &Patch::Apply(map)).await;
        written
            .map(|_| ())
            .map_err(|error| Fault::retry(Reason::Failed, error.to_string()))
    }
}

#[expect(unconditional_recursion, reason = "the tests want to see what becomes of it")]
fn overflow(depth: u64) -> u64 {
    std::hint::black_box(overflow(std::hint::black_box(depth + 1)) + 1)
}

impl Reconciler for Probes {
    type Object = Probe;
    type Status = ProbeStatus;

    const FINALIZER: &'static str = "weir.test/probe";

    fn suspended(object: &Probe) -> bool {
        object.spec.suspend
    }

    fn timeout(&self, object: &Probe) -> Duration {
        object
            .spec
            .timeout
            .map_or(Duration::from_secs(60), |timeout| timeout.as_duration())
    }

    #[expect(clippy::panic, reason = "the tests want to see what becomes of a panic")]
    fn validate(&self, object: &Probe) -> Result<(), Fault> {
        if object.spec.behaviour == Behaviour::PanicEarly {
            panic!("early, as asked");
        }
        if object.spec.interval <= GoDuration::ZERO {
            return Err(Fault::stall(
                Reason::InvalidSpec,
                "spec.interval: must be positive",
            ));
        }
        Ok(())
    }

    fn progressing(&self, object: &Probe) -> Option<ProbeStatus> {
        let announced = [Behaviour::AnnounceRest, Behaviour::AnnounceSlow];
        announced.contains(&object.spec.behaviour).then(|| ProbeStatus {
            checkpoint: Some("announced".to_owned()),
            ..object.status.clone().unwrap_or_default()
        })
    }

    fn faulted(&self, object: &Probe, fault: &Fault) -> Outcome<ProbeStatus> {
        let requeue = match fault.class {
            Class::Stall => Requeue::OnChange,
            _ => Requeue::Retry,
        };
        let events = vec![EventDraft {
            severity: Severity::Error,
            reason: fault.reason,
            message: fault.message.clone(),
            metadata: Default::default(),
        }];
        Outcome {
            status: Self::status(object, Some(fault)),
            requeue,
            events,
            fault: Some(fault.clone()),
        }
    }

    #[expect(clippy::panic, reason = "the tests want to see what becomes of a panic")]
    async fn reconcile(&self, pass: &Pass<'_, Probe>) -> Outcome<ProbeStatus> {
        let done = match pass.object.spec.behaviour {
            Behaviour::Rest | Behaviour::PanicEarly | Behaviour::AnnounceRest => Ok(()),
            Behaviour::Write => self.write(pass).await,
            Behaviour::Fail => Err(Fault::retry(Reason::Failed, "failed, as asked")),
            Behaviour::Panic => panic!("as asked"),
            Behaviour::Hang => {
                pass.cancel.cancelled().await;
                Err(Fault::retry(Reason::Failed, "cancelled"))
            }
            Behaviour::Slow => {
                tracing::info!("slow work begins");
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(())
            }
            Behaviour::Wait => {
                let second = tokio::time::sleep(Duration::from_secs(1));
                pass.slot.waiting(second).await;
                Ok(())
            }
            // Longer than a pass that isn't announced.
            Behaviour::AnnounceSlow => {
                tokio::time::sleep(Duration::from_secs(3)).await;
                Ok(())
            }
            Behaviour::Abort => std::process::abort(),
            Behaviour::Overflow => match overflow(0) {
                0 => Ok(()),
                _ => Err(Fault::retry(Reason::Failed, "the stack has no end")),
            },
            Behaviour::Block => loop {
                std::thread::park();
            },
            Behaviour::Checkpoint => Self::checkpoint(pass).await,
            Behaviour::CheckpointHang => {
                let written = Self::checkpoint(pass).await;
                pass.cancel.cancelled().await;
                written
            }
        };
        match done {
            Err(fault) => self.faulted(pass.object, &fault),
            Ok(()) => Outcome {
                status: Self::status(pass.object, None),
                requeue: Requeue::Interval(pass.object.spec.interval.as_duration()),
                events: Vec::new(),
                fault: None,
            },
        }
    }

    async fn finalize(&self, pass: &Pass<'_, Probe>) -> Result<(), Fault> {
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), pass.namespace);
        match api.delete(pass.name, &Default::default()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(Fault::retry(Reason::Failed, error.to_string())),
        }
    }
}

#[derive(Debug, Parser)]
struct Flags {
    #[command(flatten)]
    common: CommonFlags,
    #[command(flatten)]
    events: EventsFlags,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let spec = Spec {
        name: "probe",
        lease: "probe-leader-election",
        events: flags.events,
        standby_records: false,
    };
    runtime::start(spec, flags.common, |ctx| async move {
        let probes = Probes {
            client: ctx.client().clone(),
        };
        Ok(run_kind(
            &ctx,
            probes,
            RunOptions {
                relist: Duration::from_secs(5),
                ..RunOptions::default()
            },
        )
        .await?)
    })
}
