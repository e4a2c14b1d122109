//go:build deploy

package outside_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// The tests of the manifests for Kubernetes build each overlay by kustomize, compare it with the schemas of Kubernetes,
// and search it for what must hold of every pod. There is no cluster: nothing of it runs here.

// The tools, in the versions that are tested. kubernetes-validate brings the schemas, see requirements.txt.
const (
	kustomize   = "sigs.k8s.io/kustomize/kustomize/v5@v5.7.1"
	kubeconform = "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0"
	kubernetes  = "1.37.0" // of Kubernetes
)

// operators are the modules with the definitions of resources that overlays use, and the files with these.
var operators = map[string][]string{
	"github.com/prometheus-operator/prometheus-operator@v0.85.0": {
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
	},
	"github.com/cloudnative-pg/cloudnative-pg@v1.27.0": {"config/crd/bases/postgresql.cnpg.io_clusters.yaml"},
}

// withoutSchema are the kinds whose definitions no registry has. testOperators checks Strimzi's with the operator's own
// classes. The definition of Altinity's ClickHouseInstallation cannot be had; its fields are those of the operator's
// examples.
var withoutSchema = []string{"Kafka", "KafkaNodePool", "KafkaTopic", "KafkaUser", "ClickHouseInstallation"}

// pipe runs a command with an input and returns what it prints.
func pipe(t *testing.T, stdin []byte, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	return []byte(output(t, cmd))
}

// object is what the tests read of a manifest.
type object struct {
	Kind     string
	Metadata struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Data map[string]string
	Spec struct {
		Selector                 json.RawMessage
		Template                 struct{ Spec pod }
		PodSelector              selector
		PolicyTypes              []string
		ScaleTargetRef           struct{ Kind, Name string }
		MinReplicas, MaxReplicas int
		ServiceName              string
		Type                     string
		Ports                    []servicePort
		Ingress                  []struct{ Ports []struct{ Port any } } // a name or a number
	}
}

type servicePort struct {
	Name, TargetPort string
	Port             int
}

type selector struct{ MatchLabels map[string]string }

type pod struct {
	AutomountServiceAccountToken, EnableServiceLinks *bool
	ServiceAccountName                               string
	TerminationGracePeriodSeconds                    int
	SecurityContext                                  struct {
		RunAsNonRoot   bool
		RunAsUser      int
		SeccompProfile struct{ Type string }
	}
	TopologySpreadConstraints []struct {
		TopologyKey   string
		LabelSelector selector
	}
	Containers []podContainer
	Volumes    []struct {
		Name   string
		Secret struct {
			SecretName string
			Items      []struct{ Path string }
		}
		Projected struct {
			Sources []struct {
				Secret struct {
					Name  string
					Items []struct{ Key, Path string }
				}
			}
		}
	}
}

type podContainer struct {
	Name, Image     string
	Command         []string
	Env             []struct{ Name, Value string }
	Ports           []containerPort
	SecurityContext struct {
		AllowPrivilegeEscalation *bool
		ReadOnlyRootFilesystem   bool
		Capabilities             struct{ Drop []string }
	}
	Resources    struct{ Requests, Limits map[string]string }
	VolumeMounts []struct{ Name, MountPath string }
	Lifecycle    struct {
		PreStop struct{ Sleep struct{ Seconds int } }
	}

	StartupProbe, LivenessProbe, ReadinessProbe probe
}

type containerPort struct {
	Name          string
	ContainerPort int
}

type probe struct{ HTTPGet struct{ Path, Port string } }

