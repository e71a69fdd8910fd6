{{- define "weir.version" -}}
{{- .Values.version | default (printf "v%s" .Chart.AppVersion) -}}
{{- end -}}
