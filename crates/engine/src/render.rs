//! Renders a kluctl project for a cluster.
//!
//! Rendering itself is pure ([`kluctl::render`]) and runs on a thread of its own. This module supplies the callbacks that it
//! needs: charts, other repositories, variables, decryption. Each of them blocks that thread while it waits for the network,
//! and fails as soon as the render is cancelled.

mod blocking;
mod chart_puller;
mod charts;
mod decryption;
mod external;
mod external_reads;
mod fetch_permits;
mod head;
pub(crate) mod images;
mod pinned;
mod project;
mod slots;
mod sources;
mod vars;

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use cluster::{Cluster, Scope};
use git::SshConnections;
use kluctl::{Rendered, Target};
use objects::ObjectRef;
use remote::ChartCache;
use tokio::{runtime::Handle, sync::oneshot};
use tokio_util::sync::CancellationToken;
use tree::{Budget, Limits, Tree};
use yaml::Value;

use crate::Error;
use blocking::BlockingContext;
use chart_puller::ChartPuller;
use decryption::Decryption;
use sources::SourceFetcher;
use vars::VarsReader;

pub use charts::moment;
pub use external::{
    EnvironmentVariables, ExternalAccess, FetchStatus, RemoteFiles, RemoteOverride, SourceOverride,
};
pub use external_reads::{ExternalReads, ReadObjects};
pub use fetch_permits::FetchPermits;
pub use head::ProjectHead;
pub use images::deployed_images;
pub use pinned::{PinnedSource, PinnedSources};
pub use project::{ProjectError, fetch_project, project_head};
pub use slots::RenderSlots;
use slots::{RenderPermit, RenderSlot};

const STACK_BYTES: usize = 8 << 20;

/// Time after its timeout in which a render should end by itself, with an error that names the step.
const OVERDUE: Duration = Duration::from_secs(5);

/// Namespace of namespaced objects whose manifest has no namespace.
const DEFAULT_NAMESPACE: &str = "default";

#[derive(Debug, Clone, Default)]
pub struct RenderOptions {
    /// Name of the rendered object, as in `KluctlDeployment/apps/shop`. Two renders of one name never run at the same time.
    pub name: String,
    pub slots: RenderSlots,
    pub chart_cache: ChartCache,
    /// Keys for decrypting SOPS files. If absent, an encrypted file fails the render with an error that names the file.
    pub keys: Option<Arc<secrets::Keys>>,
    pub external: ExternalAccess,
    /// Connections to SSH servers of the pass; the render's own by default.
    pub ssh: SshConnections,
    pub limits: Limits,
    /// Timeout of the render; no timeout if absent.
    pub timeout: Option<Duration>,
    /// Collects reads of anything other than the project.
    pub external_reads: ExternalReads,
}

/// Ends a render that nobody waits for.
struct CancelOnDrop {
    flag: Arc<AtomicBool>,
    permit: RenderPermit,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.flag.store(true, Ordering::Relaxed);
        self.permit.abandon();
    }
}

/// Renders a project and puts its objects into the namespaces that the cluster's kinds need.
///
/// # Errors
/// Fails when the project is invalid (the error names file and line), a limit is exceeded, the previous render of the same
/// name is still running, or discovery of the cluster fails.
pub async fn render(
    cluster: &Cluster,
    tree: Arc<dyn Tree>,
    mut request: kluctl::Request,
    options: &RenderOptions,
) -> Result<Rendered, Error> {
    // Callbacks may use the network until the caller of the render is gone.
    let cancelled = cluster.cancellation().child_token();
    let _cancel_callbacks = cancelled.clone().drop_guard();
    // Waits of the callbacks are waits of the whole operation, so they count once.
    let until = cluster.until(cancelled.clone()).within_wait();
    let permit = options.slots.permit(&options.name);
    let blocking = BlockingContext::new(cancelled)
        .waiting_on(cluster)
        .giving_back(&permit)
        .noting(&options.external_reads);
    equip(&mut request, Some(until), options, &blocking)?;
    let keys = options.keys.clone();
    let work = move |budget: &Budget| render_decrypted(tree, request, keys, budget, blocking);
    let mut rendered = cluster
        .cancellation()
        .run_until_cancelled(async {
            let slot = cluster
                .waiting(options.slots.acquire(&options.name, options.timeout, permit))
                .await?;
            // Its callbacks wait for the network by themselves.
            cluster.lending(in_a_thread(options, slot, work)).await
        })
        .await
        .ok_or(Error::Cancelled)??;
    fix_namespaces(cluster, &mut rendered).await?;
    Ok(rendered)
}

/// Renders a project without a cluster. Objects keep the namespaces of their manifests.
pub async fn render_offline(
    tree: Arc<dyn Tree>,
    request: kluctl::Request,
    options: &RenderOptions,
) -> Result<Rendered, Error> {
    let keys = options.keys.clone();
    offline(request, options, move |request, budget, blocking| {
        render_decrypted(tree, request, keys, budget, blocking)
    })
    .await
}

