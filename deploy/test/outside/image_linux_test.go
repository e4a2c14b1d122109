//go:build deploy

package outside_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

// The tests of deploy/Dockerfile and deploy/compose.yaml build the image with buildah in a copy of this machine, with
// this machine's own Go, since no registry is asked for images, and run it as a container runtime would: below its own
// root, which is read-only, as its user. The engines' own images in compose.yaml are only validated.

func TestDockerfileIsLinted(t *testing.T) {
	hadolint := filepath.Join(filepath.Dir(python(t)), "hadolint")
	testkit.Equal(t, "complaints", run(t, hadolint, "../../Dockerfile"), "")
}

// builder makes the image of the first stage: a shell and certificates. Go, its modules and its cache are those of this
// machine.
const builder = `
container=$(buildah from scratch)
root=$(buildah mount $container)
mkdir -p $root/bin $root/etc/ssl/certs $root/root $root/usr/local/go
cp /usr/bin/busybox $root/bin/ 2>/dev/null || cp /bin/busybox $root/bin/
for tool in $($root/bin/busybox --list); do test $tool = busybox || ln -s busybox $root/bin/$tool; done
cp /etc/ssl/certs/ca-certificates.crt $root/etc/ssl/certs/
mkdir -m 1777 $root/tmp
buildah config --env PATH=/usr/local/go/bin:/bin --env HOME=/root --env GOMODCACHE=/gomod --env GOCACHE=/gocache \
	--env GOPROXY=off --env GOFLAGS=-mod=mod --env GOTOOLCHAIN=local $container
buildah commit --quiet $container localhost/builder
buildah rm $container
`

// serveRegistry starts a registry at the address $1, which buildah may use without TLS.
const serveRegistry = `
cat >/etc/containers/registries.conf <<END
[[registry]]
location = "$1"
insecure = true
END
cat >/tmp/registry.yaml <<END
version: 0.1
storage: {filesystem: {rootdirectory: /var/lib/containers/registry}}
http: {addr: "$1"}
END
docker-registry serve /tmp/registry.yaml >/tmp/registry.log 2>&1 </dev/null &
git config --global --add safe.directory /src
`

// pushToRegistry runs deploy/image as the workflow release does, with the builder and the Go of this machine.
const pushToRegistry = `
SOURCE=https://example.org/sources /src/deploy/image 1.0.0 $1/linkstream --quiet --isolation chroot \
	--build-arg BUILDER=localhost/builder --volume $2:/usr/local/go:ro --volume /gomod:/gomod --volume /gocache:/gocache
`

// images is a copy of this machine in which images can be built.
func images(t *testing.T) *machine {
	t.Helper()
	root, err := filepath.Abs(launch.Root())
	testkit.Must(t, err)
	m := startMachine(t, []string{"buildah", "busybox-static", "docker-registry"},
		map[string]string{"/src": root, "/var/lib/containers": t.TempDir(),
			"/gomod": run(t, "go", "env", "GOMODCACHE"), "/gocache": run(t, "go", "env", "GOCACHE")})
	m.Run(t, `mkdir -p /etc/containers && cat >/etc/containers/storage.conf <<END
[storage]
driver = "vfs"
runroot = "/run/containers/storage"
graphroot = "/var/lib/containers/storage"
END
echo '{"default": [{"type": "insecureAcceptAnything"}]}' >/etc/containers/policy.json`)
	m.Run(t, builder)
	return m
}

// startRegistry starts a registry in the copy and returns its address.
func startRegistry(t *testing.T, m *machine) (address string) {
	t.Helper()
	address = testkit.FreeAddress(t)
	m.Run(t, serveRegistry, address)
	testkit.Succeeds(t, func() error {
		res, err := http.Get("http://" + address + "/v2/")
		if err == nil {
			err = res.Body.Close()
		}
		return err
	})
	return address
}