func TestOverlays(t *testing.T) {
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	bin, err := testengines.GoPrograms(t.Context(), log, kustomize, kubeconform)
	testkit.Must(t, err)
	python := python(t)
	schemas, custom := offlineSchemas(t, python), customSchemas(t, python)
	overlays, err := os.ReadDir("../../kubernetes/overlays")
	testkit.Must(t, err)
	testkit.Equal(t, "overlays", len(overlays), 5)
	for _, overlay := range overlays {
		t.Run(overlay.Name(), func(t *testing.T) {
			manifests := pipe(t, nil, filepath.Join(bin, "kustomize"), "build",
				filepath.Join("../../kubernetes/overlays", overlay.Name()))
			t.Run("kubeconform finds nothing", func(t *testing.T) {
				out := pipe(t, nil, filepath.Join(bin, "kubeconform"), "-strict", "-summary", "-schema-location",
					schemas+"/{{.ResourceKind}}{{.KindSuffix}}.json", "-schema-location", custom+"/{{.ResourceKind}}.json",
					without(t, python, manifests, withoutSchema...))
				if !strings.Contains(string(out), "Invalid: 0, Errors: 0, Skipped: 0") {
					t.Errorf("%s", out)
				}
			})
			var objects []object
			parseManifests(t, python, manifests, &objects)
			t.Run("every pod is restricted, watched and spread", func(t *testing.T) { testPods(t, objects) })
			t.Run("objects refer to others that exist", func(t *testing.T) { testReferences(t, objects) })
			switch overlay.Name() {
			case "standalone":
				t.Run("a backup can be restored", func(t *testing.T) {
					testRestore(t, python, filepath.Join(bin, "kubeconform"), schemas, objects)
				})
			case "https":
				t.Run("edges serve HTTPS", func(t *testing.T) { testHTTPS(t, objects) })
			case "operators":
				testOperators(t, python, manifests, objects)
			}
		})
	}
}

// testRestore requires that the pod of restore.yaml is as the one of the StatefulSet, on its volumes.
func testRestore(t *testing.T, python, kubeconform, schemas string, objects []object) {
	const file = "../../kubernetes/restore.yaml"
	pipe(t, nil, kubeconform, "-strict", "-schema-location", schemas+"/{{.ResourceKind}}{{.KindSuffix}}.json", file)
	content, err := os.ReadFile(file)
	testkit.Must(t, err)
	var pods []struct {
		Kind     string
		Metadata struct{ Namespace string }
		Spec     struct {
			pod
			Volumes []struct {
				Name                  string
				PersistentVolumeClaim struct{ ClaimName string }
			}
		}
	}
	parseManifests(t, python, content, &pods)
	restore, serving := pods[0], named(objects, "StatefulSet", "standalone").Spec.Template.Spec
	testkit.Equal(t, "kind", restore.Kind, "Pod")
	testkit.Equal(t, "namespace", restore.Metadata.Namespace, "linkstream")
	testkit.Equal(t, "account", restore.Spec.ServiceAccountName, serving.ServiceAccountName)
	testkit.Equal(t, "security of the pod", restore.Spec.SecurityContext, serving.SecurityContext)
	testkit.Equal(t, "security of the container", restore.Spec.Containers[0].SecurityContext,
		serving.Containers[0].SecurityContext)
	testkit.Equal(t, "image", restore.Spec.Containers[0].Image, serving.Containers[0].Image)
	testkit.Equal(t, "mounts", restore.Spec.Containers[0].VolumeMounts, serving.Containers[0].VolumeMounts)
	for _, v := range restore.Spec.Volumes {
		testkit.Equal(t, "claim of "+v.Name, v.PersistentVolumeClaim.ClaimName, v.Name+"-standalone-0")
	}
}

// without returns a file with the manifests of other kinds.
func without(t *testing.T, python string, manifests []byte, kinds ...string) string {
	t.Helper()
	const others = "import sys, yaml; yaml.safe_dump_all([o for o in yaml.safe_load_all(sys.stdin) if o['kind'] not in " +
		"sys.argv[1:]], sys.stdout)"
	file := filepath.Join(t.TempDir(), "others.yaml")
	testkit.Must(t, os.WriteFile(file, pipe(t, manifests, python, append([]string{"-c", others}, kinds...)...), 0o600))
	return file
}

