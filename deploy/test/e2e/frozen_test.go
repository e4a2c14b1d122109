//go:build engines

package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

// frozenFor is how long a program stands still, as on a paused virtual machine.
const frozenFor = 3 * time.Second

// TestFrozen lets programs and ClickHouse stand still while two accounts work on two apis.
func TestFrozen(t *testing.T) {
	t.Parallel()
	c, whole := startCluster(t, trusted), t // programs outlive subtests
	api, there := c.startAnother(t, "api")
	owner := c.owner()
	other, _ := c.another(t, "other")
	other.API = there
	const secret = "open sesame"
	const long = `{"long_url":"https://example.com/"}`
	links := `{"links":[` + strings.Repeat(long+",", 499) + long + `]}`
	owner.Link(t, object{"long_url": "https://example.com/", "custom_alias": "locked", "password": secret})
	prompt := func(what string, most time.Duration, status int, call func() answer) {
		t.Helper()
		var a answer
		if took, busy := testkit.Watch(func() { a = call() }); a.Status != status || took > most && !busy {
			t.Errorf("%s takes %v: %v", what, took, a)
		}
	}
	t.Run("an api in the middle of calls for many links", func(t *testing.T) {
		for round := range 6 {
			many := caller{API: c.api, Token: c.admin(t, "token", "add", c.email)} // with a rate of its own
			var calls sync.WaitGroup
			for n := range 4 {
				key := fmt.Sprintf("%d-%d", round, n)
				calls.Go(func() { // which may fail: its program stands still
					_, _ = many.Try(t, http.MethodPost, "/api/v1/links/bulk", links, "Idempotency-Key", key)
				})
			}
			<-time.After(time.Duration(30+50*round) * time.Millisecond)
			frozen := c.program("api")
			frozen.process.Signal(whole, syscall.SIGSTOP)
			for began, n := time.Now(), 0; time.Since(began) < frozenFor; n++ {
				prompt("shorten of another account", time.Second, http.StatusCreated, func() answer {
					return other.Call(t, http.MethodPost, "/api/v1/shorten", long)
				})
				<-time.After(20 * time.Millisecond) // the rate is limited
				if n%10 == 0 {
					prompt("a password", 2*time.Second, http.StatusSeeOther, func() answer {
						return enter(t, c.edge, "locked", secret, fmt.Sprintf("192.0.%d.%d", round, n%250))
					})
				}
			}
			frozen.process.Signal(whole, syscall.SIGCONT)
			calls.Wait()
		}
	})
	t.Run("an api is killed, and passwords are checked by the other one", func(t *testing.T) {
		api.kill(whole)
		for n := range 5 {
			prompt("a password", 2*time.Second, http.StatusSeeOther, func() answer {
				return enter(t, c.edge, "locked", secret, fmt.Sprint("198.51.100.", n))
			})
		}
	})
	t.Run("changes do not wait for ClickHouse", func(t *testing.T) {
		pid, _ := c.clickhouse.PID()
		testkit.Must(t, syscall.Kill(pid, syscall.SIGSTOP))
		defer func() { testkit.Must(t, syscall.Kill(pid, syscall.SIGCONT)) }()
		changes(t, owner, prompt)
	})
	t.Run("an api starts without ClickHouse", func(t *testing.T) {
		testkit.Must(t, c.clickhouse.Stop())
		defer func() { testkit.Must(t, c.clickhouse.Start(whole.Context())) }()
		if took, busy := testkit.Watch(func() { api.start(whole) }); took > 8*time.Second && !busy {
			t.Errorf("the start takes %v", took)
		}
		said, err := launch.Get(api.ops + "/readyz")
		if testkit.Must(t, err); !strings.Contains(said, "without ClickHouse") {
			t.Errorf("/readyz says %q", said)
		}
		changes(t, caller{API: there, Token: c.token}, prompt)
	})
}

// changes makes changes of a link, which are prompt.
func changes(t *testing.T, c caller, prompt func(string, time.Duration, int, func() answer)) {
	t.Helper()
	hash, _ := c.Link(t, object{"long_url": "https://example.com/"})["hash"].(string)
	path := "/api/v1/links/" + hash
	for _, change := range [][3]string{
		{http.MethodPatch, path, `{"title":"new"}`},
		{http.MethodPost, "/api/v1/links/bulk/edit", `{"links":[{"hash":"` + hash + `"}],"set":{"title":"newer"}}`},
		{http.MethodDelete, path, ""}, {http.MethodPost, path + "/restore", ""}, {http.MethodPost, path + "/restore", ""},
	} {
		prompt(change[0]+" "+change[1], 500*time.Millisecond, http.StatusOK, func() answer {
			return c.Call(t, change[0], change[1], change[2])
		})
	}
}