// pushImage builds the image for all architectures, pushes it to a registry and returns its digest.
func pushImage(t *testing.T, m *machine, registry string) (digest string) {
	t.Helper()
	out := m.Run(t, pushToRegistry, registry, run(t, "go", "env", "GOROOT"))
	return regexp.MustCompile(`sha256:[0-9a-f]{64}$`).FindString(out)
}

// pulled are the images of a digest by architecture.
func pulled(t *testing.T, registry, digest string) map[string]config {
	t.Helper()
	type blob struct {
		Digest    string
		MediaType string
		Platform  struct{ OS, Architecture string }
	}
	fetch := func(path string, into any) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+registry+"/v2/linkstream/"+path, nil)
		testkit.Must(t, err)
		req.Header.Set("Accept", "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json")
		res, err := http.DefaultClient.Do(req)
		testkit.Must(t, err)
		defer res.Body.Close()
		testkit.Equal(t, "status of "+path, res.StatusCode, http.StatusOK)
		testkit.Must(t, json.NewDecoder(res.Body).Decode(into))
	}
	var index struct{ Manifests []blob }
	fetch("manifests/"+digest, &index)
	images := map[string]config{}
	for _, m := range index.Manifests {
		var manifest struct{ Config blob }
		fetch("manifests/"+m.Digest, &manifest)
		var image config
		fetch("blobs/"+manifest.Config.Digest, &image)
		images[m.Platform.OS+"/"+m.Platform.Architecture] = image
	}
	return images
}

// config is what an image says of its containers.
type config struct {
	OS, Architecture string
	Config           struct {
		User, WorkingDir, StopSignal string
		Env, Cmd                     []string
		Volumes, ExposedPorts        map[string]any
		Labels                       map[string]string
	}
}

func TestImage(t *testing.T) {
	t.Parallel()
	m := images(t)
	registry := startRegistry(t, m)
	digest := pushImage(t, m, registry)
	all := pulled(t, registry, digest)
	c := all["linux/amd64"]
	t.Run("is pushed for two architectures, with the commit and the version", func(t *testing.T) {
		testkit.Equal(t, "platforms", slices.Sorted(maps.Keys(all)), []string{"linux/amd64", "linux/arm64"})
		commit := strings.TrimSpace(run(t, "git", "-C", launch.Root(), "rev-parse", "HEAD"))
		for platform, image := range all {
			testkit.Equal(t, "platform", image.OS+"/"+image.Architecture, platform)
			for name, want := range map[string]string{"title": "linkstream", "version": "1.0.0", "revision": commit,
				"source": "https://example.org/sources", "licenses": "Apache-2.0"} {
				testkit.Equal(t, name+" of "+platform, image.Config.Labels["org.opencontainers.image."+name], want)
			}
		}
	})
	t.Run("says how it is run", func(t *testing.T) {
		testkit.Equal(t, "user", c.Config.User, "65532:65532")
		testkit.Equal(t, "stop signal", c.Config.StopSignal, "SIGTERM")
		testkit.Equal(t, "command", c.Config.Cmd, []string{"/usr/bin/standalone"})
		if _, data := c.Config.Volumes["/data"]; !data || len(c.Config.Volumes) != 1 {
			t.Errorf("volumes %v", c.Config.Volumes)
		}
		testkit.Equal(t, "ports", slices.Sorted(maps.Keys(c.Config.ExposedPorts)),
			[]string{"8080/tcp", "8081/tcp", "8443/tcp", "9080/tcp"})
	})
	root := m.Run(t, `buildah mount $(buildah from --quiet --arch amd64 $1/linkstream@$2)`, registry, digest)
	root = strings.TrimSpace(root)
	t.Run("has the programs, certificates and time zones, and nothing else", func(t *testing.T) {
		out := m.Run(t, `cd "$1"; find . -type f -printf '%P %m\n' | sort; find . -type d -uid 65532 -printf '%P %m\n'`, root)
		testkit.Equal(t, "files", out, `etc/group 644
etc/passwd 644
etc/ssl/certs/ca-certificates.crt 644
usr/bin/api 755
usr/bin/edge 755
usr/bin/ingest 755
usr/bin/linkstream 755
usr/bin/migrate-to 755
usr/bin/standalone 755
usr/share/zoneinfo.zip 644
data 700
`)
	})
	t.Run("runs what compose.yaml says", func(t *testing.T) { testCompose(t, m, root, c) })
}

