//! Finds the object that a name refers to, seen from the object that holds the name.

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use yaml::{Node, node::Text};

use crate::{
    Error,
    error::Step,
    id::{DEFAULT_NAMESPACE, Gvk, Id, NO_NAMESPACE},
    lookup::raw_text,
    resource::History,
};

/// The identity of an object, and its earlier ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Object<'a> {
    pub(super) id: &'a Id,
    history: &'a History,
}

impl<'a> Object<'a> {
    /// Returns the kind that it was read as, in its current group and version.
    pub(super) fn original_kind(&self) -> Gvk {
        let mut kind = self.id.gvk.clone();
        if let Some(first) = self.history.previous.first() {
            kind.kind = String::from(&first.kind).into();
        }
        kind
    }

    fn original_namespace(&self) -> &'a str {
        match self.history.previous.first() {
            Some(first) => &first.namespace,
            None => self.id.effective_namespace(),
        }
    }

    /// Returns true if the object ever was of a kind.
    fn was(&self, selector: &Gvk) -> bool {
        let now = &self.id.gvk;
        let fits = |selector: &str, own: &str| selector.is_empty() || selector == own;
        let mut previous = self.history.previous.iter();
        fits(&selector.group, &now.group)
            && fits(&selector.version, &now.version)
            && previous.any(|previous| fits(&selector.kind, &previous.kind))
    }

    /// Returns true if both went through the same outer kustomizations, as far as prefixes and suffixes tell.
    fn has_affixes_of(&self, other: &Object<'_>, or_none: bool) -> bool {
        let same = |one: &[Text], other: &[Text]| {
            let none = one.is_empty() || other.is_empty();
            if none && (or_none || one.len() != other.len()) {
                return or_none;
            }
            one.iter()
                .rev()
                .zip(other.iter().rev())
                .all(|(one, other)| one == other)
        };
        same(&self.history.prefixes, &other.history.prefixes)
            && same(&self.history.suffixes, &other.history.suffixes)
    }

    fn scope(&self) -> Scope<'a> {
        if self.id.is_cluster_scoped() {
            Scope::Cluster
        } else {
            Scope::Namespace(&self.id.namespace)
        }
    }
}

/// The scope of an object. A namespace is as written, empty if there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Scope<'a> {
    Cluster,
    Namespace(&'a str),
}

/// The objects that names may refer to.
pub(super) struct Candidates<'a> {
    objects: Vec<Object<'a>>,
    /// By each of their earlier names.
    by_name: HashMap<&'a str, Vec<usize>>,
    /// The same, by scope.
    by_scope: HashMap<(Scope<'a>, &'a str), Vec<usize>>,
    /// The original namespaces of the objects of a scope.
    origins: HashMap<Scope<'a>, HashSet<&'a str>>,
    all_origins: HashSet<&'a str>,
    looked_at: Cell<u64>,
}

impl<'a> Candidates<'a> {
    pub(super) fn new(ids: &'a [Arc<Id>], histories: &'a [History]) -> Self {
        let mut all = Self {
            objects: Vec::with_capacity(ids.len()),
            by_name: HashMap::new(),
            by_scope: HashMap::new(),
            origins: HashMap::new(),
            all_origins: HashSet::new(),
            looked_at: Cell::new(0),
        };
        for (index, (id, history)) in ids.iter().zip(histories).enumerate() {
            let object = Object { id, history };
            for previous in &history.previous {
                let name = previous.name.as_str();
                enter(all.by_name.entry(name).or_default(), index);
                enter(all.by_scope.entry((object.scope(), name)).or_default(), index);
            }
            let origin = object.original_namespace();
            all.origins.entry(object.scope()).or_default().insert(origin);
            all.all_origins.insert(origin);
            all.objects.push(object);
        }
        all
    }

