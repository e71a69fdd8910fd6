//! Random kustomizations of two or three layers.

mod plugins;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::{
    dice::Dice,
    objects::{self, Known, LABELS, NAMESPACES, VALUES},
    patches, tame,
};

/// The documents of a file, or invalid YAML.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum File {
    Documents(Vec<Json>),
    Text(String),
}

impl File {
    /// Returns the documents, if there are several.
    pub(super) fn several(&mut self) -> Option<&mut Vec<Json>> {
        match self {
            Self::Documents(documents) if documents.len() > 1 => Some(documents),
            _ => None,
        }
    }
}

pub(super) type Files = BTreeMap<String, File>;

/// One directory in the making.
struct Layer<'d> {
    dice: &'d mut Dice,
    dir: &'static str,
    files: &'d mut Files,
    /// The objects here and below, by their first names.
    known: Vec<Known>,
    /// The number of them that are in another directory.
    beside: usize,
    kustomization: Json,
}

/// Makes a tree whose directory `top` is to be built.
pub(super) fn tree(dice: &mut Dice) -> Files {
    let mut files = Files::new();
    let mut known = layer(dice, &mut files, "base", &[], Vec::new());
    let mut below = vec!["../base"];
    if dice.one_in(4) {
        known = layer(dice, &mut files, "second", &[], known);
        below.push("../second");
    }
    if dice.one_in(2) {
        known = layer(dice, &mut files, "middle", &below, known);
        below = vec!["../middle"];
    }
    layer(dice, &mut files, "top", &below, known);
    files
}

fn layer(
    dice: &mut Dice,
    files: &mut Files,
    dir: &'static str,
    below: &[&str],
    known: Vec<Known>,
) -> Vec<Known> {
    let beside = if below.is_empty() { known.len() } else { 0 };
    let mut layer = Layer {
        beside,
        dice,
        dir,
        files,
        known,
        kustomization: json!({}),
    };
    layer.resources(below);
    layer.generators();
    if below.is_empty() {
        // The base has few fields, which all occur above as well.
        if layer.dice.one_in(3) {
            layer.names();
        }
    } else {
        layer.names();
        layer.maps();
        layer.images_and_replicas();
        layer.components();
        layer.patches();
        layer.replacements_and_vars();
        layer.configurations();
        layer.plugins();
        layer.output();
    }
    let Layer {
        kustomization, known, ..
    } = layer;
    files.insert(
        format!("{dir}/kustomization.yaml"),
        File::Documents(vec![kustomization]),
    );
    known
}