// container is what a container of the image sees: its root and its environment.
type container struct {
	m    *machine
	dir  string // of the container in the copy of this machine
	env  []string
	main *exec.Cmd
	log  testkit.Buffer
}

// layOut makes the root of a container: the image, read-only, with new volumes at /data and /backups, and secrets.
const layOut = `
mkdir -p $1 && mount -t tmpfs tmpfs $1 && cd $1
mkdir upper work root data backups secrets
mount -t overlay overlay -o lowerdir=$2,upperdir=upper,workdir=work root
mkdir -p root/run/secrets root/proc root/dev root/backups
touch root/dev/null root/dev/urandom
chown --reference=$2/data data backups && chmod --reference=$2/data data backups
mount -o remount,ro root
mount --bind data root/data
mount --bind backups root/backups
mount --bind secrets root/run/secrets
mount -t proc proc root/proc
mount --bind /dev/null root/dev/null
mount --bind /dev/urandom root/dev/urandom
`

var containers atomic.Int64

// newContainer returns a container that does not run yet, with the image's environment and env, which overrides it.
func newContainer(t *testing.T, m *machine, image string, c config, env []string) *container {
	t.Helper()
	dir := fmt.Sprint("/tmp/container-", containers.Add(1))
	m.Run(t, layOut, dir, image)
	return &container{m: m, dir: dir, env: slices.Concat(c.Config.Env, env)}
}

// command returns a command that runs in the container as the image's user. Its process number is in the file pid of
// the container.
func (c *container) command(t *testing.T, pid string, command ...string) *exec.Cmd {
	t.Helper()
	const enter = `echo $$ >"$1"; root=$2; shift 2; exec /usr/sbin/chroot --userspec=65532:65532 "$root" "$@"`
	env := append([]string{"env", "-i"}, c.env...)
	return c.m.Command(t, slices.Concat(env, []string{"/bin/sh", "-ec", enter, "enter", pid, c.dir + "/root"}, command)...)
}

// start starts the container's program.
func (c *container) start(t *testing.T, command ...string) {
	t.Helper()
	c.main = c.command(t, c.dir+"/pid", command...)
	c.main.Stdout, c.main.Stderr = &c.log, &c.log
	testkit.Must(t, c.main.Start())
	t.Cleanup(func() {
		_, _ = c.m.Try(t, `kill -KILL $(cat "$1")`, c.dir+"/pid")
		_ = c.main.Wait()
		if t.Failed() {
			t.Logf("output of %q:\n%s", command, c.log.String())
		}
	})
}

// exec runs another program in the container.
func (c *container) exec(t *testing.T, command ...string) error {
	t.Helper()
	if out, err := c.command(t, "/dev/null", command...).CombinedOutput(); err != nil {
		return fmt.Errorf("%q: %w: %s", command, err, out)
	}
	return nil
}

// stop ends the container's program as the image says and requires exit code 0.
func (c *container) stop(t *testing.T) {
	t.Helper()
	c.m.Run(t, `kill -TERM $(cat "$1")`, c.dir+"/pid")
	if err := c.main.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, c.log.String())
	}
}

// healthcheck returns the command of the image's HEALTHCHECK, which OCI images do not keep.
func healthcheck(t *testing.T) (command []string) {
	t.Helper()
	content, err := os.ReadFile("../../Dockerfile")
	testkit.Must(t, err)
	found := regexp.MustCompile(`(?m)^HEALTHCHECK .* CMD (\[.*\])$`).FindSubmatch(content)
	if found == nil {
		t.Fatal("the Dockerfile has no HEALTHCHECK")
	}
	testkit.Must(t, json.Unmarshal(found[1], &command))
	return command
}
