//! Rendering a project for a cluster.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cluster::{Cluster, Scope};
use kluctl::{Rendered, Target};
use objects::ObjectRef;
use tokio_util::sync::CancellationToken;
use tree::{Budget, Limits, Tree};
use yaml::Value;

use crate::{
    Error, Outside, Pulling, Renders, charts, decrypt::Decryption, sources::Fetcher, vars::Reader,
    waiting::Waiting,
};

/// The namespace of objects that name none.
const DEFAULT_NAMESPACE: &str = "default";

/// The bounds of a render.
#[derive(Debug, Clone, Default)]
pub struct Rendering {
    /// The name of what is rendered: no two renders of one name run at the same time.
    pub name: String,
    /// The renders that it runs beside.
    pub renders: Renders,
    /// The charts that were pulled for it and others.
    pub pulling: Pulling,
    /// The keys of encrypted files. Without any, such files are refused by name.
    pub keys: Option<Arc<secrets::Keys>>,
    /// What it may take from elsewhere.
    pub outside: Outside,
    /// How much it may use.
    pub limits: Limits,
    /// How long it may take.
    pub timeout: Option<Duration>,
}

/// Sets a flag when dropped: a render whose caller is gone must not go on.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Renders a project and puts its objects into the namespaces that the cluster's kinds need.
///
/// # Errors
/// When the project is wrong (the error names file and line), a limit is reached, the last render of the same name has not
/// ended, or the cluster can't be asked which kinds it serves.
pub async fn render(
    cluster: &Cluster,
    tree: Arc<dyn Tree>,
    mut request: kluctl::Request,
    rendering: &Rendering,
) -> Result<Rendered, Error> {
    // Charts may ask the cluster for as long as somebody waits for the render.
    let waited_for = cluster.cancellation().child_token();
    let _waiting = waited_for.clone().drop_guard();
    let until = cluster.until(waited_for.clone());
    let waiting = Waiting::until(waited_for);
    equip(&mut request, Some(until), rendering, &waiting)?;
    let keys = rendering.keys.clone();
    let work = move |budget: &Budget| render_decrypted(tree, request, keys, budget, waiting);
    let mut rendered = cluster
        .cancellation()
        .run_until_cancelled(in_a_thread(rendering, work))
        .await
        .ok_or(Error::Cancelled)??;
    fix_namespaces(cluster, &mut rendered).await?;
    Ok(rendered)
}

/// Renders a project without any cluster. Objects stay in the namespaces that are written in them.
///
/// # Errors
/// As [`render`], except for those of the cluster.
pub async fn render_offline(
    tree: Arc<dyn Tree>,
    request: kluctl::Request,
    rendering: &Rendering,
) -> Result<Rendered, Error> {
    let keys = rendering.keys.clone();
    offline(request, rendering, move |request, budget, waiting| {
        render_decrypted(tree, request, keys, budget, waiting)
    })
    .await
}

/// The target that a request is about, as it is before anything is rendered for it; see [`kluctl::choose_target`].
///
/// # Errors
/// As [`render_offline`].
pub async fn choose_target(
    tree: Arc<dyn Tree>,
    request: kluctl::Request,
    rendering: &Rendering,
) -> Result<Target, Error> {
    offline(request, rendering, move |request, budget, _| {
        kluctl::choose_target(&tree, &request, budget)
    })
    .await
}

/// The targets of a project, and what the user should know besides; see [`kluctl::list_targets`].
///
/// # Errors
/// As [`render_offline`].
pub async fn list_targets(
    tree: Arc<dyn Tree>,
    request: kluctl::Request,
    rendering: &Rendering,
) -> Result<(Value, Vec<String>), Error> {
    offline(request, rendering, move |request, budget, _| {
        kluctl::list_targets(&tree, &request, budget)
    })
    .await
}

/// Works on a project without any cluster.
async fn offline<T: Send + 'static>(
    mut request: kluctl::Request,
    rendering: &Rendering,
    work: impl FnOnce(kluctl::Request, &Budget, Waiting) -> Result<T, kluctl::Error> + Send + 'static,
) -> Result<T, Error> {
    let waited_for = CancellationToken::new();
    let _waiting = waited_for.clone().drop_guard();
    let waiting = Waiting::until(waited_for);
    equip(&mut request, None, rendering, &waiting)?;
    in_a_thread(rendering, move |budget| work(request, budget, waiting)).await
}

