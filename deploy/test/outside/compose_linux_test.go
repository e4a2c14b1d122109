//go:build deploy

package outside_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema/testkit"
)

const (
	composeFile = "../../compose.yaml"
	httpsFile   = "../../compose.https.yaml"

	// specification has the JSON schema of compose files, as docker compose itself uses it.
	specification = "github.com/compose-spec/compose-go/v2@v2.9.1"
)

// composition is what the tests read of compose.yaml.
type composition struct {
	Services map[string]composeService
	Secrets  map[string]struct{ File string }
	Configs  map[string]struct{ File string }
	Volumes  map[string]any
}

type composeService struct {
	Image, User, Restart, Pid string
	Profiles, Command         []string
	Environment               map[string]string
	Volumes, Ports, Secrets   []string
	Configs                   []struct{ Source, Target string }
	Privileged                bool
	Deploy                    struct{ Replicas int }
	CapAdd                    []string                              `json:"cap_add"`
	CapDrop                   []string                              `json:"cap_drop"`
	SecurityOpt               []string                              `json:"security_opt"`
	ReadOnly                  bool                                  `json:"read_only"`
	MemLimit                  string                                `json:"mem_limit"`
	PidsLimit                 int                                   `json:"pids_limit"`
	StopGracePeriod           string                                `json:"stop_grace_period"`
	NetworkMode               string                                `json:"network_mode"`
	DependsOn                 map[string]struct{ Condition string } `json:"depends_on"`
	Healthcheck               struct {
		Test    []string
		Timeout string
		Retries int
	}
	Logging struct{ Options map[string]string }
}

// required are the variables that compose.https.yaml does not have defaults of.
var required = map[string]string{"LINKSTREAM_EDGE_URL": "https://sho.example.org",
	"LINKSTREAM_EDGE_ACME_EMAIL": "you@example.org"}

// readCompose checks a file against the specification and returns it with the variables' defaults, or what is required.
func readCompose(t *testing.T, path string) composition {
	t.Helper()
	var module struct{ Dir string }
	testkit.Must(t, json.Unmarshal([]byte(run(t, "go", "mod", "download", "-modcacherw", "-json", specification)),
		&module))
	const load = `
import json, re, sys, jsonschema, yaml
required = json.loads(sys.argv[3])
text = open(sys.argv[1]).read()
for _ in range(2): # defaults have variables with defaults
    text = re.sub(r'\$\{\w+:-([^${}]*)\}', r'\1', text)
text = re.sub(r'\$\{(\w+):\?[^}]*\}', lambda m: required[m.group(1)], text)
file = yaml.safe_load(text)
jsonschema.validate(file, json.load(open(sys.argv[2])))
json.dump(file, sys.stdout)
`
	values, err := json.Marshal(required)
	testkit.Must(t, err)
	out := run(t, python(t), "-c", load, path, filepath.Join(module.Dir, "schema/compose-spec.json"), string(values))
	var c composition
	testkit.Must(t, json.Unmarshal([]byte(out), &c))
	return c
}

