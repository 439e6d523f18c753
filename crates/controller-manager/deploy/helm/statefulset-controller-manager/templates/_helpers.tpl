{{- define "statefulset-controller-manager.labels" -}}
app.kubernetes.io/name: {{ .Values.name }}
{{- end }}

{{- define "statefulset-controller-manager.serviceAccountName" -}}
{{ .Values.serviceAccount.name | default .Values.name }}
{{- end }}

{{- define "statefulset-controller-manager.subjects" -}}
subjects:
  - kind: ServiceAccount
    name: {{ include "statefulset-controller-manager.serviceAccountName" . }}
    namespace: {{ .Release.Namespace }}
{{- end }}