/// Gives a request everything from outside that it doesn't have, until nobody waits for the render any more.
fn equip(
    request: &mut kluctl::Request,
    cluster: Option<Cluster>,
    rendering: &Rendering,
    waiting: &Waiting,
) -> Result<(), Error> {
    charts::equip(&mut request.charts, cluster.as_ref(), waiting)?;
    if request.charts.pull.is_none() {
        let puller = rendering.pulling.until(&rendering.outside, waiting.clone());
        request.charts.pull = Some(Arc::new(puller));
    }
    if request.sources.is_none() {
        let fetcher = Fetcher::new(&rendering.outside, &rendering.limits, waiting.clone());
        request.sources = Some(Arc::new(fetcher));
    }
    if request.vars.is_none() {
        let reader = Reader::new(cluster, &rendering.outside, waiting.clone());
        request.vars = Some(Arc::new(reader));
    }
    Ok(())
}

/// Renders with the keys of encrypted files, unless somebody decrypts them already.
fn render_decrypted(
    tree: Arc<dyn Tree>,
    mut request: kluctl::Request,
    keys: Option<Arc<secrets::Keys>>,
    budget: &Budget,
    waiting: Waiting,
) -> Result<Rendered, kluctl::Error> {
    let keys = keys.filter(|_| request.decrypt.is_none());
    let decryption = keys.map(|keys| Arc::new(Decryption::new(keys, budget, waiting)));
    if let Some(decryption) = &decryption {
        request.decrypt = Some(decryption.clone());
    }
    let mut rendered = kluctl::render(tree, &request, budget)?;
    if let Some(decryption) = decryption {
        rendered.warnings.append(&mut decryption.take_warnings());
    }
    Ok(rendered)
}

/// Works in a thread of its own, which is told to end when the caller goes. Until it does, it keeps its place.
async fn in_a_thread<T: Send + 'static>(
    rendering: &Rendering,
    work: impl FnOnce(&Budget) -> Result<T, kluctl::Error> + Send + 'static,
) -> Result<T, Error> {
    let place = rendering
        .renders
        .begin(&rendering.name, rendering.timeout)
        .await?;
    let flag = Arc::new(AtomicBool::new(false));
    let _cancel = CancelOnDrop(Arc::clone(&flag));
    let mut budget = Budget::new(rendering.limits.clone()).with_cancellation(flag);
    if let Some(timeout) = rendering.timeout {
        budget = budget.with_timeout(timeout);
    }
    let done = tokio::task::spawn_blocking(move || {
        let _place = place;
        work(&budget)
    });
    Ok(done.await.map_err(|_| Error::Panicked)??)
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

    /// A tree that is stuck in its first read until it is let go, whatever the budget says.
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

    async fn rendered(tree: Arc<dyn Tree>, rendering: &Rendering) -> Result<usize, Error> {
        let request = kluctl::Request {
            target: Some("test".to_owned()),
            ..kluctl::Request::default()
        };
        let work = move |budget: &Budget| kluctl::render(tree, &request, budget);
        let rendered = in_a_thread(rendering, work).await?;
        Ok(rendered.objects().count())
    }

    #[tokio::test]
    async fn an_object_whose_render_does_not_end_gets_no_second_one() {
        let (reading, (go, let_go)) = (Arc::new(Notify::new()), mpsc::channel());
        let stuck = Arc::new(Stuck {
            reading: Arc::clone(&reading),
            let_go: Mutex::new(let_go),
        });
        let patient = Rendering {
            name: "apps/shop".to_owned(),
            ..Rendering::default()
        };
        let mut hasty = patient.clone();
        hasty.renders.patience = Duration::ZERO;

        let mut first = Box::pin(rendered(stuck, &patient));
        tokio::select! {
            ended = &mut first => panic!("it is not stuck: {ended:?}"),
            () = reading.notified() => {}
        }
        // Its caller is told to end, but the thread does not see it.
        drop(first);
        let refused = rendered(project(), &hasty).await.unwrap_err();
        assert!(matches!(refused, Error::StillRendering { .. }), "{refused}");
        let other = Rendering {
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
