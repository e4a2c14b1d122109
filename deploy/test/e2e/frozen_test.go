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
	entries := 0 // each from an address of its own
	password := func(within testkit.Within) {
		entries++
		prompt(t, within, "a password", 2*time.Second, http.StatusSeeOther, func() answer {
			return enter(t, c.edge, "locked", secret, fmt.Sprintf("198.18.%d.%d", entries/250, entries%250))
		})
	}
	t.Run("an api in the middle of calls for many links", func(t *testing.T) {
		for round := range 6 {
			testkit.Promptly(t, func(within testkit.Within) {
				many := caller{API: c.api, Token: c.admin(t, "token", "add", c.email)} // with a rate of its own
				var calls sync.WaitGroup
				for n := range 4 {
					key := fmt.Sprintf("%d-%d-%d", round, n, entries)
					calls.Go(func() { // which may fail: its program stands still
						_, _ = many.Try(t, http.MethodPost, "/api/v1/links/bulk", links, "Idempotency-Key", key)
					})
				}
				<-time.After(time.Duration(30+50*round) * time.Millisecond)
				frozen := c.program("api")
				frozen.process.Signal(whole, syscall.SIGSTOP)
				for began, n := time.Now(), 0; time.Since(began) < frozenFor; n++ {
					prompt(t, within, "shorten of another account", time.Second, http.StatusCreated, func() answer {
						return other.Call(t, http.MethodPost, "/api/v1/shorten", long)
					})
					<-time.After(20 * time.Millisecond) // the rate is limited
					if n%10 == 0 {
						password(within)
					}
				}
				frozen.process.Signal(whole, syscall.SIGCONT)
				calls.Wait()
			})
		}
	})
	t.Run("an api is killed, and passwords are checked by the other one", func(t *testing.T) {
		api.kill(whole)
		testkit.Promptly(t, func(within testkit.Within) {
			for range 5 {
				password(within)
			}
		})
	})
	t.Run("changes do not wait for ClickHouse", func(t *testing.T) {
		pid, _ := c.clickhouse.PID()
		testkit.Must(t, syscall.Kill(pid, syscall.SIGSTOP))
		defer func() { testkit.Must(t, syscall.Kill(pid, syscall.SIGCONT)) }()
		changes(t, owner)
	})
	t.Run("an api starts without ClickHouse", func(t *testing.T) {
		testkit.Must(t, c.clickhouse.Stop())
		defer func() { testkit.Must(t, c.clickhouse.Start(whole.Context())) }()
		running := false
		testkit.Promptly(t, func(within testkit.Within) {
			if running {
				api.kill(whole)
			}
			within("the start", 8*time.Second, func() { api.start(whole) })
			running = true
		})
		said, err := launch.Get(api.ops + "/readyz")
		if testkit.Must(t, err); !strings.Contains(said, "without ClickHouse") {
			t.Errorf("/readyz says %q", said)
		}
		changes(t, caller{API: there, Token: c.token})
	})
}

// prompt requires an answer with a status within a duration.
func prompt(
	t *testing.T, within testkit.Within, what string, most time.Duration, status int, call func() answer,
) {
	t.Helper()
	within(what, most, func() {
		if a := call(); a.Status != status {
			t.Errorf("%s: %v", what, a)
		}
	})
}

// changes makes changes of a link, which are prompt.
func changes(t *testing.T, c caller) {
	t.Helper()
	testkit.Promptly(t, func(within testkit.Within) {
		hash, _ := c.Link(t, object{"long_url": "https://example.com/"})["hash"].(string)
		path, edit := "/api/v1/links/"+hash, `{"links":[{"hash":"`+hash+`"}],"set":{"title":"newer"}}`
		for _, change := range [][3]string{
			{http.MethodPatch, path, `{"title":"new"}`}, {http.MethodPost, "/api/v1/links/bulk/edit", edit},
			{http.MethodDelete, path, ""}, {http.MethodPost, path + "/restore", ""}, {http.MethodPost, path + "/restore", ""},
		} {
			prompt(t, within, change[0]+" "+change[1], 500*time.Millisecond, http.StatusOK, func() answer {
				return c.Call(t, change[0], change[1], change[2])
			})
		}
	})
}