impl Layer<'_> {
    fn set(&mut self, n: usize, key: &str, make: impl FnOnce(&mut Dice) -> Json) {
        self.dice.field(&mut self.kustomization, n, key, make);
    }

    fn file(&mut self, name: &str, documents: Vec<Json>) {
        self.files
            .insert(format!("{}/{name}", self.dir), File::Documents(documents));
    }

    fn text(&mut self, name: &str, text: &str) {
        self.files
            .insert(format!("{}/{name}", self.dir), File::Text(text.to_owned()));
    }

    /// Returns an existing object, or sometimes a missing one.
    fn any(&mut self) -> Known {
        if self.known.is_empty() || self.dice.slips(5) {
            return objects::known(self.dice);
        }
        self.dice.pick(&self.known).clone()
    }

    fn resources(&mut self, below: &[&str]) {
        let mut list: Vec<Json> = below.iter().map(|path| (*path).into()).collect();
        let count = if below.is_empty() {
            2 + self.dice.below(5)
        } else {
            self.dice.below(3)
        };
        let mut files: [Vec<Json>; 2] = Default::default();
        for n in 0..count {
            let known = objects::known(self.dice);
            let same = |other: &Known| {
                (&other.api, &other.kind, &other.name) == (&known.api, &known.kind, &known.name)
            };
            if self.known.iter().any(same) && !self.dice.slips(4) {
                continue;
            }
            files[n % 2].push(known.object.clone());
            self.known.push(known);
        }
        if self.dice.one_in(10) && files[0].len() > 1 {
            let items = std::mem::take(&mut files[0]);
            files[0] = vec![json!({"apiVersion": "v1", "kind": "List", "items": items})];
        }
        for (n, documents) in files.into_iter().enumerate() {
            if !documents.is_empty() {
                let name = format!("r{n}.yaml");
                let at = self.dice.below(list.len() + 1);
                list.insert(at, name.clone().into());
                self.file(&name, documents);
            }
        }
        self.kustomization["resources"] = list.into();
    }

    fn generators(&mut self) {
        for (key, kind) in [("configMapGenerator", "ConfigMap"), ("secretGenerator", "Secret")] {
            if !self.dice.one_in(3) {
                continue;
            }
            let mut list = Vec::new();
            for _ in 0..=self.dice.below(2) {
                list.push(self.generator(kind));
            }
            self.kustomization[key] = list.into();
        }
        self.set(8, "generatorOptions", generator_options);
    }

    fn generator(&mut self, kind: &str) -> Json {
        let names: &[&str] = if self.beside > 0 {
            &["gen2"]
        } else {
            &["gen", "cfg", "sec"]
        };
        let name = self.dice.text(names);
        let mut entry = json!({"name": name});
        let same = |known: &&Known| known.kind == kind && known.name == name;
        let exists = self.known[self.beside..]
            .iter()
            .find(same)
            .map(|known| known.namespace.clone());
        let fits = !self.dice.slips(4);
        match &exists {
            Some(namespace) if fits => {
                if !namespace.is_empty() {
                    entry["namespace"] = namespace.clone().into();
                }
                entry["behavior"] = self.dice.text(&["merge", "replace"]).into();
            }
            _ => {
                self.dice.field(&mut entry, 6, "behavior", |_| "create".into());
                self.dice
                    .field(&mut entry, 8, "namespace", |dice| dice.text(NAMESPACES).into());
            }
        }
        self.dice.field(&mut entry, 2, "literals", |dice| {
            let literal =
                |dice: &mut Dice| dice.text(&["k=v", "k2=a=b", "a.b='x y'", "n=1", "t=true", "u=<a>&é"]);
            let mut list = dice.list(1..3, literal);
            let mut keys = BTreeSet::new();
            list.retain(|literal| keys.insert(literal.split('=').next().map(str::to_owned)));
            list.into()
        });
        if self.dice.one_in(4) {
            entry["files"] = json!([self.dice.text(&["data.txt", "named=data.txt", "bin"])]);
            self.text("data.txt", "line one\nline two \n");
            self.text("bin", "no line");
        }
        if self.dice.one_in(5) {
            entry["envs"] = json!(["vars.env"]);
            self.text("vars.env", "# comment\nE=1\nF='q' \n\nG\n");
        }
        if kind == "Secret" {
            self.dice
                .field(&mut entry, 4, "type", |_| "kubernetes.io/tls".into());
        }
        self.dice.field(&mut entry, 5, "options", generator_options);
        if exists.is_none() {
            let object = json!({"metadata": {"name": name}, "data": {"k": "v"}});
            let namespace = entry["namespace"].as_str().unwrap_or_default().to_owned();
            let (api, kind) = ("v1".to_owned(), kind.to_owned());
            self.known.push(Known {
                api,
                kind,
                name,
                namespace,
                object,
                is_changed: true,
            });
        }
        entry
    }

    fn names(&mut self) {
        self.set(3, "namePrefix", |dice| dice.text(&["p-", "q-", ""]).into());
        self.set(4, "nameSuffix", |dice| dice.text(&["-s", "-1"]).into());
        self.set(3, "namespace", |dice| dice.text(NAMESPACES).into());
    }

    fn maps(&mut self) {
        self.set(5, "commonLabels", |dice| dice.pairs(LABELS, &["a", "b", "1"]));
        self.set(5, "commonAnnotations", |dice| dice.pairs(LABELS, VALUES));
        self.set(4, "labels", |dice| {
            let entry = |dice: &mut Dice| {
                let mut entry = json!({"pairs": dice.pairs(LABELS, &["a", "c", "true"])});
                dice.field(&mut entry, 3, "includeSelectors", |_| true.into());
                dice.field(&mut entry, 3, "includeTemplates", |_| true.into());
                dice.field(
                    &mut entry,
                    5,
                    "fields",
                    |dice| json!([{"path": "spec/labels", "kind": "Thing", "create": dice.one_in(2)}]),
                );
                entry
            };
            dice.list(1..3, entry).into()
        });
    }

    fn images_and_replicas(&mut self) {
        self.set(4, "images", |dice| dice.list(1..3, image).into());
        let scaled = |known: &&Known| matches!(known.kind.as_str(), "Deployment" | "StatefulSet");
        let name = self.known.iter().find(scaled).map(|known| known.name.clone());
        if let Some(name) = name.or_else(|| self.dice.one_in(20).then(|| "none".to_owned())) {
            let count = self.dice.below(9);
            self.set(5, "replicas", |_| json!([{"name": name, "count": count}]));
        }
    }

    fn patches(&mut self) {
        if self.dice.one_in(2) {
            let count = self.dice.below(3) + 1;
            let list: Vec<Json> = (0..count).map(|n| self.patch(n)).collect();
            self.kustomization["patches"] = list.into();
        }
        if self.dice.one_in(8) {
            let known = self.any();
            let patch = patches::strategic(self.dice, &known);
            self.changed(&known);
            let entry = self.by_path_or_inline("psm.yaml", patch);
            self.kustomization["patchesStrategicMerge"] = json!([entry]);
        }
        if self.dice.one_in(8) {
            let known = self.any();
            let mut target = json!({"kind": known.kind, "name": known.name, "version": known.version()});
            if !known.group().is_empty() {
                target["group"] = known.group().into();
            }
            let patch = print(&patches::operations(self.dice, &known));
            self.changed(&known);
            self.kustomization["patchesJson6902"] = json!([{"target": target, "patch": patch}]);
        }
    }

    fn by_path_or_inline(&mut self, name: &str, document: Json) -> Json {
        if self.dice.one_in(2) {
            return print(&document).into();
        }
        self.file(name, vec![document]);
        name.into()
    }

    /// Marks an object as changed, and perhaps others of its kind.
    fn changed(&mut self, known: &Known) {
        let same = self.known.iter_mut().filter(|other| other.kind == known.kind);
        same.for_each(|other| other.is_changed = true);
    }

    fn patch(&mut self, n: usize) -> Json {
        let known = self.any();
        let json6902 = self.dice.one_in(3);
        let document = if json6902 {
            patches::operations(self.dice, &known)
        } else {
            patches::strategic(self.dice, &known)
        };
        let mut entry = json!({});
        if self.dice.one_in(2) {
            entry["patch"] = print(&document).into();
        } else {
            let name = format!("patch{n}.yaml");
            entry["path"] = name.clone().into();
            self.file(&name, vec![document]);
        }
        if json6902 || self.dice.one_in(2) {
            entry["target"] = if json6902 && !self.dice.is_wild() {
                tame::target(&known)
            } else {
                patches::target(self.dice, &known)
            };
        }
        self.changed(&known);
        self.dice.field(
            &mut entry,
            8,
            "options",
            |dice| json!({"allowNameChange": dice.one_in(2), "allowKindChange": dice.one_in(2)}),
        );
        entry
    }

    fn replacements_and_vars(&mut self) {
        if self.known.is_empty() {
            return;
        }
        if self.dice.one_in(3) {
            let known = self.known.clone();
            let one = patches::replacement(self.dice, &known);
            if self.dice.one_in(4) {
                self.file("replacement.yaml", vec![one]);
                self.kustomization["replacements"] = json!([{"path": "replacement.yaml"}]);
            } else {
                self.kustomization["replacements"] = json!([one]);
            }
        }
        if self.dice.one_in(6) && self.dir == "top" {
            let mut list = Vec::new();
            for name in self.dice.some(&["V_A", "V_B"]) {
                let known = self.any();
                let mut var = json!({"name": name, "objref": {"apiVersion": known.api, "kind": known.kind, "name": known.name}});
                let paths: &[&str] = if self.dice.is_wild() {
                    &["metadata.name", "metadata.namespace", "spec.replicas", "data.k"]
                } else if !known.is_changed && known.object["data"]["k"].is_string() {
                    &["metadata.name", "data.k"]
                } else {
                    &["metadata.name"]
                };
                self.dice.field(
                    &mut var,
                    3,
                    "fieldref",
                    |dice| json!({"fieldpath": dice.text(paths)}),
                );
                list.push(var);
            }
            self.kustomization["vars"] = list.into();
        }
    }

    fn components(&mut self) {
        if !self.dice.one_in(5) || self.files.contains_key("part/kustomization.yaml") {
            return;
        }
        let mut part = json!({"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"});
        self.dice
            .field(&mut part, 1, "commonAnnotations", |_| json!({"part": "c"}));
        self.dice.field(&mut part, 2, "namePrefix", |_| "c-".into());
        self.dice
            .field(&mut part, 3, "images", |dice| json!([image(dice)]));
        self.dice
            .field(&mut part, 3, "namespace", |dice| dice.text(NAMESPACES).into());
        let known = self.any();
        self.dice.field(&mut part, 2, "patches", |dice| {
            json!([{"patch": print(&patches::strategic(dice, &known)), "target": patches::target(dice, &known)}])
        });
        if part.get("patches").is_some() {
            self.changed(&known);
        }
        let known = objects::known(self.dice);
        let is_new = !self
            .known
            .iter()
            .any(|other| (&other.kind, &other.name) == (&known.kind, &known.name));
        if self.dice.one_in(2) && (is_new || self.dice.is_wild()) {
            part["resources"] = json!(["object.yaml"]);
            self.files
                .insert("part/object.yaml".to_owned(), File::Documents(vec![known.object]));
        }
        self.files
            .insert("part/kustomization.yaml".to_owned(), File::Documents(vec![part]));
        self.kustomization["components"] = json!(["../part"]);
    }

    fn output(&mut self) {
        if self.dir == "top" {
            self.set(8, "sortOptions", |dice| match dice.below(3) {
                0 => json!({"order": "fifo"}),
                1 => json!({"order": "legacy"}),
                _ => json!({"order": "legacy", "legacySortOptions": {"orderFirst": ["Service", "Thing"], "orderLast": ["ConfigMap"]}}),
            });
        }
        self.set(8, "buildMetadata", |dice| {
            json!(dice.some(&["originAnnotations", "transformerAnnotations", "managedByLabel"]))
        });
    }
}