func TestCompose(t *testing.T) {
	c, https := readCompose(t, composeFile), readCompose(t, httpsFile)
	t.Run("adds HTTPS to every edge", func(t *testing.T) { testComposeHTTPS(t, c, https) })
	t.Run("has its profiles", func(t *testing.T) {
		instances := map[string]int{}
		for name, s := range c.Services {
			if len(s.Profiles) != 1 {
				t.Errorf("%s is in the profiles %q", name, s.Profiles)
			}
			role, _, _ := strings.Cut(name, "-")
			instances[s.Profiles[0]+" "+role] += max(s.Deploy.Replicas, 1)
		}
		testkit.Equal(t, "containers", instances, map[string]int{"standalone standalone": 1, "cluster edge": 2,
			"cluster ingest": 2,
			"cluster api":    2, "cluster postgres": 1, "cluster kafka": 1, "cluster clickhouse": 1,
			"watch prometheus": 1, "watch grafana": 1})
		defaults, err := os.ReadFile("../../.env")
		testkit.Must(t, err)
		if !strings.Contains(string(defaults), "\nCOMPOSE_PROFILES=standalone\n") {
			t.Error("standalone is not the default")
		}
	})
	pinned := regexp.MustCompile(`^\S+:v?[0-9]+(\.[0-9]+)+(-\w+)?$`)
	data := map[string]string{}
	for name, s := range c.Services {
		t.Run(name+" is hardened", func(t *testing.T) {
			testkit.Equal(t, "capabilities", s.CapDrop, []string{"ALL"})
			testkit.Equal(t, "options", s.SecurityOpt, []string{"no-new-privileges:true"})
			testkit.Equal(t, "more capabilities", len(s.CapAdd), 0)
			for what, holds := range map[string]bool{
				"privileges": !s.Privileged && s.NetworkMode == "" && s.Pid == "", "a user": s.User != "" && s.User != "0:0",
				"a version": pinned.MatchString(s.Image), "a limit of memory": s.MemLimit != "",
				"a limit of processes": s.PidsLimit > 0,
				"logs that rotate":     s.Logging.Options["max-size"] != "" && s.Logging.Options["max-file"] != "",
				"a restart":            s.Restart == "unless-stopped", "time to stop": s.StopGracePeriod == "1m",
				"a health check": len(s.Healthcheck.Test) > 1 && s.Healthcheck.Test[0] == "CMD" && s.Healthcheck.Retries > 0 &&
					s.Healthcheck.Timeout != "",
				"a read-only root": s.ReadOnly || name == "kafka" || name == "clickhouse", // their images write their configuration
			} {
				if !holds {
					t.Errorf("%s: not as it should be: %s", name, what)
				}
			}
			for variable, value := range s.Environment {
				if secret := regexp.MustCompile(`PASSWORD|DSN|TOKEN|SECRET`).MatchString(variable); secret &&
					!strings.HasPrefix(value, "/run/secrets/") {
					t.Errorf("%s is not a file of a secret: %s", variable, value)
				}
			}
			for _, port := range s.Ports {
				if !strings.HasPrefix(port, "127.0.0.1:") {
					t.Errorf("port %s is open to everyone by default", port)
				}
			}
			for engine, d := range s.DependsOn {
				if d.Condition != "service_healthy" || c.Services[engine].Image == "" {
					t.Errorf("depends on %s, %q", engine, d.Condition)
				}
			}
			for _, v := range s.Volumes {
				volume, _, _ := strings.Cut(v, ":")
				if other := data[volume]; other != "" {
					t.Errorf("shares the volume %s with %s", volume, other)
				}
				data[volume] = name
				if _, declared := c.Volumes[volume]; !declared {
					t.Errorf("the volume %s is not declared", volume)
				}
			}
		})
	}
	t.Run("proxies in front of the edge and the api can be named", func(t *testing.T) {
		for name, s := range c.Services {
			role, _, _ := strings.Cut(name, "-")
			for variable, roles := range map[string][]string{"LINKSTREAM_EDGE_TRUSTED_PROXIES": {"standalone", "edge"},
				"LINKSTREAM_API_TRUSTED_PROXIES": {"standalone", "api"}} {
				_, named := s.Environment[variable]
				testkit.Equal(t, name+" has "+variable, named, slices.Contains(roles, role))
			}
		}
	})
	t.Run("its files exist, and Prometheus scrapes its containers", func(t *testing.T) {
		for name, s := range c.Services {
			for _, file := range s.Configs {
				if _, err := os.Stat(filepath.Join("../..", c.Configs[file.Source].File)); err != nil || file.Target == "" {
					t.Errorf("%s has no %s: %v", name, file.Source, err)
				}
			}
		}
		scraped, err := os.ReadFile("../../prometheus/prometheus.yaml")
		testkit.Must(t, err)
		names := regexp.MustCompile(`[ \[](standalone|edge-\d|ingest|api-\d)[,\]]`).FindAllStringSubmatch(string(scraped), -1)
		var found, programs []string
		for _, name := range names {
			found = append(found, name[1])
		}
		for name, s := range c.Services {
			if strings.HasPrefix(s.Image, "linkstream:") {
				programs = append(programs, name)
			}
		}
		slices.Sort(found)
		slices.Sort(programs)
		testkit.Equal(t, "programs that are scraped", found, programs)
	})
	t.Run("its secrets are made once", func(t *testing.T) {
		dir := t.TempDir()
		script, err := os.ReadFile("../../compose-secrets")
		testkit.Must(t, err)
		path := filepath.Join(dir, "compose-secrets")
		testkit.Must(t, os.WriteFile(path, script, 0o700))
		read := func() (all string) {
			run(t, path)
			secrets := maps.Clone(https.Secrets)
			maps.Copy(secrets, c.Secrets)
			for name, s := range secrets {
				content, err := os.ReadFile(filepath.Join(dir, s.File))
				testkit.Must(t, err)
				if len(content) < 40 {
					t.Errorf("%s is %q", name, content)
				}
			}
			return run(t, "sh", "-c", `cd "$0" && stat -c '%a' . && sha256sum *`, filepath.Join(dir, "secrets"))
		}
		first := read()
		testkit.Equal(t, "secrets", read(), first)
		testkit.Equal(t, "mode of the folder", first[:3], "700")
	})
}

