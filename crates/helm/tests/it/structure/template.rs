//! Templates that print their data, and documents with separators in unusual positions.

use super::maker::Maker;

/// Pipelines that print the data of a template.
const SEEN: &str = "toJson .Values¦toYaml .Values | nindent 4¦toJson .Chart¦.Chart.Name¦.Chart.Version¦.Chart.AppVersion¦.Chart.Type¦\
    .Chart.IsRoot¦.Chart.KubeVersion¦toJson .Release¦.Release¦.Template.Name¦.Template.BasePath¦toJson .Template¦.Template¦\
    keys .Subcharts | sortAlpha | toJson¦.Files | toJson¦.Files.Glob \"**\" | toJson¦.Files.Get \"a.txt\" | quote¦\
    .Files.Lines \"files/b.txt\" | toJson¦(.Files.Glob \"*\").AsConfig | nindent 4¦(.Files.Glob \"files/**\").AsSecrets | nindent 4¦\
    .Capabilities.KubeVersion¦.Capabilities.KubeVersion.Minor¦.Capabilities.APIVersions.Has \"a/b\"¦len .Capabilities.APIVersions¦\
    .Values.a¦.Values.global¦.Values.one¦.Values.list¦.Values¦keys . | sortAlpha | toJson¦toJson .Values.two¦.Chart.Dependencies | len¦\
    .Chart.Annotations¦.Chart.Keywords¦.Chart.Description | quote¦toJson .Chart.Maintainers¦.Chart.Metadata.Name¦\
    tpl \"{{ .Template.Name }}{{ .Chart.Name }}\" .¦lookup \"v1\" \"Pod\" \"a\" \"b\" | toJson¦typeOf .Chart¦\
    typeOf .Subcharts¦kindOf .Values.global¦kindOf .Files¦hasKey .Values \"global\"¦set .Values \"x\" \"set\" | len¦\
    .Files.Get \"requirements.yaml\" | quote¦.Files.Get \"README.md\"¦.Chart.Sources¦toYaml .Chart | nindent 4¦\
    .Values.enabled | default \"none\"¦merge .Values (dict \"m\" 1) | toJson¦toJson .Chart.Dependencies¦toJson .Chart.Keywords¦\
    toYaml .Chart.Annotations | nindent 4¦typeOf .Chart.Annotations";
/// Likewise, but not accepted by `quote`.
const LOOPS: &str = "range $k, $v := .Subcharts }}{{ $k }}={{ toJson $v.Values }},{{ $v.Chart.Name }},{{ $v.Chart.Version }}{{ end¦\
    range $p, $b := .Files }}{{ $p }}:{{ $b | toString | quote }};{{ end¦\
    range .Chart.Dependencies }}{{ .Name }},{{ .Alias }},{{ .Enabled }},{{ .Version }},{{ .Condition }},{{ toJson .Tags }},{{ .ImportValues }};{{ end¦\
    range .Chart.Maintainers }}{{ .Name }}{{ .Email }}{{ . }}{{ end¦\
    range .Subcharts }}{{ toJson (omit . \"Capabilities\" \"Subcharts\") }}{{ end¦with .Values.global }}{{ toJson . }}{{ end";
/// Pipelines that are often invalid.
const ODD: &str = "include \"shared\" .¦include \"own\" .¦template \"shared\" . }}{{ \"\"¦.Values.a.b¦.Values.global.a¦.Subcharts.one.Values.a¦\
    .Subcharts.one.Files.Get \"a.txt\"¦include (print .Template.BasePath \"/_h.tpl\") . | len¦\
    include (print $.Template.BasePath \"/config.yaml\") . | sha256sum¦tpl (toYaml .Values) . | nindent 4¦fail \"words\"¦\
    required \"need\" .Values.x¦.Chart.Annotations.a | quote¦index .Chart.Annotations \"a\" | quote¦.Values.global.global¦\
    set .Values.global \"g\" .Chart.Name | len¦unset .Values \"a\" | toJson¦index .Values.list 0¦.Chart.Nope¦.Nope";