// parseManifests reads manifests.
func parseManifests(t *testing.T, python string, manifests []byte, objects any) {
	t.Helper()
	const toJSON = "import json, sys, yaml; json.dump([o for o in yaml.safe_load_all(sys.stdin)], sys.stdout)"
	testkit.Must(t, json.Unmarshal(pipe(t, manifests, python, "-c", toJSON), objects))
}

// offlineSchemas returns a folder with the schemas of kubernetes-validate. They refer to each other by URLs of
// kubernetes.io, and here by file names.
func offlineSchemas(t *testing.T, python string) (dir string) {
	t.Helper()
	found,
		err := filepath.Glob(filepath.Join(filepath.Dir(python),
		"../lib/python*/site-packages/kubernetes_validate/kubernetes-json-schema", "v"+kubernetes+"-local-strict", "*.json"))
	testkit.Must(t, err)
	if len(found) == 0 {
		t.Fatal("there are no schemas")
	}
	dir = t.TempDir()
	for _, file := range found {
		content, err := os.ReadFile(file)
		testkit.Must(t, err)
		local := strings.NewReplacer("/api/_definitions.json", "_definitions.json", `"$id":`,
			`"origin":`).Replace(string(content))
		testkit.Must(t, os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(local), 0o600))
	}
	return dir
}

// customSchemas returns a folder with the schemas of the operators' resources.
func customSchemas(t *testing.T, python string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for module, files := range operators {
		var downloaded struct{ Dir string }
		testkit.Must(t, json.Unmarshal(pipe(t, nil, "go", "mod", "download", "-modcacherw", "-json", module), &downloaded))
		for _, file := range files {
			pipe(t, nil, python, "testdata/kubernetes/crd_schemas.py", dir, filepath.Join(downloaded.Dir, file))
		}
	}
	return dir
}

// TestWatchedAlerts requires that Kubernetes gets the alerts that are tested.
func TestWatchedAlerts(t *testing.T) {
	tested, err := os.ReadFile("../../prometheus/alerts.yaml")
	testkit.Must(t, err)
	rule, err := os.ReadFile("../../kubernetes/overlays/watch/alerts.yaml")
	testkit.Must(t, err)
	_, groups, _ := strings.Cut(string(tested), "\ngroups:\n")
	_, spec, _ := strings.Cut(string(rule), "\nspec:\n  groups:\n")
	var indented strings.Builder
	for line := range strings.Lines(groups) {
		if strings.TrimSpace(line) != "" {
			line = "  " + line
		}
		indented.WriteString(line)
	}
	testkit.Equal(t, "groups", spec, indented.String())
}

// named returns the object of a kind and name, nil if there is none.
func named(objects []object, kind, name string) *object {
	i := slices.IndexFunc(objects, func(o object) bool { return o.Kind == kind && o.Metadata.Name == name })
	if i < 0 {
		return nil
	}
	return &objects[i]
}

func isFalse(b *bool) bool { return b != nil && !*b }