    pub(super) fn object(&self, index: usize) -> Option<Object<'a>> {
        self.objects.get(index).copied()
    }

    /// Returns the number of compared objects since the last call.
    pub(super) fn looked_at(&self) -> u64 {
        self.looked_at.take()
    }

    /// Describes an object that refers to others. Fails if the subjects of a role binding are invalid.
    pub(super) fn referrer(&self, object: Object<'a>, node: &Node) -> Result<Referrer<'a>, Error> {
        let is_role_binding = object.id.gvk.kind == "RoleBinding" && !object.id.is_cluster_scoped();
        let accounts = match node.get("subjects").and_then(Node::as_seq) {
            Some(subjects) if is_role_binding => account_namespaces(subjects, object.id)?,
            _ => HashSet::new(),
        };
        let there = accounts
            .iter()
            .filter_map(|account| self.origins.get(&Scope::Namespace(account)));
        let account_origins = there.flatten().copied().collect();
        let role = node.get("roleRef").and_then(|role| {
            let (group, kind) = (role.get("apiGroup")?, role.get("kind")?);
            Some(Gvk {
                group: raw_text(group).to_owned().into(),
                kind: raw_text(kind).to_owned().into(),
                ..Gvk::default()
            })
        });
        let own = object.id.effective_namespace();
        let unset = (own == DEFAULT_NAMESPACE).then_some(Scope::Namespace(""));
        let scopes = [Scope::Cluster, Scope::Namespace(own)].into_iter().chain(unset);
        Ok(Referrer {
            object,
            role,
            scopes: (!object.id.is_cluster_scoped()).then(|| scopes.collect()),
            accounts,
            account_origins,
        })
    }

    /// Returns the objects that had a name and that a referrer can refer to, in their order.
    fn named(&self, name: &str, referrer: &Referrer<'_>) -> Vec<usize> {
        let Some(named) = self.by_name.get(name) else {
            return Vec::new();
        };
        let Some(scopes) = &referrer.scopes else {
            return named.clone();
        };
        let accounts = referrer.accounts.iter();
        let scopes = scopes.iter().copied();
        let scopes = scopes.chain(accounts.map(|account| Scope::Namespace(account)));
        if named.len() <= scopes.clone().count() {
            let reached = |index: &&usize| self.object(**index).is_some_and(|it| referrer.reaches(&it));
            return named.iter().filter(reached).copied().collect();
        }
        let there = scopes.filter_map(|scope| self.by_scope.get(&(scope, name)));
        let mut there: Vec<_> = there.flatten().copied().collect();
        there.sort_unstable();
        there.dedup();
        there
    }

    /// Prepares the lookup of an object of a kind for a field.
    pub(super) fn question<'q>(
        &'q self,
        referrer: &'q Referrer<'a>,
        target: &'q Gvk,
        path: &str,
    ) -> Question<'q> {
        let is_role_ref = path.ends_with("roleRef/name");
        Question {
            candidates: self,
            referrer,
            target,
            role: referrer.role.as_ref().filter(|_| is_role_ref),
        }
    }
}

/// An object whose fields hold names.
pub(super) struct Referrer<'a> {
    object: Object<'a>,
    /// The group and kind of the role that it binds.
    role: Option<Gvk>,
    /// The scopes of the objects that it can refer to, in addition to `accounts`; `None` for all scopes.
    scopes: Option<Vec<Scope<'a>>>,
    /// The namespaces of the service accounts that it binds the role to.
    accounts: HashSet<String>,
    /// The original namespaces of the objects in these.
    account_origins: HashSet<&'a str>,
}

impl<'a> Referrer<'a> {
    /// Returns true if it can refer to an object.
    fn reaches(&self, object: &Object<'_>) -> bool {
        self.object.id.is_cluster_scoped()
            || object.id.is_cluster_scoped()
            || object.id.same_namespace(self.object.id)
            || self.accounts.contains(&object.id.namespace)
    }

    /// Returns true if one of the objects that it can refer to was in a namespace when it was read.
    fn reaches_from(&self, candidates: &Candidates<'_>, namespace: &str) -> bool {
        let Some(scopes) = &self.scopes else {
            return candidates.all_origins.contains(namespace);
        };
        let mut origins = scopes.iter().filter_map(|scope| candidates.origins.get(scope));
        origins.any(|origins| origins.contains(namespace)) || self.account_origins.contains(namespace)
    }
}

