//go:build deploy

package outside_test

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// resource is what the tests read of the resources of operators, of the settings, and of network policies.
type resource struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Data map[string]string
	Spec struct {
		Bootstrap struct {
			InitDB struct{ Database, Owner string }
		}
		Kafka struct {
			Listeners []struct {
				Port           int
				TLS            bool
				Authentication struct{ Type string }
			}
		}
		Authentication struct{ Type string }
		Authorization  struct {
			ACLs []struct {
				Resource   struct{ Type, Name, PatternType string }
				Operations []string
			}
		}
		Partitions, Replicas int
		Config               map[string]any
		Configuration        struct{ Users map[string]any }
		PodSelector          selector
	}
}

// testOperators checks what the overlay asks the operators for, and that the programs get what these make of it. No
// operator runs here.
func testOperators(t *testing.T, python string, manifests []byte, objects []object) {
	libs, err := testengines.MavenLibraries(t.Context(), logger(t), "testdata/kubernetes/strimzi/pom.xml")
	testkit.Must(t, err)
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	testkit.Must(t, os.WriteFile(file, manifests, 0o600))
	var resources []resource
	parseManifests(t, python, manifests, &resources)
	of := func(kind string) (found []resource) {
		for _, r := range resources {
			if r.Kind == kind {
				found = append(found, r)
			}
		}
		return found
	}

	t.Run("Strimzi's classes find nothing", func(t *testing.T) {
		out := strings.Fields(string(pipe(t, nil, "java", "-cp", libs+"/*", "testdata/kubernetes/strimzi/Strimzi.java",
			file)))
		want := len(of("Kafka")) + len(of("KafkaNodePool")) + len(of("KafkaTopic")) + len(of("KafkaUser"))
		testkit.Equal(t, "resources", out, []string{strconv.Itoa(want)})
	})
	t.Run("topics are as the programs would create them", func(t *testing.T) {
		cfg, topics := stream.DefaultConfig(), map[string]string{}
		for _, r := range of("KafkaTopic") {
			topics[r.Metadata.Name] = fmt.Sprint(r.Spec.Partitions, r.Spec.Replicas, r.Spec.Config)
		}
		kept := map[string]any{"retention.ms": cfg.Retention.Milliseconds(), "min.insync.replicas": 2}
		testkit.Equal(t, "topics", topics, map[string]string{cfg.Clicks: fmt.Sprint(cfg.Partitions, 3, plain(kept)),
			cfg.Dead:    fmt.Sprint(1, 3, plain(kept)),
			cfg.Changes: fmt.Sprint(1, 3, plain(map[string]any{"cleanup.policy": "compact", "min.insync.replicas": 2}))})
	})
	t.Run("the manual grants the same in Kafka", func(t *testing.T) { testManualGrantsTheSame(t, of("KafkaUser")) })
	settings := of("ConfigMap")[0].Data
	t.Run("the programs know the settings, and reach Kafka by them",
		func(t *testing.T) { testKafkaSettings(t, settings, of) })
	t.Run("certificates of Postgres are checked", func(t *testing.T) { testPostgresSettings(t, settings) })
	t.Run("each secret is one that somebody makes, and has what the programs read",
		func(t *testing.T) { testSecrets(t, objects, settings, of) })
	t.Run("each engine has a network policy", func(t *testing.T) {
		for _, label := range []string{"cnpg.io/cluster=" + of("Cluster")[0].Metadata.Name, "strimzi.io/cluster=" +
			of("Kafka")[0].Metadata.Name,
			"clickhouse.altinity.com/chi=" + of("ClickHouseInstallation")[0].Metadata.Name} {
			key, value, _ := strings.Cut(label, "=")
			if !slices.ContainsFunc(of("NetworkPolicy"),
				func(r resource) bool { return r.Spec.PodSelector.MatchLabels[key] == value }) {
				t.Errorf("none selects %s", label)
			}
		}
		for _, r := range append(append(of("KafkaNodePool"), of("KafkaTopic")...), of("KafkaUser")...) {
			testkit.Equal(t, "cluster of "+r.Metadata.Name, r.Metadata.Labels["strimzi.io/cluster"],
				of("Kafka")[0].Metadata.Name)
		}
	})
}

// plain returns numbers as JSON has them.
func plain(config map[string]any) map[string]any {
	for key, value := range config {
		switch n := value.(type) {
		case int:
			config[key] = float64(n)
		case int64:
			config[key] = float64(n)
		}
	}
	return config
}