fn image(dice: &mut Dice) -> Json {
    let mut image = json!({"name": dice.text(&["nginx", "busybox", "reg.io:5000/a/nginx", ".*x", "other"])});
    dice.field(&mut image, 2, "newName", |dice| {
        dice.text(&["other", "reg.io/b/c"]).into()
    });
    dice.field(&mut image, 2, "newTag", |dice| dice.text(&["2", "v3"]).into());
    dice.field(&mut image, 6, "digest", |_| {
        "sha256:25a0c4b4a4c0eb97a1aabb8e29f18e917d05abfe1b7a7c07857230879ce7d3d3".into()
    });
    dice.field(&mut image, 6, "tagSuffix", |_| "-x".into());
    image
}

fn generator_options(dice: &mut Dice) -> Json {
    let mut options = json!({});
    dice.field(&mut options, 2, "labels", |dice| dice.pairs(LABELS, &["a", "b"]));
    dice.field(&mut options, 3, "annotations", |dice| dice.pairs(LABELS, VALUES));
    dice.field(&mut options, 3, "disableNameSuffixHash", |dice| {
        dice.one_in(2).into()
    });
    dice.field(&mut options, 4, "immutable", |_| true.into());
    options
}

pub(super) fn print(document: &Json) -> String {
    let text = yaml::print::goyaml(&yaml::Value::from_json(document.clone()));
    text.replace("RAW", "").replace("WAR", "")
}