const KINDS: &str = "ConfigMap¦Secret¦Service¦Deployment¦Namespace¦ServiceAccount¦CustomResourceDefinition¦Role¦RoleBinding¦ClusterRole¦Job¦\
    CronJob¦Ingress¦Zeta¦Alpha¦PriorityClass¦StatefulSet¦HorizontalPodAutoscaler¦APIService¦IngressClass¦Widget¦List¦Pod¦LimitRange¦\
    configmap¦SecretList¦MutatingWebhookConfiguration¦ValidatingWebhookConfiguration¦NetworkPolicy¦PodDisruptionBudget¦EndpointSlice";
const HOOKS: &str = "pre-install¦post-install¦test¦test-success¦test-failure¦pre-install,post-upgrade¦Pre-Install¦crd-install¦\"\"¦\
    \" post-delete , pre-delete\"¦unknown¦pre-install,unknown¦pre-rollback¦\"1\"¦post-rollback¦pre-upgrade¦pre-install,,test";
const WEIGHTS: &str = "\"1\"¦\"-5\"¦2¦\"x\"¦\"\"¦1.5¦\"99999999999999999999\"¦null";
const BREAKS: &str = "---\n¦\n---\n¦--- # c\n¦---   \n¦---\t\n¦---\n\n---\n¦---\n# only a comment\n---\n¦\n\n---\n\n\n¦\
    ---\n{{- if false }}\nx: 1\n{{- end }}\n---\n";
const ODD_BREAKS: &str = "---\r\n¦----\n¦ ---\n¦---x\n¦--- a: 1\n¦...\n---\n";
const TAILS: &str = "{{- if .Values.enabled }}\non: 1\n{{- end }}\n¦# tail\n¦\n¦   \n¦{{/* c */}}\n¦text: |\n  ---\n  x\n¦text: \"---\"\n¦\
    text: |\n\n    a\n\n¦{{- range $i := until 2 }}\n---\nkind: R{{ $i }}\n{{- end }}\n";
const ODD_TAILS: &str =
    "a: b: c\n¦\tx: 1\n¦...\n¦a: *x\n¦--- x\n¦---\r\n¦{{ \"---\" }}\n¦dup: 1\ndup: 2\n¦%YAML 1.2\n";
/// Nearly empty files.
const BARE: &str = "¦\n¦  \n¦# only\n¦---\n¦---\n---\n¦{{ if false }}x{{ end }}¦null\n¦{}\n¦a: 1\r\nb: 2\r\n¦\u{feff}a: 1\n¦\
    {\"kind\": \"Job\", \"a\": 1}\n¦{{ define \"x\" }}a{{ end }}\n¦{{- /* c */ -}}\n¦---\n# c\n¦a: é\n¦\
    {{ block \"blk\" . }}k: {{ .Chart.Name }}{{ end }}\n";
const ODD_BARE: &str = "text\n¦- a\n¦[]\n¦\"a\"\n¦1\n¦true\n¦{{ .Values¦{{ nope }}¦{{ end }}¦kind: A\n---\nkind: [\n¦\
    a: {{ template \"nope\" . }}\n¦a: {{ include \"nope\" . }}\n¦a: {{ .Values.a.b.c.d }}\n¦kind: X\n...\nkind: Y\n";

pub(super) fn file(maker: &mut Maker<'_>) -> String {
    if maker.rare(10) {
        return maker.of_or(2, BARE, ODD_BARE).to_owned();
    }
    let mut text = String::new();
    for number in 0..[1, 1, 1, 2, 3][maker.below(5)] {
        if number > 0 || maker.rare(4) {
            text += maker.of_or(6, BREAKS, ODD_BREAKS);
        }
        document(maker, number, &mut text);
    }
    if maker.rare(12) {
        text += maker.of_or(6, BREAKS, ODD_BREAKS);
    }
    if maker.rare(15) {
        let name = maker.of("shared¦own¦z");
        text += &format!(
            "{{{{ define \"{name}\" }}}}in {{{{ .Chart.Name }}}} {{{{ .Template.Name }}}}{{{{ end }}}}"
        );
    }
    if maker.rare(30) {
        text = text.replace('\n', "\r\n");
    }
    if maker.rare(40) {
        text.insert(0, '\u{feff}');
    }
    if maker.rare(30) {
        text.truncate(text.trim_end_matches('\n').len());
    }
    text
}