func testKafkaSettings(t *testing.T, settings map[string]string, of func(string) []resource) {
	cfg := stream.DefaultConfig()
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	cfg.RegisterFlags(fs)
	for name, value := range settings {
		if !strings.HasPrefix(name, "LINKSTREAM_KAFKA_") {
			continue
		}
		name = strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "LINKSTREAM_KAFKA_")), "_", "-")
		if secret, ok := strings.CutSuffix(name, "-file"); ok {
			name, value = secret, "of the file"
		}
		testkit.Must(t, fs.Set("kafka."+name, value))
	}
	kafka := of("Kafka")[0]
	listener := kafka.Spec.Kafka.Listeners[0]
	testkit.Equal(t, "brokers", cfg.Brokers, fmt.Sprintf("%s-kafka-bootstrap:%d", kafka.Metadata.Name, listener.Port))
	testkit.Equal(t, "TLS", cfg.TLS && listener.TLS, true)
	testkit.Equal(t, "mechanism of the listener", listener.Authentication.Type, cfg.SASL)
	for _, user := range of("KafkaUser") {
		testkit.Equal(t, "mechanism of "+user.Metadata.Name, user.Spec.Authentication.Type, cfg.SASL)
	}
	testkit.Equal(t, "password", cfg.Password, "of the file")
}

// testPostgresSettings parses an address as CloudNativePG makes it, with the variables of the settings.
func testPostgresSettings(t *testing.T, settings map[string]string) {
	authority := testkit.NewAuthority(t)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	testkit.Must(t, os.WriteFile(ca, authority.PEM, 0o600))
	t.Setenv("PGSSLMODE", settings["PGSSLMODE"])
	t.Setenv("PGSSLROOTCERT", ca)
	cfg, err := pgx.ParseConfig("postgresql://linkstream:secret@postgres-rw.linkstream:5432/linkstream")
	testkit.Must(t, err)
	if cfg.TLSConfig == nil || cfg.TLSConfig.InsecureSkipVerify || cfg.TLSConfig.ServerName != "postgres-rw.linkstream" ||
		!cfg.TLSConfig.RootCAs.Equal(authority.Roots) || len(cfg.Fallbacks) > 0 {
		t.Errorf("%+v", cfg.TLSConfig)
	}
}

func testSecrets(t *testing.T, objects []object, settings map[string]string, of func(string) []resource) {
	postgres, kafka := of("Cluster")[0].Metadata.Name, of("Kafka")[0].Metadata.Name
	made := map[string][]string{ // as the operators' manuals say, and kustomization.yaml
		postgres + "-app":          {"uri"},
		postgres + "-ca":           {"ca.crt"},
		kafka + "-cluster-ca-cert": {"ca.crt"},
		"linkstream":               {"clickhouse.dsn", "clickhouse.password"},
	}
	for _, user := range of("KafkaUser") {
		made[user.Metadata.Name] = []string{"password"}
	}
	testkit.Equal(t, "the password of ClickHouse",
		of("ClickHouseInstallation")[0].Spec.Configuration.Users["linkstream/password"],
		any(map[string]any{"valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "linkstream",
			"key": "clickhouse.password"}}}))
	checked := 0
	for _, o := range objects {
		files := map[string]bool{}
		for _, volume := range o.Spec.Template.Spec.Volumes {
			for _, source := range volume.Projected.Sources {
				for _, item := range source.Secret.Items {
					files["/secrets/"+item.Path] = true
					if !slices.Contains(made[source.Secret.Name], item.Key) {
						t.Errorf("%s %s reads %s of the secret %s, which nobody makes", o.Kind, o.Metadata.Name, item.Key,
							source.Secret.Name)
					}
				}
			}
		}
		for _, c := range o.Spec.Template.Spec.Containers {
			checked++
			wanted := []string{settings["LINKSTREAM_KAFKA_TLS_CA"], settings["LINKSTREAM_KAFKA_PASSWORD_FILE"]}
			user := "linkstream-" + c.Name
			if !slices.Contains(c.Env, struct{ Name, Value string }{"LINKSTREAM_KAFKA_USERNAME", user}) || made[user] == nil {
				t.Errorf("%s %s is not the user %s of Kafka", o.Kind, o.Metadata.Name, user)
			}
			for _, variable := range c.Env {
				if strings.HasSuffix(variable.Name, "_FILE") {
					wanted = append(wanted, variable.Value)
				}
				if variable.Name == "LINKSTREAM_POSTGRES_DSN_FILE" {
					wanted = append(wanted, settings["PGSSLROOTCERT"])
				}
			}
			for _, file := range wanted {
				if !files[file] {
					t.Errorf("%s %s has no file %q", o.Kind, o.Metadata.Name, file)
				}
			}
		}
	}
	testkit.Equal(t, "pods", checked, 3)
}

// testManualGrantsTheSame compares the commands of the manual with the users of the overlay.
func testManualGrantsTheSame(t *testing.T, users []resource) {
	page, err := os.ReadFile("../../manual/scale.md")
	testkit.Must(t, err)
	var want, got []string
	acl := regexp.MustCompile(`(?m)^acl (\S+) '(.*)' --(topic|group) (\S+)$`)
	for _, granted := range acl.FindAllStringSubmatch(string(page), -1) {
		got = append(got, strings.Join(granted[1:], " "))
	}
	for _, user := range users {
		for _, acl := range user.Spec.Authorization.ACLs {
			want = append(want, strings.Join([]string{strings.TrimPrefix(user.Metadata.Name, "linkstream-"),
				strings.Join(acl.Operations, " "), acl.Resource.Type, acl.Resource.Name}, " "))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	testkit.Equal(t, "ACLs in the manual", got, want)
}