pub async fn choose_target(
    tree: Arc<dyn Tree>,
    request: kluctl::Request,
    options: &RenderOptions,
) -> Result<Target, Error> {
    offline(request, options, move |request, budget, _| {
        kluctl::choose_target(&tree, &request, budget)
    })
    .await
}

pub async fn list_targets(
    tree: Arc<dyn Tree>,
    request: kluctl::Request,
    options: &RenderOptions,
) -> Result<(Value, Vec<String>), Error> {
    offline(request, options, move |request, budget, _| {
        kluctl::list_targets(&tree, &request, budget)
    })
    .await
}

async fn offline<T: Send + 'static>(
    mut request: kluctl::Request,
    options: &RenderOptions,
    work: impl FnOnce(kluctl::Request, &Budget, BlockingContext) -> Result<T, kluctl::Error> + Send + 'static,
) -> Result<T, Error> {
    let cancelled = CancellationToken::new();
    let _cancel_callbacks = cancelled.clone().drop_guard();
    let permit = options.slots.permit(&options.name);
    let blocking = BlockingContext::new(cancelled).giving_back(&permit);
    equip(&mut request, None, options, &blocking)?;
    let slot = options
        .slots
        .acquire(&options.name, options.timeout, permit)
        .await?;
    in_a_thread(options, slot, move |budget| work(request, budget, blocking)).await
}

/// Sets the callbacks that the request lacks. They stop working when the render is cancelled.
fn equip(
    request: &mut kluctl::Request,
    cluster: Option<Cluster>,
    options: &RenderOptions,
    blocking: &BlockingContext,
) -> Result<(), Error> {
    charts::equip(&mut request.charts, cluster.as_ref(), blocking)?;
    if request.charts.pull.is_none() {
        let puller = ChartPuller::new(&options.chart_cache, &options.external, blocking.clone());
        request.charts.pull = Some(Arc::new(puller));
    }
    if request.sources.is_none() {
        let fetcher = SourceFetcher::new(&options.external, &options.limits, &options.ssh, blocking.clone());
        request.sources = Some(Arc::new(fetcher));
    }
    if request.vars.is_none() {
        let reader = VarsReader::new(cluster, &options.external, blocking.clone());
        request.vars = Some(Arc::new(reader));
    }
    Ok(())
}

fn render_decrypted(
    tree: Arc<dyn Tree>,
    mut request: kluctl::Request,
    keys: Option<Arc<secrets::Keys>>,
    budget: &Budget,
    blocking: BlockingContext,
) -> Result<Rendered, kluctl::Error> {
    let keys = keys.filter(|_| request.decrypt.is_none());
    let decryption = keys.map(|keys| Arc::new(Decryption::new(keys, budget, blocking)));
    if let Some(decryption) = &decryption {
        request.decrypt = Some(decryption.clone());
    }
    let mut rendered = kluctl::render(tree, &request, budget)?;
    if let Some(decryption) = decryption {
        rendered.warnings.append(&mut decryption.take_warnings());
    }
    Ok(rendered)
}