fn enter(indices: &mut Vec<usize>, index: usize) {
    if indices.last() != Some(&index) {
        indices.push(index);
    }
}

fn account_namespaces(subjects: &[Node], referrer: &Id) -> Result<HashSet<String>, Error> {
    let fail = |problem: &str| Err(Error::new(Step::Reference, format!("{problem} \"{referrer}\"")));
    let mut namespaces = HashSet::new();
    for subject in subjects {
        if subject.as_map().is_none() {
            return fail("Invalid Input: a subject is no map in");
        }
        let (Some(namespace), Some(kind)) = (subject.get("namespace"), subject.get("kind")) else {
            continue;
        };
        match kind.as_str() {
            None => return fail("Invalid Input: the kind of a subject is no string in"),
            Some("ServiceAccount") => match namespace.as_str() {
                Some(namespace) => namespaces.insert(namespace.to_owned()),
                None => return fail("Invalid Input: namespace is blank for resource"),
            },
            Some(_) => continue,
        };
    }
    Ok(namespaces)
}

/// The rule by which several objects count as one for a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Identical {
    Names,
    NamesAndNamespaces,
}

/// The lookup of an object that a field of another one names.
pub(super) struct Question<'a> {
    candidates: &'a Candidates<'a>,
    referrer: &'a Referrer<'a>,
    target: &'a Gvk,
    role: Option<&'a Gvk>,
}

impl<'a> Question<'a> {
    /// Returns the object that had a name, and was or is in the given namespace, if any. Several are an error.
    pub(super) fn ask(
        &self,
        name: &str,
        namespace: Option<&str>,
        identical: Identical,
    ) -> Result<Option<Object<'a>>, Error> {
        let named = self.candidates.named(name, self.referrer);
        let looked_at = &self.candidates.looked_at;
        looked_at.set(looked_at.get() + named.len() as u64);
        let named = named.iter().filter_map(|index| self.candidates.object(*index));
        let mut left: Vec<_> = named.filter(|object| self.fits(object)).collect();
        if let Some(namespace) = namespace {
            self.keep_namespace(&mut left, namespace);
        }
        if left.len() > 1 {
            // An exact match is required if the other one leaves several.
            let referrer = &self.referrer.object;
            left.retain(|object| object.has_affixes_of(referrer, true));
            if left.len() > 1 {
                left.retain(|object| object.has_affixes_of(referrer, false));
            }
        }
        let Some((first, others)) = left.split_first() else {
            return Ok(None);
        };
        let same = |other: &Object<'_>| {
            let same_namespace = other.id.namespace == first.id.namespace;
            other.id.name == first.id.name && (same_namespace || identical == Identical::Names)
        };
        if others.iter().all(same) {
            return Ok(Some(*first));
        }
        let several: Vec<_> = left.iter().map(|object| object.id.to_string()).collect();
        let problem = format!(
            "found multiple possible referrals: {}\n\n\
             **** Too many possible referral targets to referrer: {}, which names {name:?}",
            several.join(", "),
            self.referrer.object.id
        );
        Err(Error::new(Step::Reference, problem))
    }

    fn fits(&self, object: &Object<'_>) -> bool {
        let referrer = self.referrer.object.id;
        // Role bindings may name the service accounts of other namespaces.
        let crosses = referrer.is_cluster_scoped()
            || object.id.is_cluster_scoped()
            || object.id.gvk.kind == "ServiceAccount";
        object.was(self.target)
            && self.role.is_none_or(|role| object.was(role))
            && (crosses || object.id.same_namespace(referrer))
    }

    /// Retains the objects that were in a namespace when they were read; if the referrer can refer to no such object, those
    /// that are in it now.
    fn keep_namespace(&self, left: &mut Vec<Object<'_>>, namespace: &str) {
        if namespace == NO_NAMESPACE {
            left.clear();
        } else if self.referrer.reaches_from(self.candidates, namespace) {
            left.retain(|object| object.original_namespace() == namespace);
        } else {
            left.retain(|object| object.id.effective_namespace() == namespace);
        }
    }
}