func testPods(t *testing.T, objects []object) {
	checked := 0
	for _, o := range objects {
		if o.Kind != "Deployment" && o.Kind != "StatefulSet" {
			continue
		}
		checked++
		spec := o.Spec.Template.Spec
		for what, holds := range map[string]bool{
			"no token": isFalse(spec.AutomountServiceAccountToken), "no variables of services": isFalse(spec.EnableServiceLinks),
			"its account": spec.ServiceAccountName == "linkstream", "the image's user": spec.SecurityContext.RunAsNonRoot &&
				spec.SecurityContext.RunAsUser == 65532,
			"seccomp":       spec.SecurityContext.SeccompProfile.Type == "RuntimeDefault",
			"time to stop":  spec.TerminationGracePeriodSeconds == 60,
			"one container": len(spec.Containers) == 1, "its namespace": o.Metadata.Namespace == "linkstream",
			"spread": len(spec.TopologySpreadConstraints) == 2,
		} {
			if !holds {
				t.Errorf("%s %s lacks %s", o.Kind, o.Metadata.Name, what)
			}
		}
		for _, c := range spec.TopologySpreadConstraints {
			testkit.Equal(t, "pods that are spread", c.LabelSelector.MatchLabels["app.kubernetes.io/name"], o.Metadata.Name)
		}
		c := spec.Containers[0]
		public := c.Name == "edge" || c.Name == "standalone"
		ready := probe{}
		ready.HTTPGet.Path, ready.HTTPGet.Port = "/readyz", "ops"
		if public { // an edge that lacks an engine goes on to serve
			ready.HTTPGet.Path, ready.HTTPGet.Port = "/healthz", "edge"
		}
		afterwards := 0 // seconds that a pod goes on to serve when its service leads to others
		if c.Name == "edge" || c.Name == "api" {
			afterwards = 10
		}
		testkit.Equal(t, "seconds before "+c.Name+" stops", c.Lifecycle.PreStop.Sleep.Seconds, afterwards)
		for what, holds := range map[string]bool{
			"a version":        strings.Contains(c.Image, "linkstream:") && !strings.HasSuffix(c.Image, ":latest"),
			"a read-only root": c.SecurityContext.ReadOnlyRootFilesystem,
			"no escalation":    isFalse(c.SecurityContext.AllowPrivilegeEscalation),
			"no capabilities":  slices.Equal(c.SecurityContext.Capabilities.Drop, []string{"ALL"}),
			"requests":         c.Resources.Requests["cpu"] != "" && c.Resources.Requests["memory"] != "",
			"a limit":          c.Resources.Limits["memory"] != "",
			"liveness":         c.LivenessProbe.HTTPGet.Path == "/healthz" && c.LivenessProbe.HTTPGet.Port == "ops",
			"a startup":        c.StartupProbe.HTTPGet.Path == "/healthz", "readiness": c.ReadinessProbe == ready,
		} {
			if !holds {
				t.Errorf("the container %s lacks %s", c.Name, what)
			}
		}
		for _, variable := range c.Env {
			if strings.Contains(variable.Name, "DSN") && !strings.HasPrefix(variable.Value, "/secrets/") {
				t.Errorf("%s is not a file", variable.Name)
			}
			if public && variable.Name == "LINKSTREAM_OPS_PUBLIC" && variable.Value != "true" {
				t.Error("the edge does not answer /healthz")
			}
		}
	}
	if checked == 0 {
		t.Error("there are no pods")
	}
	settings := named(objects, "ConfigMap", "linkstream").Data
	for _, variable := range []string{"LINKSTREAM_EDGE_TRUSTED_PROXIES", "LINKSTREAM_API_TRUSTED_PROXIES"} {
		if _, ok := settings[variable]; !ok {
			t.Errorf("the settings do not show %s", variable)
		}
	}
}

// testHTTPS requires that port 443 leads to the edges, which have what they need to serve it.
func testHTTPS(t *testing.T, objects []object) {
	service, edge := named(objects, "Service", "edge"), named(objects, "StatefulSet", "edge")
	testkit.Equal(t, "type of the service", service.Spec.Type, "LoadBalancer")
	for _, want := range []servicePort{{"edge", "edge", 80}, {"edge-tls", "edge-tls", 443}} {
		if !slices.Contains(service.Spec.Ports, want) {
			t.Errorf("the service has %v, not %v", service.Spec.Ports, want)
		}
	}
	spec := edge.Spec.Template.Spec
	if ports := spec.Containers[0].Ports; !slices.Contains(ports, containerPort{"edge-tls", 8443}) ||
		!slices.Contains(ports, containerPort{"edge", 8080}) {
		t.Errorf("the container has the ports %v", ports)
	}
	var files []string
	for _, item := range spec.Volumes[0].Secret.Items {
		files = append(files, "/secrets/"+item.Path)
	}
	for _, variable := range []string{"LINKSTREAM_EDGE_ACME_KEY_FILE", "LINKSTREAM_POSTGRES_DSN_FILE"} {
		i := slices.IndexFunc(spec.Containers[0].Env, func(v struct{ Name, Value string }) bool { return v.Name == variable })
		if i < 0 || !slices.Contains(files, spec.Containers[0].Env[i].Value) {
			t.Errorf("%s is not one of the files %q", variable, files)
		}
	}
	settings := named(objects, "ConfigMap", "linkstream").Data
	if settings["LINKSTREAM_EDGE_TLS_LISTEN"] != ":8443" || settings["LINKSTREAM_EDGE_ACME_EMAIL"] == "" ||
		settings["LINKSTREAM_KAFKA_BROKERS"] == "" {
		t.Errorf("settings %v", settings)
	}
	var open []string
	for _, rule := range named(objects, "NetworkPolicy", "edge").Spec.Ingress {
		for _, port := range rule.Ports {
			open = append(open, fmt.Sprint(port.Port))
		}
	}
	testkit.Equal(t, "open ports", open, []string{"edge", "edge-tls"})
}