/// Runs work on a thread of its own, as it may wait for servers for long: the blocking threads of the process are for short work, such
/// as DNS lookups. The thread is cancelled when the caller is gone, when it doesn't end at its timeout, and when others wait for its permit. It
/// keeps its name until it stops.
async fn in_a_thread<T: Send + 'static>(
    options: &RenderOptions,
    slot: RenderSlot,
    work: impl FnOnce(&Budget) -> Result<T, kluctl::Error> + Send + 'static,
) -> Result<T, Error> {
    let flag = Arc::new(AtomicBool::new(false));
    let cancel = CancelOnDrop {
        flag: Arc::clone(&flag),
        permit: slot.permit().clone(),
    };
    let budget = Budget::new(options.limits.clone()).with_cancellation(flag);
    let namespace = slots::namespace_of(&options.name);
    let mut budget = limits::from_process_memory(budget, namespace);
    if let Some(timeout) = options.timeout {
        budget = budget.with_timeout(timeout);
    }
    let (send, done) = oneshot::channel();
    let runtime = Handle::current();
    let work = move || {
        let _entered = runtime.enter();
        let result = work(&budget);
        drop(slot);
        // The receiver is gone with the caller.
        let _ = send.send(result);
    };
    let started = thread::Builder::new()
        .name("render".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(work);
    started.map_err(|error| Error::NoThread(error.to_string()))?;
    let overdue = async {
        match options.timeout {
            Some(timeout) => tokio::time::sleep(timeout.saturating_add(OVERDUE)).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        ended = done => Ok(ended.map_err(|_| Error::Panicked)??),
        after = cancel.permit.evicted() => Err(Error::Evicted { name: options.name.clone(), after }),
        () = overdue => Err(Error::Timeout {
            name: options.name.clone(),
            after: options.timeout.unwrap_or_default(),
        }),
    }
}

async fn fix_namespaces(cluster: &Cluster, rendered: &mut Rendered) -> Result<(), Error> {
    let mut kinds = HashSet::new();
    for object in rendered.objects() {
        let reference = ObjectRef::of(object)?;
        kinds.insert((reference.group, reference.kind));
    }
    let mut scopes = HashMap::new();
    for (group, kind) in kinds {
        let scope = cluster.scope(&group, &kind).await?;
        scopes.insert((group, kind), scope);
    }
    let scope = |group: &str, kind: &str| {
        let scope = scopes
            .get(&(group.to_owned(), kind.to_owned()))
            .copied()
            .flatten()?;
        Some(match scope {
            Scope::Cluster => kluctl::Scope::Cluster,
            Scope::Namespaced => kluctl::Scope::Namespaced,
        })
    };
    kluctl::fix_namespaces(rendered, &scope, DEFAULT_NAMESPACE);
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use std::sync::{Mutex, mpsc};
    use tokio::sync::Notify;
    use tree::{Entry, Mem, NodeKind, TreeError, TreePath};

    use super::*;

    struct Stuck {
        reading: Arc<Notify>,
        let_go: Mutex<mpsc::Receiver<()>>,
    }

    impl Tree for Stuck {
        fn read(&self, path: &TreePath) -> Result<Bytes, TreeError> {
            self.reading.notify_one();
            let _ = self.let_go.lock().unwrap().recv();
            Err(TreeError::NotFound(path.clone()))
        }

        fn list(&self, _: &TreePath) -> Result<Vec<Entry>, TreeError> {
            Ok(Vec::new())
        }

        fn kind(&self, _: &TreePath) -> Result<Option<NodeKind>, TreeError> {
            Ok(Some(NodeKind::File {
                executable: false,
                len: 1,
            }))
        }
    }

    fn project() -> Arc<dyn Tree> {
        let object = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";
        let files = [
            (".kluctl.yaml", "targets:\n- name: test\n"),
            ("deployment.yaml", "deployments:\n- path: app\n"),
            ("app/a.yaml", object),
        ];
        Arc::new(Mem::from_files(files.map(|(path, text)| (path, text.to_owned()))).unwrap())
    }

    async fn rendered(tree: Arc<dyn Tree>, options: &RenderOptions) -> Result<usize, Error> {
        let request = kluctl::Request {
            target: Some("test".to_owned()),
            ..kluctl::Request::default()
        };
        let work = move |budget: &Budget| kluctl::render(tree, &request, budget);
        let permit = options.slots.permit(&options.name);
        let slot = options
            .slots
            .acquire(&options.name, options.timeout, permit)
            .await?;
        let rendered = in_a_thread(options, slot, work).await?;
        Ok(rendered.objects().count())
    }

    #[tokio::test]
    async fn render_that_does_not_end_at_its_timeout_is_abandoned() {
        let (reading, (go, let_go)) = (Arc::new(Notify::new()), mpsc::channel());
        let stuck = Arc::new(Stuck {
            reading: Arc::clone(&reading),
            let_go: Mutex::new(let_go),
        });
        let options = RenderOptions {
            name: "apps/shop".to_owned(),
            timeout: Some(Duration::from_secs(60)),
            ..RenderOptions::default()
        };
        let mut first = Box::pin(rendered(stuck, &options));
        tokio::select! {
            ended = &mut first => panic!("it is not stuck: {ended:?}"),
            () = reading.notified() => {}
        }
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(66)).await;
        tokio::time::resume();
        let error = first.await.unwrap_err().to_string();
        assert_eq!(
            error,
            "the render of apps/shop did not end within the timeout of 60s"
        );
        let other = RenderOptions {
            name: "apps/other".to_owned(),
            ..options.clone()
        };
        assert_eq!(rendered(project(), &other).await.unwrap(), 1, "others go on");
        go.send(()).unwrap();
        drop(go);
        assert_eq!(rendered(project(), &options).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn render_of_a_name_is_refused_while_the_previous_one_is_stuck() {
        let (reading, (go, let_go)) = (Arc::new(Notify::new()), mpsc::channel());
        let stuck = Arc::new(Stuck {
            reading: Arc::clone(&reading),
            let_go: Mutex::new(let_go),
        });
        let patient = RenderOptions {
            name: "apps/shop".to_owned(),
            ..RenderOptions::default()
        };
        let mut hasty = patient.clone();
        hasty.slots.previous_timeout = Duration::ZERO;

        let mut first = Box::pin(rendered(stuck, &patient));
        tokio::select! {
            ended = &mut first => panic!("it is not stuck: {ended:?}"),
            () = reading.notified() => {}
        }
        // The render is cancelled, but its thread does not notice.
        drop(first);
        let refused = rendered(project(), &hasty).await.unwrap_err();
        assert!(matches!(refused, Error::StillRendering { .. }), "{refused}");
        let other = RenderOptions {
            name: "apps/other".to_owned(),
            ..hasty.clone()
        };
        assert_eq!(rendered(project(), &other).await.unwrap(), 1, "others go on");

        go.send(()).unwrap();
        drop(go);
        assert_eq!(rendered(project(), &patient).await.unwrap(), 1);
        assert_eq!(rendered(project(), &hasty).await.unwrap(), 1);
    }
}
