//! Random configurations of transformers and generators.

use serde_json::{Value as Json, json};

use super::{
    super::{objects::NAMESPACES, patches, tame},
    Layer, image, print,
};

impl Layer<'_> {
    pub(super) fn configurations(&mut self) {
        if !self.dice.one_in(6) {
            return;
        }
        let mut config = json!({});
        self.dice.field(&mut config, 2, "nameReference", |dice| {
            let kind = dice.text(&["ConfigMap", "Secret", "Service"]);
            json!([{"kind": kind, "version": "v1", "fieldSpecs": [{"kind": "Thing", "path": "spec/ref"}]}])
        });
        self.dice.field(
            &mut config,
            3,
            "namePrefix",
            |_| json!([{"path": "spec/ref", "kind": "Thing"}]),
        );
        self.dice.field(
            &mut config,
            3,
            "images",
            |_| json!([{"path": "spec/image", "kind": "Thing"}]),
        );
        self.dice.field(
            &mut config,
            3,
            "commonLabels",
            |_| json!([{"path": "spec/select", "create": true, "kind": "Thing"}]),
        );
        self.dice.field(&mut config, 3, "varReference", |dice| {
            let path = if dice.is_wild() { "spec/values" } else { "spec/ref" };
            json!([{"path": path, "kind": "Thing"}])
        });
        self.dice.field(
            &mut config,
            4,
            "namespace",
            |_| json!([{"path": "spec/nested/ns", "kind": "Thing", "create": true}]),
        );
        self.dice.field(
            &mut config,
            4,
            "replicas",
            |_| json!([{"path": "spec/size", "kind": "Thing", "create": true}]),
        );
        self.file("config.yaml", vec![config]);
        self.kustomization["configurations"] = json!(["config.yaml"]);
    }

    pub(super) fn plugins(&mut self) {
        if self.dice.one_in(4) {
            let count = self.dice.below(2) + 1;
            let mut list = Vec::new();
            for n in 0..count {
                let mut transformer = self.transformer();
                transformer["metadata"]["name"] = format!("t{n}").into();
                list.push(self.by_path_or_inline(&format!("transformer{n}.yaml"), transformer));
            }
            self.kustomization["transformers"] = list.into();
        }
        if self.dice.one_in(10) {
            let name = if self.dice.slips(2) { "gen" } else { "made" };
            let kind = self.dice.text(&["ConfigMapGenerator", "SecretGenerator"]);
            let generator = json!({"apiVersion": "builtin", "kind": kind, "metadata": {"name": name}, "literals": ["a=b"]});
            self.kustomization["generators"] = json!([print(&generator)]);
        }
    }

    fn transformer(&mut self) -> Json {
        let known = self.any();
        let (kind, settings) = match self.dice.below(9) {
            0 => (
                "PrefixTransformer",
                json!({"prefix": "t-", "fieldSpecs": [{"path": "metadata/name"}]}),
            ),
            1 => (
                "SuffixTransformer",
                json!({"suffix": "-t", "fieldSpecs": [{"path": "metadata/name", "kind": known.kind}]}),
            ),
            2 => {
                let create = self.dice.one_in(2);
                let path = self
                    .dice
                    .text(&["metadata/labels", "spec/template/metadata/labels"]);
                (
                    "LabelTransformer",
                    json!({"labels": {"l": "v"}, "fieldSpecs": [{"path": path, "create": create}]}),
                )
            }
            3 => (
                "AnnotationsTransformer",
                json!({"annotations": {"n": "v"}, "fieldSpecs": [{"path": "metadata/annotations", "create": true}]}),
            ),
            4 => {
                let mut settings = json!({"fieldSpecs": [{"path": "metadata/namespace", "create": true}]});
                self.dice
                    .field(&mut settings, 2, "setRoleBindingSubjects", |dice| {
                        dice.text(&["allServiceAccounts", "defaultOnly", "none"]).into()
                    });
                self.dice.field(&mut settings, 3, "unsetOnly", |_| true.into());
                ("NamespaceTransformer", settings)
            }
            5 => (
                "ImageTagTransformer",
                json!({"imageTag": image(self.dice), "fieldSpecs": [{"path": "spec/image"}]}),
            ),
            6 => {
                let patch = print(&patches::strategic(self.dice, &known));
                (
                    "PatchTransformer",
                    json!({"patch": patch, "target": patches::target(self.dice, &known)}),
                )
            }
            7 => {
                let patch = print(&patches::operations(self.dice, &known));
                self.changed(&known);
                (
                    "PatchTransformer",
                    json!({"patch": patch, "target": tame::target(&known)}),
                )
            }
            _ => {
                let fields = json!([{"path": "spec/replicas", "create": true, "kind": known.kind}]);
                (
                    "ReplicaCountTransformer",
                    json!({"replica": {"name": known.name, "count": 7}, "fieldSpecs": fields}),
                )
            }
        };
        let mut transformer = json!({"apiVersion": "builtin", "kind": kind, "metadata": {}});
        if kind == "NamespaceTransformer" {
            transformer["metadata"]["namespace"] = self.dice.text(NAMESPACES).into();
        }
        if let Json::Object(settings) = settings {
            for (key, value) in settings {
                transformer[&key] = value;
            }
        }
        transformer
    }
}