func testReferences(t *testing.T, objects []object) {
	workload := func(name string) *object {
		for _, kind := range []string{"Deployment", "StatefulSet"} {
			if o := named(objects, kind, name); o != nil {
				return o
			}
		}
		return nil
	}
	if ns := named(objects, "Namespace", "linkstream"); ns == nil ||
		ns.Metadata.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Error("the namespace does not enforce restricted pods")
	}
	if deny := named(objects, "NetworkPolicy", "deny"); deny == nil || len(deny.Spec.PolicyTypes) != 2 ||
		len(deny.Spec.PodSelector.MatchLabels) > 0 {
		t.Error("the network is open by default")
	}
	for _, o := range objects {
		switch o.Kind {
		case "Service":
			var labels map[string]string
			testkit.Must(t, json.Unmarshal(o.Spec.Selector, &labels))
			w := workload(labels["app.kubernetes.io/name"])
			if w == nil {
				t.Errorf("the service %s has no pods", o.Metadata.Name)
				continue
			}
			for _, port := range o.Spec.Ports {
				if !slices.ContainsFunc(w.Spec.Template.Spec.Containers[0].Ports,
					func(p containerPort) bool { return p.Name == port.TargetPort }) {
					t.Errorf("the service %s has the port %s, which no pod has", o.Metadata.Name, port.TargetPort)
				}
			}
		case "PodDisruptionBudget":
			var s selector
			testkit.Must(t, json.Unmarshal(o.Spec.Selector, &s))
			if workload(s.MatchLabels["app.kubernetes.io/name"]) == nil {
				t.Errorf("the budget %s has no pods", o.Metadata.Name)
			}
		case "HorizontalPodAutoscaler":
			if named(objects, o.Spec.ScaleTargetRef.Kind, o.Spec.ScaleTargetRef.Name) == nil || o.Spec.MinReplicas < 2 {
				t.Errorf("the autoscaler %s scales %v", o.Metadata.Name, o.Spec.ScaleTargetRef)
			}
			if most := stream.DefaultConfig().Partitions; o.Metadata.Name == "ingest" && o.Spec.MaxReplicas != most {
				t.Errorf("%d workers share %d partitions", o.Spec.MaxReplicas, most)
			}
		case "StatefulSet":
			if named(objects, "Service", o.Spec.ServiceName) == nil {
				t.Errorf("%s has no service %s", o.Metadata.Name, o.Spec.ServiceName)
			}
			fallthrough
		case "Deployment":
			if named(objects, "NetworkPolicy", o.Metadata.Name) == nil {
				t.Errorf("%s has no network policy", o.Metadata.Name)
			}
			for _, v := range o.Spec.Template.Spec.Volumes {
				if len(v.Projected.Sources) > 0 { // see testOperators
					continue
				}
				if v.Secret.SecretName != "linkstream" {
					t.Errorf("%s uses the secret %q", o.Metadata.Name, v.Secret.SecretName)
				}
			}
		}
	}
}