func testComposeHTTPS(t *testing.T, base, https composition) {
	published := map[string]bool{}
	for name, s := range base.Services {
		_, secured := https.Services[name]
		testkit.Equal(t, name+" serves HTTPS", secured, strings.HasPrefix(name, "edge-") || name == "standalone")
		for _, port := range s.Ports {
			published[s.Profiles[0]+port[:strings.LastIndex(port, ":")]] = true
		}
	}
	for name, s := range https.Services {
		testkit.Equal(t, "settings of "+name, s.Environment, map[string]string{"LINKSTREAM_EDGE_TLS_LISTEN": ":8443",
			"LINKSTREAM_EDGE_URL":            required["LINKSTREAM_EDGE_URL"],
			"LINKSTREAM_EDGE_ACME_EMAIL":     required["LINKSTREAM_EDGE_ACME_EMAIL"],
			"LINKSTREAM_EDGE_ACME_DIRECTORY": "https://acme-v02.api.letsencrypt.org/directory",
			"LINKSTREAM_EDGE_ACME_KEY_FILE":  "/run/secrets/acme_key"})
		testkit.Equal(t, "secrets of "+name, s.Secrets, []string{"acme_key"})
		secure := ""
		for _, port := range s.Ports {
			at := base.Services[name].Profiles[0] + port[:strings.LastIndex(port, ":")]
			if published[at] || !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s publishes %s, which is taken or open to everyone by default", name, port)
			}
			published[at] = true
			if strings.HasSuffix(port, ":8443") {
				secure = port
			}
		}
		want := "127.0.0.1:443:8443"
		if name == "edge-2" {
			want = "127.0.0.1:8443:8443"
		}
		testkit.Equal(t, "HTTPS of "+name, secure, want)
	}
}

// testCompose runs the programs of both profiles with their commands and environments. Only addresses differ: the
// containers of a test share this machine's network, and the engines are those of the tests.
func testCompose(t *testing.T, m *machine, image string, cfg config) {
	compose, https := readCompose(t, composeFile), readCompose(t, httpsFile)
	secrets := map[string]string{"postgres_dsn": engines.Postgres(t), "clickhouse_dsn": engines.ClickHouse(t),
		"acme_key": strings.Repeat("k", 32)}
	brokers, topics := engines.Kafka(t), enginetest.Name()
	check := healthcheck(t)
	for _, name := range []string{"standalone", "edge-1", "edge-2", "ingest", "api-1", "api-2"} {
		t.Run(name, func(t *testing.T) {
			s := compose.Services[name]
			environment, secure := maps.Clone(s.Environment), testkit.FreeAddress(t)
			if more, ok := https.Services[name]; ok {
				maps.Copy(environment, more.Environment)
				environment["LINKSTREAM_EDGE_TLS_LISTEN"] = secure
				environment["LINKSTREAM_EDGE_ACME_DIRECTORY"] = "https://127.0.0.1:1/" // nobody is asked for certificates
				s.Secrets = append(s.Secrets, more.Secrets...)
			}
			var env []string
			for variable, value := range environment {
				env = append(env, variable+"="+strings.ReplaceAll(value, "kafka:9092", brokers))
			}
			slices.Sort(env)
			env = append(env, "LINKSTREAM_EDGE_LISTEN="+testkit.FreeAddress(t), "LINKSTREAM_API_LISTEN="+testkit.FreeAddress(t),
				"LINKSTREAM_OPS_LISTEN="+testkit.FreeAddress(t))
			if name != "standalone" {
				env = append(env, "LINKSTREAM_KAFKA_CLICKS_TOPIC="+topics+".clicks", "LINKSTREAM_KAFKA_DEAD_TOPIC="+topics+".dead",
					"LINKSTREAM_KAFKA_CHANGES_TOPIC="+topics+".changes", "LINKSTREAM_KAFKA_GROUP="+topics)
			}
			c := newContainer(t, m, image, cfg, env)
			for _, secret := range s.Secrets {
				m.Run(t, `umask 0333; printf '%s\n' "$2" >"$1"`, fmt.Sprintf("%s/secrets/%s", c.dir, secret), secrets[secret])
			}
			if c.exec(t, check...) == nil {
				t.Error("healthy before the start")
			}
			c.start(t, s.Command...)
			testkit.SucceedsWithin(t, 2*testkit.Patience, func() error { return c.exec(t, s.Healthcheck.Test[1:]...) })
			testkit.Must(t, c.exec(t, check...))
			if _, ok := https.Services[name]; ok {
				_, err := tls.Dial("tcp", secure, &tls.Config{ServerName: "unknown.example.org"})
				if err == nil || !strings.Contains(err.Error(), "unrecognized name") {
					t.Errorf("by HTTPS: %v", err)
				}
			}
			if name == "standalone" {
				m.Run(t, `test -s "$1/root/data/links.db"; ! touch "$1/root/x"`, c.dir)
				testkit.Must(t, c.exec(t, "/usr/bin/standalone", "backup", "/backups/2026-11-22"))
			}
			c.stop(t)
			if c.exec(t, check...) == nil {
				t.Error("healthy after the end")
			}
			if name == "standalone" {
				testkit.Must(t, c.exec(t, "/usr/bin/standalone", "restore", "/backups/2026-11-22", "--replace"))
				testkit.Must(t, c.exec(t, "/usr/bin/standalone", "verify"))
			}
		})
	}
}