fn document(maker: &mut Maker<'_>, number: usize, text: &mut String) {
    if maker.rare(6) {
        *text += "# comment\n";
    }
    if !maker.odd(20) {
        *text += &format!("apiVersion: {}\n", maker.of_or(10, "v1¦apps/v1", "1¦null¦[]"));
    }
    let kind = maker.of(KINDS);
    *text += &match maker.odd(20) {
        false => format!("kind: {kind}\n"),
        true => maker
            .of("kind: 1\n¦kind: null\n¦kind: [a]\n¦Kind: Secret\n¦kind: {{ .Values.a }}\n¦")
            .to_owned(),
    };
    match maker.odd(20) {
        true => {
            let odd = "metadata:\n¦metadata: text\n¦metadata: []\n¦metadata: {name: 1}\n¦metadata: {annotations: text}\n¦\
                metadata: {annotations: [a]}\n¦metadata: {annotations: null}\n";
            *text += maker.of(odd);
        }
        false => metadata(maker, number, text),
    }
    let count = maker.below(4);
    if count > 0 {
        *text += "data:\n";
    }
    for at in 0..count {
        let quoted = maker.rare(2);
        let seen = match (maker.odd(10), maker.rare(6)) {
            (true, _) => maker.of(ODD).to_owned(),
            (_, true) => maker.of(LOOPS).to_owned(),
            _ => {
                let seen = maker.of(SEEN);
                let is_plain = seen.contains("nindent") || quoted && seen.contains("toJson");
                format!("{seen}{}", if is_plain { "" } else { " | quote" })
            }
        };
        *text += &format!("  k{at}: {{{{ {seen} }}}}\n");
    }
    if maker.rare(10) {
        *text += maker.of_or(6, TAILS, ODD_TAILS);
    }
}

fn metadata(maker: &mut Maker<'_>, number: usize, text: &mut String) {
    let name = maker.of("n¦{{ .Release.Name }}-x¦{{ .Chart.Name }}-");
    *text += &format!("metadata:\n  name: {name}{number}\n");
    if maker.rare(5) {
        *text += &format!("  annotations:\n    \"helm.sh/hook\": {}\n", maker.of(HOOKS));
        if maker.rare(2) {
            *text += &format!("    \"helm.sh/hook-weight\": {}\n", maker.of(WEIGHTS));
        }
        if maker.rare(3) {
            let policy = maker.of("hook-succeeded¦before-hook-creation,hook-failed¦x¦1");
            *text += &format!("    \"helm.sh/hook-delete-policy\": {policy}\n");
        }
    } else if maker.rare(6) {
        let fine = "a: b¦n1: 1¦t: true¦\"helm.sh/resource-policy\": keep¦\"helm.sh/resource-policy\": x¦e:";
        *text += &format!(
            "  annotations:\n    {}\n",
            maker.of_or(4, fine, "l: [a]¦m: {a: b}")
        );
    }
}

/// Generates the templates to include; other charts have the same names.
pub(super) fn partials(maker: &mut Maker<'_>) -> String {
    let which = maker.below(9);
    let mut text = format!(
        "{{{{ define \"shared\" }}}}shared {which} of {{{{ .Chart.Name }}}}{{{{ end }}}}{{{{ define \"own\" }}}}{{{{ .Template.Name }}}}{{{{ end }}}}"
    );
    text += maker.of("¦\n¦junk\n¦{{ fail \"never\" }}");
    if maker.odd(30) {
        text += "{{ define \"shared\" }}again{{ end }}";
    }
    text
}

pub(super) fn notes(maker: &mut Maker<'_>) -> &'static str {
    maker.of_or(
        4,
        "Notes {{ .Chart.Name }}\n¦---\nkind: X\n",
        "{{ fail \"notes\" }}¦{{ include \"shared\" . }}\n",
    )
}
