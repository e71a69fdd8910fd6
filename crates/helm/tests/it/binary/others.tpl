define "echo" }}{{ . }}{{ end }}{{ ""
.Values.file
len .Values.file
sha256sum .Values.file
.Values.cut | b64enc
.Values | toJson
.Values | toYaml
len .Values.plain
.Values.plain | b64enc
"\xff\xfe" | b64enc
`é` | b64enc
"\u00ff" | b64enc
"\U0010ff80" | b64enc
"\U0010ff80" | toJson
"\U0010ff80" | toYaml
"\U0010ff80" | toYamlPretty
"\U0010ff80x" | len
"\U0010ff80x" | quote
print "\xc3" "\xa9" | toJson
printf "%s%s" "\xe2\x82" "\xac" | quote
eq (print "\xc3" "\xa9") "é"
list "\xc3" "\xa9" | join "" | toJson
cat "\xc3" "\xa9" | toJson
printf "%c" 255
printf "%c" 0x10ffff | len
printf "%q" 0x10ffff
printf "%U" 0x10ff80
printf "%#U" 0x10ff80
fromYaml "a: \"\\U0010FF80\"" | toJson
(fromYaml "a: \"\\U0010FF80\"").a | len
fromJson "{\"a\":\"\\udbff\\udf80\"}" | toJson
(fromJson "{\"a\":\"\\udbff\\udf80\"}").a | b64enc
fromYaml "a: !!binary gIGC" | toJson
fromYaml "a: !!binary gIGCgICAgICA" | toYaml
fromYamlArray "- \xff" | toJson
fromJsonArray "[\"\xff\xfe\"]" | toJson
fromJson "{\"\xff\": 1}" | toJson
fromJson "\xff" | toJson
fromJson "{\"a\": tr\xff" | toJson
b64dec "/w==" | b64enc
b64dec "\xff" | toJson
b32dec "74======" | b32enc
b64dec "w6k=" | upper
htpasswd "\xff:" "x"
untitle "\xffA"
trimAll "\xff" "\xfea\x80"
trimAll "\ufffd" "\xfea\x80" | b64enc
upper "\xff"
regexMatch "\\x{fffd}" "\xff"
urlParse "http://h/%ff?q=\xff" | toJson
urlJoin (dict "scheme" "http" "host" "h" "path" "/\xff") | toJson
dict "\xff" 1 "\xfe" 2 "é" 3 "z" 4 | toJson
dict "\xff" 1 "\xfe" 2 "é" 3 "z" 4
toYamlPretty (dict "a" (b64dec (repeat 40 "/w==" | replace "=" "")))
.AsMap | keys | sortAlpha
typeOf .
typeOf .Values
typeOf .Values.AsMap
kindOf .
dig "m" "a" "none" .Values.AsMap
.Values.Table "m" | toJson
typeOf (.Values.Table "m")
(.Values.Table "m.k").AsMap
.Values.PathValue "m.a"
.Values.PathValue "m.k.l" | toJson
.PathValue "Values.m.a"
(.Table "Values").PathValue "m.a"
(.Table "Values.m").YAML
typeOf (.PathValue "Values")
.Template.YAML
.Template.AsMap
typeOf (deepCopy .Values)
(.Values.Table "empty").AsMap
set . "extra" 1 | typeOf
.Capabilities.Copy.KubeVersion.GitVersion
.Capabilities.Copy.APIVersions.Has "v1"
.Capabilities.KubeVersion.GitVersion
.Capabilities.KubeVersion.String
range .Chart.Maintainers }}{{ .Validate }}{{ end }}{{ ""
.Values.AsMap.YAML
.Release.AsMap
